//! For Slurm: `HealthCheckProgram`, `Prolog` and `Epilog`. slurmd logs what a health check prints with its
//! code and changes nothing by itself (only a check at start, `REBOOT_ONLY` or `START_ONLY`, can hold a node
//! back); a prolog or epilog that fails drains the node. So only what fails, often enough, with `enforce =
//! true`, and seen just now is a code other than 0.

use std::time::Duration;

use linerate_model::check::{CheckReport, CheckState};

use super::kind::{Context, Shown, lines, one_line};

/// First word of all that this program prints in Slurm: reasons of others are left alone by it.
const PREFIX: &str = "linerate:";
/// Characters of a reason that `sinfo -R` shows are few; slurmd logs more.
const REASON_CHARS_MAX: usize = 400;
/// A job is judged once: one that began while a health check ran must not begin unjudged. A check takes 2 s
/// where nothing hangs; this and a reading end before the deadline of a call.
const PATIENCE: Duration = Duration::from_secs(10);

/// The periodic health check.
pub(super) struct HealthCheck;

/// Around a job.
pub(super) struct Job {
    word: &'static str,
}

/// Before a job.
pub(super) const PROLOG: Job = Job { word: "prolog" };
/// After a job.
pub(super) const EPILOG: Job = Job { word: "epilog" };

/// The one line of a report; empty when there is nothing to report.
fn reason(report: &CheckReport) -> String {
    let found = lines(report);
    if found.is_empty() {
        return String::new();
    }
    let dry = if report.dry_run { " (dry run)" } else { "" };
    let text = format!("{PREFIX}{dry} {}", one_line(&found.join("; ")));
    super::kind::shortened(&text, REASON_CHARS_MAX) + "\n"
}

fn code(report: &CheckReport) -> u8 {
    let fails = report.worst() == CheckState::Failing && !report.dry_run && report.busy_age_s.is_none();
    u8::from(fails)
}

/// A check that could not run is no reason to drain.
fn unable(reason: &str) -> Shown {
    Shown { text: format!("{PREFIX} could not check: {}\n", one_line(reason)), code: 0 }
}

impl Context for HealthCheck {
    fn word(&self) -> &'static str {
        "slurm"
    }

    fn codes(&self) -> &'static str {
        "1 a check fails and `enforce = true`, 0 otherwise; slurmd logs it and drains nothing"
    }

    fn show(&self, report: &CheckReport) -> Shown {
        Shown { text: reason(report), code: code(report) }
    }

    fn unable(&self, reason: &str) -> Shown {
        unable(reason)
    }
}

impl Context for Job {
    fn word(&self) -> &'static str {
        self.word
    }

    fn codes(&self) -> &'static str {
        "1 a check fails and `enforce = true`: Slurm drains the node; 0 otherwise"
    }

    fn patience(&self) -> Duration {
        PATIENCE
    }

    fn show(&self, report: &CheckReport) -> Shown {
        Shown { text: reason(report), code: code(report) }
    }

    fn unable(&self, reason: &str) -> Shown {
        unable(reason)
    }
}
