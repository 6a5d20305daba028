//! For Prometheus: the text format, for the textfile collector of the node exporter (`--to FILE`).

use std::fmt::Write as _;

use linerate_model::check::{CheckReport, CheckState};

use super::kind::{Context, Shown};

/// The context.
pub(super) struct Prometheus;

/// A label's value: backslash, quote and line feed are escaped, as the format wants.
fn label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Name, help and values of one family of gauges.
fn family(text: &mut String, name: &str, help: &str, values: impl IntoIterator<Item = (String, f64)>) {
    // Writing into a `String` cannot fail.
    let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n");
    for (labels, value) in values {
        let _ = writeln!(text, "{name}{labels} {value}");
    }
}

impl Context for Prometheus {
    fn word(&self) -> &'static str {
        "prometheus"
    }

    fn codes(&self) -> &'static str {
        "0 the metrics were made, whatever they are; 2 could not run"
    }

    fn show(&self, report: &CheckReport) -> Shown {
        let mut text = String::new();
        let judged = || report.results.iter().filter(|result| result.state != CheckState::Off);
        let labels = |check: &str, subject: &str| {
            format!("{{check=\"{}\",subject=\"{}\"}}", label(check), label(subject))
        };
        family(
            &mut text,
            "linerate_check_state",
            "1 for the state that stands: ok, suspect, unknown, warning, failing.",
            judged().flat_map(|result| {
                CheckState::ALL.into_iter().filter(|state| *state != CheckState::Off).map(|state| {
                    let (check, subject) = (label(&result.check), label(&result.subject));
                    let state_word = state.word();
                    let labels =
                        format!("{{check=\"{check}\",subject=\"{subject}\",state=\"{state_word}\"}}");
                    (labels, f64::from(u8::from(state == result.state)))
                })
            }),
        );
        family(
            &mut text,
            "linerate_check_strikes",
            "Bad observations that count at present.",
            judged().map(|result| (labels(&result.check, &result.subject), f64::from(result.strikes))),
        );
        for (name, help, value) in [
            ("linerate_check_timestamp_seconds", "When the checks ran.", report.at_unix_s as f64),
            ("linerate_check_duration_seconds", "How long they took.", report.took_ms as f64 / 1e3),
            ("linerate_check_cpu_seconds", "CPU time that they used.", report.cpu_ms as f64 / 1e3),
            ("linerate_check_notes", "Notes about the check itself.", report.notes.len() as f64),
        ] {
            family(&mut text, name, help, [(String::new(), value)]);
        }
        Shown { text, code: 0 }
    }

    fn unable(&self, _reason: &str) -> Shown {
        // The old file stays, and its timestamp shows its age.
        Shown { text: String::new(), code: 2 }
    }
}
