//! Checks of a host: what each one found, and what stands after windows, strikes and passes.
//!
//! In: nothing. Out: a plain value, which contexts print and which a later policy (drain, resume) may judge.
//! The shape of its JSON is stable: fields are added, never renamed or removed.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::exit::ExitCode;
use crate::fact::Gap;
use crate::printable::clean;
use crate::verdict::{HostCommand, Verdict, VerdictItem};

/// Version of the shape of [`CheckReport`] in JSON.
pub const CHECK_REPORT_VERSION: u32 = 1;

/// What stands for one subject of a check, after hysteresis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CheckState {
    /// Switched off.
    Off,
    /// As it should be.
    Ok,
    /// Bad now, and not often enough to count.
    Suspect,
    /// It could not be seen. Never a reason to act.
    Unknown,
    /// Bad often enough, of a kind that only warns.
    Warning,
    /// Bad often enough.
    Failing,
}

impl CheckState {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Off, Self::Ok, Self::Suspect, Self::Unknown, Self::Warning, Self::Failing];

    /// The word of the JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Ok => "ok",
            Self::Suspect => "suspect",
            Self::Unknown => "unknown",
            Self::Warning => "warning",
            Self::Failing => "failing",
        }
    }
}

/// One subject of one check: a NIC, a drive, a mount point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckResult {
    /// Name of the check: `link-speed`.
    pub check: String,
    /// What it is about: `eth0`; empty where the host is meant.
    #[serde(default)]
    pub subject: String,
    /// What stands.
    pub state: CheckState,
    /// What was seen, in one line.
    #[serde(default)]
    pub text: String,
    /// File of `knowledge/` with the mechanism and the fix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// Since when it is failing or warns, seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_unix_s: Option<i64>,
    /// Bad observations that count at present.
    #[serde(default)]
    pub strikes: u32,
    /// Good observations in a row since it is failing.
    #[serde(default)]
    pub passes: u32,
}

/// All checks of one host at one time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckReport {
    /// See [`CHECK_REPORT_VERSION`].
    pub version: u32,
    /// Name of the host.
    pub host: String,
    /// When it was made, seconds since 1970.
    pub at_unix_s: i64,
    /// Boot that it is about, as the kernel names it.
    #[serde(default)]
    pub boot_id: String,
    /// How long it took, milliseconds.
    #[serde(default)]
    pub took_ms: u64,
    /// CPU time of the program and of the children that ended, milliseconds.
    #[serde(default)]
    pub cpu_ms: u64,
    /// Whether contexts with consequences report success whatever was found.
    #[serde(default)]
    pub dry_run: bool,
    /// Another call was running: this is the last result, so many seconds old.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_age_s: Option<u64>,
    /// In the order of the list of checks.
    #[serde(default)]
    pub results: Vec<CheckResult>,
    /// What is wrong with the check itself: a damaged state file, a child that hangs.
    #[serde(default)]
    pub notes: Vec<String>,
}

impl CheckReport {
    /// The worst state: failing, warning, unknown, ok in this order. What is only suspect counts as ok, and
    /// so does what is off.
    #[must_use]
    pub fn worst(&self) -> CheckState {
        let states = || self.results.iter().map(|result| result.state);
        for state in [CheckState::Failing, CheckState::Warning] {
            if states().any(|seen| seen == state) {
                return state;
            }
        }
        // Nothing was judged at all: that is not health.
        let is_blind = !states().any(|seen| matches!(seen, CheckState::Ok | CheckState::Suspect));
        if is_blind || states().any(|seen| seen == CheckState::Unknown) {
            return CheckState::Unknown;
        }
        CheckState::Ok
    }

    /// The exit code that programs of ours give it.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        match self.worst() {
            CheckState::Failing | CheckState::Warning => ExitCode::Findings,
            CheckState::Unknown => ExitCode::PartlyBlind,
            CheckState::Off | CheckState::Ok | CheckState::Suspect => ExitCode::Ok,
        }
    }

    /// The checks that fail, then those that warn; those that did not see anything are what was not seen.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let bad = [CheckState::Failing, CheckState::Warning].into_iter().flat_map(|state| self.with(state));
        let item = |result: &CheckResult| {
            let sentence = format!("{}: {}: {}", self.host, result.state.word(), result.line());
            let check = result.cause.as_ref().map(|id| format!("linerate explain {id}"));
            VerdictItem {
                check: check.map(HostCommand::own),
                ..VerdictItem::stated(Some(&self.host), &result.check, sentence)
            }
        };
        let gap = |result: &CheckResult| {
            let what = format!("{} of {}", result.check, self.host);
            Gap { what: what.into(), reason: result.text.clone() }
        };
        Verdict::stating(bad.map(item), self.with(CheckState::Unknown).map(gap).collect())
    }

    /// For people: what is bad first, then how many are well.
    #[must_use]
    pub fn text(&self) -> String {
        // Writing into a `String` cannot fail.
        let mut text = format!("{}: {}", clean(&self.host), self.worst().word());
        if let Some(age) = self.busy_age_s {
            let _ = write!(text, " (another check is running; this is the last result, {age} s old)");
        }
        text.push('\n');
        for result in &self.results {
            if matches!(result.state, CheckState::Ok | CheckState::Off) {
                continue;
            }
            let _ = write!(text, "  {:<8} {}", result.state.word(), clean(&result.line()));
            if let Some(cause) = &result.cause {
                let _ = write!(text, " ({})", clean(cause));
            }
            text.push('\n');
        }
        let count = |state| self.with(state).count();
        let _ = write!(text, "  {} ok, {} checks off", count(CheckState::Ok), count(CheckState::Off));
        let _ = writeln!(text, "; {} ms, {} ms of CPU", self.took_ms, self.cpu_ms);
        for note in &self.notes {
            let _ = writeln!(text, "  note: {}", clean(note));
        }
        text
    }

    /// Results with this state.
    pub fn with(&self, state: CheckState) -> impl Iterator<Item = &CheckResult> {
        self.results.iter().filter(move |result| result.state == state)
    }
}

impl CheckResult {
    /// `link-speed eth0: 1 Gbit/s instead of 10 Gbit/s`.
    #[must_use]
    pub fn line(&self) -> String {
        let head = if self.subject.is_empty() {
            self.check.clone()
        } else {
            format!("{} {}", self.check, self.subject)
        };
        if self.text.is_empty() { head } else { format!("{head}: {}", self.text) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::VerdictSubject;

    fn report(states: &[CheckState]) -> CheckReport {
        let of = |state: &CheckState| CheckResult {
            check: "link-speed".into(),
            subject: "eth0".into(),
            state: *state,
            text: String::new(),
            cause: None,
            since_unix_s: None,
            strikes: 0,
            passes: 0,
        };
        CheckReport { results: states.iter().map(of).collect(), ..CheckReport::default() }
    }

    #[test]
    fn the_worst_state_stands_and_what_was_not_seen_is_no_health() {
        use CheckState::{Failing, Off, Ok, Suspect, Unknown, Warning};
        for (states, worst) in [
            (&[Ok, Warning, Failing, Unknown][..], Failing),
            (&[Unknown, Warning], Warning),
            (&[Ok, Unknown, Suspect], Unknown),
            (&[Off, Suspect, Ok], Ok),
            (&[Off], Unknown),
            (&[], Unknown),
        ] {
            assert_eq!(report(states).worst(), worst, "{states:?}");
        }
    }

    #[test]
    fn a_verdict_has_what_fails_first_and_what_was_not_seen() {
        use CheckState::{Failing, Off, Ok, Suspect, Unknown, Warning};
        let mut all = report(&[Ok, Warning, Unknown, Failing, Suspect, Off]);
        all.host = "n1".into();
        let verdict = all.verdict();
        let sentences: Vec<&str> = verdict
            .findings
            .iter()
            .map(|item| match &item.what {
                VerdictSubject::Stated(stated) => stated.sentence.as_str(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(sentences, ["n1: failing: link-speed eth0", "n1: warning: link-speed eth0"]);
        assert_eq!(verdict.unseen.gaps.len(), 1);
        assert!(report(&[Ok, Off]).verdict() == Verdict::default());
    }

    #[test]
    fn words_are_those_of_the_json() {
        for state in CheckState::ALL {
            assert_eq!(serde_json::to_string(&state).unwrap(), format!("\"{}\"", state.word()));
        }
        let mut one = report(&[CheckState::Ok]).results.remove(0);
        assert_eq!(one.line(), "link-speed eth0");
        one.text = "slow".into();
        one.subject.clear();
        assert_eq!(one.line(), "link-speed: slow");
    }
}
