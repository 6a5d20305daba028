//! A fact is a value read on a host; a setting is a fact that can also be written and undone.
//!
//! One open vocabulary of keys: `sysctl.net.ipv4.tcp_rmem`, `nic.eth0.feature.rx-gro-hw`, `nic.eth0.ring.rx`,
//! `cpu.governor`. Facts of a namespace inside a host carry the prefix `netns.<path>|` before the key.

mod pattern;
mod value;

pub use pattern::{bare, changes_by_itself, pattern_fits};
pub use value::{FactKey, FactValue, KEY_BYTES_MAX, check_key, decimal};

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fact_map::FactMap;
use crate::inventory::HostName;
use crate::printable::{HINT, without_hint};
use crate::writable::{Absent, writable};

/// What a node says about a fact it can read: sent in its hello, printed into the reference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FactDecl {
    /// Key with `*` for the variable part: `nic.*.ring.rx`.
    pub pattern: String,
    /// Unit of the number, or `text`, `flag`, `list`.
    pub unit: String,
    /// One sentence.
    pub meaning: String,
    /// Whether it can be written and undone.
    pub setting: bool,
}

/// What could not be seen. As text a host is `host NAME`, a session `session with NAME`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(from = "String", into = "String")]
pub enum GapSubject {
    /// A whole host, that was lost or never reached.
    Host(HostName),
    /// What ran on a host while its session was lost, before it was taken up again.
    Session(HostName),
    /// Anything else: a key, a test, one thing of a host.
    Part(String),
}

impl GapSubject {
    /// Whether it is a key or the beginning of keys below this prefix.
    #[must_use]
    pub fn is_below(&self, prefix: &str) -> bool {
        matches!(self, Self::Part(part) if part.starts_with(prefix))
    }

    /// The name of the host, or the text of anything else.
    pub fn name_mut(&mut self) -> &mut String {
        match self {
            Self::Host(name) | Self::Session(name) | Self::Part(name) => name,
        }
    }
}

impl std::fmt::Display for GapSubject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Host(name) => write!(f, "host {name}"),
            Self::Session(name) => write!(f, "session with {name}"),
            Self::Part(part) => f.write_str(part),
        }
    }
}

impl From<String> for GapSubject {
    fn from(text: String) -> Self {
        if let Some(name) = text.strip_prefix("host ") {
            Self::Host(name.to_owned())
        } else if let Some(name) = text.strip_prefix("session with ") {
            Self::Session(name.to_owned())
        } else {
            Self::Part(text)
        }
    }
}

impl From<&str> for GapSubject {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<GapSubject> for String {
    fn from(subject: GapSubject) -> Self {
        subject.to_string()
    }
}

/// Something that could not be seen, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Gap {
    /// What could not be seen.
    pub what: GapSubject,
    /// Why.
    pub reason: String,
}

impl Gap {
    /// All of them in one sentence: each hint once, after all reasons.
    #[must_use]
    pub fn reasons(gaps: &[Self]) -> String {
        let mut hints: Vec<&str> = Vec::new();
        let mut heads: Vec<String> = Vec::new();
        for gap in gaps {
            let (reason, hint) = without_hint(&gap.reason);
            heads.push(format!("{}: {reason}", gap.what));
            hints.extend(hint.filter(|hint| !hints.contains(hint)));
        }
        hints.iter().fold(heads.join("; "), |text, hint| text + HINT + hint)
    }
}

/// All facts of one host at one time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostFacts {
    /// Settings and properties.
    #[schemars(with = "BTreeMap<FactKey, FactValue>")]
    pub readings: FactMap,
    /// Counters: only their change around a test means something.
    #[serde(default)]
    pub counters: BTreeMap<FactKey, i64>,
    /// What could not be read.
    #[serde(default)]
    pub gaps: Vec<Gap>,
    /// What one stream of the tool's own load reaches over the loopback of this host, bit/s; `None` where
    /// nothing was fast enough for it to matter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_bps: Option<f64>,
}

impl From<Absent> for FactValue {
    fn from(absent: Absent) -> Self {
        match absent {
            Absent::NoEntry => Self::Text("none".to_owned()),
            Absent::Off => Self::Flag(false),
        }
    }
}

impl HostFacts {
    /// Value of a setting: what was read; of an entry or switch that is not there, what its family is then.
    /// Nothing where it could not be read.
    #[must_use]
    pub fn value_of(&self, key: &str) -> Option<FactValue> {
        let read = self.readings.get(key).cloned();
        read.or_else(|| {
            let absent = writable(key)?.absent?;
            self.gap_of(key).is_none().then(|| absent.into())
        })
    }

    /// What of a key could not be seen.
    #[must_use]
    pub fn gap_of(&self, key: &str) -> Option<&Gap> {
        // A gap of a namespace speaks of what is inside, or of all of it.
        let speaks_of = |what: &str| {
            let pattern = bare(what);
            let namespace = &what[..what.len() - pattern.len()];
            let is_beginning = pattern.ends_with('.') || pattern.is_empty() && !namespace.is_empty();
            key.starts_with(namespace)
                && (is_beginning && bare(key).starts_with(pattern) || pattern_fits(pattern, key))
        };
        self.gaps.iter().find(|gap| speaks_of(&gap.what.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_that_is_not_there_is_none_unless_its_table_was_not_read() {
        let none = FactValue::Text("none".to_owned());
        let (route, mtu) = ("route.10/0/0/0-8", "nic.eth0.mtu");
        let mut facts = HostFacts::default();
        assert_eq!((facts.value_of(route), facts.value_of(mtu)), (Some(none), None));
        facts.gaps.push(Gap { what: "route.*".into(), reason: "no right".to_owned() });
        assert_eq!(facts.value_of(route), None);
        let there = FactValue::Text("10.0.0.0/8 dev eth0".to_owned());
        facts.readings.insert(route.into(), there.clone());
        assert_eq!(facts.value_of(route), Some(there));
    }

    #[test]
    fn a_rule_of_the_firewall_that_is_not_there_is_off_unless_the_rules_were_not_read() {
        let rule = "firewall.random_rule.0a1b2c3d-0";
        let mut facts = HostFacts::default();
        assert_eq!(facts.value_of(rule), Some(FactValue::Flag(false)));
        assert_eq!(facts.value_of("firewall.rules"), None, "a number that was not read is not 0");
        for (gap, here, inside) in
            [("firewall.*", false, false), ("netns./a|firewall.*", true, false), ("netns./a|", true, false)]
        {
            let gaps = vec![Gap { what: gap.into(), reason: "no right".to_owned() }];
            let facts = HostFacts { gaps, ..HostFacts::default() };
            let is_known = |key: &str| facts.value_of(key).is_some();
            assert_eq!((is_known(rule), is_known(&format!("netns./a|{rule}"))), (here, inside), "{gap}");
        }
        facts.gaps.push(Gap { what: "netns./b|firewall.*".into(), reason: "no right".to_owned() });
        assert!(facts.value_of(&format!("netns./a|{rule}")).is_some(), "of another namespace");
    }
}
