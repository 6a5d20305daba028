//! For people: what is bad first, then how many are well. Exit codes of all commands of linerate.

use linerate_model::check::CheckReport;
use linerate_model::exit::ExitCode;
use linerate_model::printable::clean;

use super::kind::{Context, Shown};

/// The context.
pub(super) struct Text;

impl Context for Text {
    fn word(&self) -> &'static str {
        "text"
    }

    fn codes(&self) -> &'static str {
        "0 healthy, 1 a check fails or warns, 2 could not run, 3 nothing fails and something was not seen"
    }

    fn show(&self, report: &CheckReport) -> Shown {
        Shown { text: report.text(), code: report.exit_code() as u8 }
    }

    fn unable(&self, reason: &str) -> Shown {
        Shown { text: format!("could not check: {}\n", clean(reason)), code: ExitCode::CouldNotRun as u8 }
    }
}
