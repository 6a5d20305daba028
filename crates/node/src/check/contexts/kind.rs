//! What a context offers.

use std::time::Duration;

use linerate_model::check::{CheckReport, CheckState};

/// What is printed, and the exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Shown {
    pub(in super::super) text: String,
    pub(in super::super) code: u8,
}

/// One context.
pub(in super::super) trait Context: Sync {
    /// The word behind `--as`.
    fn word(&self) -> &'static str;

    /// One line for the documentation: the exit codes.
    fn codes(&self) -> &'static str;

    /// Whether the kept set alone is compared, again until it is in force.
    fn waits_for_kept_set(&self) -> bool {
        false
    }

    /// How long another call is waited for before its last result is shown: none where the next call comes
    /// soon.
    fn patience(&self) -> Duration {
        Duration::ZERO
    }

    /// A report.
    fn show(&self, report: &CheckReport) -> Shown;

    /// No report came: the check could not run, or did not end in time.
    fn unable(&self, reason: &str) -> Shown;
}

/// The worst results first, a line each.
pub(super) fn lines(report: &CheckReport) -> Vec<String> {
    [CheckState::Failing, CheckState::Warning, CheckState::Unknown]
        .into_iter()
        .flat_map(|state| report.with(state))
        .map(linerate_model::check::CheckResult::line)
        .collect()
}

/// One line out of any text: contexts that read lines must not get two.
pub(super) fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || c == '|' { ' ' } else { c }).collect()
}

/// At most so many characters.
pub(super) fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}
