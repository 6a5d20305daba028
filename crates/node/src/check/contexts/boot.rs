//! For a unit that slurmd requires: it fails, so that slurmd does not start, while a kept setting is not in
//! force. What cannot be read is no reason to hold a node back.

use linerate_model::check::{CheckReport, CheckState};
use linerate_model::printable::clean;

use super::kind::{Context, Shown};

/// The context.
pub(super) struct Boot;

impl Context for Boot {
    fn word(&self) -> &'static str {
        "boot"
    }

    fn codes(&self) -> &'static str {
        "1 a kept setting is not in force 25 s after the call, with `--enforce`; 0 otherwise"
    }

    fn waits_for_kept_set(&self) -> bool {
        true
    }

    fn show(&self, report: &CheckReport) -> Shown {
        let fails = matches!(report.worst(), CheckState::Failing | CheckState::Warning);
        Shown { text: report.text(), code: u8::from(fails && !report.dry_run) }
    }

    fn unable(&self, reason: &str) -> Shown {
        Shown { text: format!("could not check: {}\n", clean(reason)), code: 0 }
    }
}
