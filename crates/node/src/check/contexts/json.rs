//! For programs: the whole report as one line of JSON, a `CheckReport` with its verdict.

use linerate_model::check::CheckReport;
use linerate_model::exit::ExitCode;
use linerate_model::verdict::WithVerdict;

use super::kind::{Context, Shown};

/// The context.
pub(super) struct Json;

impl Context for Json {
    fn word(&self) -> &'static str {
        "json"
    }

    fn codes(&self) -> &'static str {
        "0 healthy, 1 a check fails or warns, 2 could not run, 3 nothing fails and something was not seen"
    }

    fn show(&self, report: &CheckReport) -> Shown {
        match serde_json::to_string(&WithVerdict { summary: report.verdict(), document: report }) {
            Ok(text) => Shown { text: text + "\n", code: report.exit_code() as u8 },
            Err(error) => self.unable(&error.to_string()),
        }
    }

    fn unable(&self, reason: &str) -> Shown {
        let text = serde_json::json!({ "error": reason }).to_string();
        Shown { text: text + "\n", code: ExitCode::CouldNotRun as u8 }
    }
}
