//! For the node problem detector of Kubernetes, as a custom plugin: 0 OK, 1 a problem, 2 unknown, and at most
//! 80 characters on stdout.

use linerate_model::check::{CheckReport, CheckState};

use super::kind::{Context, Shown, lines, one_line, shortened};

/// `max_output_length` of a custom plugin, its default.
const CHARS_MAX: usize = 80;

/// The context.
pub(super) struct NodeProblem;

impl Context for NodeProblem {
    fn word(&self) -> &'static str {
        "npd"
    }

    fn codes(&self) -> &'static str {
        "0 OK, 1 a check fails, 2 unknown (also: could not run); warnings are 0"
    }

    fn show(&self, report: &CheckReport) -> Shown {
        let code = match report.worst() {
            CheckState::Failing => 1,
            CheckState::Unknown => 2,
            CheckState::Off | CheckState::Ok | CheckState::Suspect | CheckState::Warning => 0,
        };
        let words = lines(report).into_iter().next().unwrap_or_else(|| "healthy".to_owned());
        Shown { text: shortened(&one_line(&words), CHARS_MAX) + "\n", code }
    }

    fn unable(&self, reason: &str) -> Shown {
        Shown { text: shortened(&one_line(reason), CHARS_MAX) + "\n", code: 2 }
    }
}
