//! What a site set for one check. Crosses to the children as JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::rule::{Rule, Severity, Threshold};

/// Keys that every check has, beside `off`, `warn_only` and the lists.
pub(super) const RULE_KEYS: [&str; 4] = ["strikes", "passes", "window_s", "spacing_s"];

/// Of one check; what is not set is as the check has it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Settings {
    /// The kill switch.
    pub(super) off: Option<bool>,
    /// Never more than a warning.
    pub(super) warn_only: bool,
    /// Subjects that are left alone.
    pub(super) except: Vec<String>,
    /// Subjects that have to be there; for checks that know them from a list.
    pub(super) expect: Vec<String>,
    pub(super) numbers: BTreeMap<String, f64>,
}

impl Settings {
    /// The value of a threshold.
    pub(super) fn number(&self, threshold: &Threshold) -> f64 {
        self.numbers.get(threshold.name).copied().unwrap_or(threshold.default)
    }

    /// The rule of a check, with what was set.
    pub(super) fn rule(&self, rule: Rule) -> Rule {
        let of = |name: &str, own: u64| self.numbers.get(name).map_or(own, |number| *number as u64);
        Rule {
            strikes: of("strikes", u64::from(rule.strikes)) as u32,
            passes: of("passes", u64::from(rule.passes)) as u32,
            window_s: of("window_s", rule.window_s),
            spacing_s: of("spacing_s", rule.spacing_s),
        }
    }

    pub(super) fn severity(&self, own: Severity) -> Severity {
        if self.warn_only { Severity::Warn } else { own }
    }

    /// Whether a subject is left alone: by its name, or by what its name begins with (`veth*`).
    pub(super) fn leaves(&self, subject: &str) -> bool {
        self.except.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(head) => subject.starts_with(head),
            None => pattern == subject,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::rule::TWICE;
    use super::*;

    #[test]
    fn what_is_set_counts_and_the_rest_is_the_checks_own() {
        let numbers = BTreeMap::from([("strikes".to_owned(), 5.0)]);
        let settings =
            Settings { numbers, except: vec!["veth*".into(), "eth1".into()], ..Settings::default() };
        assert_eq!(settings.rule(TWICE), Rule { strikes: 5, ..TWICE });
        assert!(settings.leaves("veth12") && settings.leaves("eth1") && !settings.leaves("eth10"));
        assert_eq!(settings.severity(Severity::Fail), Severity::Fail);
    }
}
