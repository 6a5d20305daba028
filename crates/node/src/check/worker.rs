//! The child that reads: takes jobs from stdin, answers each with one line on stdout, in their order. It may
//! hang in the kernel at any of them; then its parent leaves it.

use std::io::{self, Read as _, Write as _};

use linerate_sys::root::Root;
use serde::{Deserialize, Serialize};

use super::kind::{Evidence, Reading};
use super::list::CHECKS;
use super::settings::Settings;

/// Longest request.
pub(super) const REQUEST_BYTES_MAX: usize = 60 << 10;

/// One thing to read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Job {
    pub(super) check: String,
    pub(super) item: String,
    pub(super) settings: Settings,
    pub(super) cursor: Option<String>,
    /// How long its answer is waited for, milliseconds.
    pub(super) patience_ms: u64,
}

/// The answer to a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Answer {
    Seen(Evidence),
    Failed(String),
    /// Never sent: nothing came.
    Silent,
    /// Never sent: the time was over before it was asked.
    NotAsked,
}

/// Reads a request from stdin and answers on stdout.
pub(super) fn run() -> io::Result<()> {
    let mut text = String::new();
    io::stdin().take(REQUEST_BYTES_MAX as u64 + 1).read_to_string(&mut text)?;
    let jobs: Vec<Job> = serde_json::from_str(&text)?;
    let root = Root::live();
    for job in &jobs {
        let mut line = serde_json::to_string(&answer(&root, job))?;
        line.push('\n');
        let mut stdout = io::stdout().lock();
        stdout.write_all(line.as_bytes())?;
        stdout.flush()?;
    }
    Ok(())
}

fn answer(root: &Root, job: &Job) -> Answer {
    let Some(check) = CHECKS.iter().find(|check| check.about().id == job.check) else {
        return Answer::Failed("unknown check".to_owned());
    };
    let cursor = job.cursor.as_deref();
    let reading = Reading { root, item: &job.item, settings: &job.settings, cursor };
    check.read(&reading).map_or_else(Answer::Failed, Answer::Seen)
}
