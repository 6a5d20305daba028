//! For Nagios, Icinga and what speaks as they do: one line with performance data, codes 0 to 3.

use linerate_model::check::{CheckReport, CheckState};

use super::kind::{Context, Shown, lines, one_line};

/// The context.
pub(super) struct Nagios;

impl Context for Nagios {
    fn word(&self) -> &'static str {
        "nagios"
    }

    fn codes(&self) -> &'static str {
        "0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN (also: could not run)"
    }

    fn show(&self, report: &CheckReport) -> Shown {
        let (word, code) = match report.worst() {
            CheckState::Failing => ("CRITICAL", 2),
            CheckState::Warning => ("WARNING", 1),
            CheckState::Unknown => ("UNKNOWN", 3),
            CheckState::Off | CheckState::Ok | CheckState::Suspect => ("OK", 0),
        };
        let count = |state| report.with(state).count();
        let found = lines(report);
        let words = if found.is_empty() { format!("{} ok", count(CheckState::Ok)) } else { found.join("; ") };
        let busy = report.busy_age_s.map_or(String::new(), |age| format!(" ({age} s old)"));
        let text = format!(
            "LINERATE {word} - {}{busy} | failing={};;1;0 warning={};1;;0 unknown={};;;0 time={}ms;;;0\n",
            one_line(&words),
            count(CheckState::Failing),
            count(CheckState::Warning),
            count(CheckState::Unknown),
            report.took_ms
        );
        Shown { text, code }
    }

    fn unable(&self, reason: &str) -> Shown {
        Shown { text: format!("LINERATE UNKNOWN - {}\n", one_line(reason)), code: 3 }
    }
}
