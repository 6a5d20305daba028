//! For people: what is bad first, then how many are well. Exit codes of all commands of linerate.

use std::fmt::Write as _;

use linerate_model::check::{CheckReport, CheckState};
use linerate_model::exit::ExitCode;
use linerate_model::printable::clean;

use super::kind::{Context, Shown};

/// The context.
pub(super) struct Text;

/// The code of this program's own contexts for a state.
pub(super) fn code_of(worst: CheckState) -> u8 {
    let code = match worst {
        CheckState::Failing | CheckState::Warning => ExitCode::Findings,
        CheckState::Unknown => ExitCode::PartlyBlind,
        CheckState::Off | CheckState::Ok | CheckState::Suspect => ExitCode::Ok,
    };
    code as u8
}

impl Context for Text {
    fn word(&self) -> &'static str {
        "text"
    }

    fn codes(&self) -> &'static str {
        "0 healthy, 1 a check fails or warns, 2 could not run, 3 nothing fails and something was not seen"
    }

    fn show(&self, report: &CheckReport) -> Shown {
        // Writing into a `String` cannot fail.
        let mut text = format!("{}: {}", clean(&report.host), report.worst().word());
        if let Some(age) = report.busy_age_s {
            let _ = write!(text, " (another check is running; this is the last result, {age} s old)");
        }
        text.push('\n');
        for result in &report.results {
            if matches!(result.state, CheckState::Ok | CheckState::Off) {
                continue;
            }
            let _ = write!(text, "  {:<8} {}", result.state.word(), clean(&result.line()));
            if let Some(cause) = &result.cause {
                let _ = write!(text, " ({})", clean(cause));
            }
            text.push('\n');
        }
        let count = |state| report.with(state).count();
        let _ = write!(text, "  {} ok, {} checks off", count(CheckState::Ok), count(CheckState::Off));
        let _ = writeln!(text, "; {} ms, {} ms of CPU", report.took_ms, report.cpu_ms);
        for note in &report.notes {
            let _ = writeln!(text, "  note: {}", clean(note));
        }
        Shown { text, code: code_of(report.worst()) }
    }

    fn unable(&self, reason: &str) -> Shown {
        Shown { text: format!("could not check: {}\n", clean(reason)), code: ExitCode::CouldNotRun as u8 }
    }
}
