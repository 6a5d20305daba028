//! What a check offers: what it reads (in a child that may be abandoned) and how one reading is judged (a
//! pure function of the reading, the past of the check and its thresholds).
//!
//! The list of all checks is in `list.rs`; windows, strikes and passes are in `policy.rs`.

use std::collections::BTreeMap;

use linerate_sys::root::Root;
use serde::{Deserialize, Serialize};

use super::past::Past;
use super::rule::{Moment, Rule, Severity, Threshold, Verdict};
use super::settings::Settings;

/// Which child reads it. Children work side by side; the jobs of one follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lane {
    /// Files of the kernel and its answers.
    Local,
    /// What asks a drive, or reads files from one.
    Drives,
    /// File systems, also those of other hosts.
    Mounts,
    /// Scripts of the site.
    Site,
}

impl Lane {
    pub(super) const ALL: [Self; 4] = [Self::Local, Self::Drives, Self::Mounts, Self::Site];
}

/// A check in words and numbers.
#[derive(Debug)]
pub(super) struct About {
    /// Its name, everywhere.
    pub(super) id: &'static str,
    /// What is bad, one line.
    pub(super) title: &'static str,
    /// What it reads.
    pub(super) reads: &'static str,
    pub(super) severity: Severity,
    pub(super) rule: Rule,
    pub(super) lane: Lane,
    /// Whether it runs by itself.
    pub(super) is_on: bool,
    pub(super) thresholds: &'static [Threshold],
    /// Whether a site may list subjects that have to be there (`expect`).
    pub(super) takes_expected: bool,
}

/// What was read of one subject.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Row {
    pub(super) subject: String,
    #[serde(default)]
    pub(super) values: BTreeMap<String, f64>,
    #[serde(default)]
    pub(super) words: BTreeMap<String, String>,
}

impl Row {
    pub(super) fn new(subject: impl Into<String>) -> Self {
        Self { subject: subject.into(), ..Self::default() }
    }

    /// With a number; one that is unknown is left out.
    pub(super) fn value(mut self, name: &str, value: impl Into<Option<f64>>) -> Self {
        if let Some(value) = value.into().filter(|value| value.is_finite()) {
            self.values.insert(name.to_owned(), value);
        }
        self
    }

    /// With a word; an empty one is left out.
    pub(super) fn word(mut self, name: &str, word: impl Into<String>) -> Self {
        let word = word.into();
        if !word.is_empty() {
            self.words.insert(name.to_owned(), word);
        }
        self
    }

    pub(super) fn get(&self, name: &str) -> Option<f64> {
        self.values.get(name).copied()
    }

    pub(super) fn text(&self, name: &str) -> &str {
        self.words.get(name).map_or("", String::as_str)
    }
}

/// What a job read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Evidence {
    #[serde(default)]
    pub(super) rows: Vec<Row>,
    /// How far a log was read; the next call of this job gets it.
    #[serde(default)]
    pub(super) cursor: Option<String>,
}

impl From<Vec<Row>> for Evidence {
    fn from(rows: Vec<Row>) -> Self {
        Self { rows, cursor: None }
    }
}

/// What a job may use.
pub(super) struct Reading<'a> {
    pub(super) root: &'a Root,
    /// One of `Check::items`.
    pub(super) item: &'a str,
    pub(super) settings: &'a Settings,
    /// Of the last call.
    pub(super) cursor: Option<&'a str>,
}

/// One subject, judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Observation {
    pub(super) subject: String,
    pub(super) verdict: Verdict,
    pub(super) text: String,
    /// File of `knowledge/` without `.toml`.
    pub(super) cause: Option<&'static str>,
    /// Where it is not that of the check.
    pub(super) severity: Option<Severity>,
}

impl Observation {
    fn new(row: &Row, verdict: Verdict, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { subject: row.subject.clone(), verdict, text, cause: None, severity: None }
    }

    pub(super) fn good(row: &Row, text: impl Into<String>) -> Self {
        Self::new(row, Verdict::Good, text)
    }

    pub(super) fn bad(row: &Row, text: impl Into<String>) -> Self {
        Self::new(row, Verdict::Bad, text)
    }

    pub(super) fn unknown(row: &Row, text: impl Into<String>) -> Self {
        Self::new(row, Verdict::Unknown, text)
    }

    pub(super) fn because(mut self, cause: &'static str) -> Self {
        self.cause = Some(cause);
        self
    }

    pub(super) fn only_warns(mut self) -> Self {
        self.severity = Some(Severity::Warn);
        self
    }
}

/// One check.
pub(super) trait Check: Sync {
    fn about(&self) -> &'static About;

    /// What is read apart, because one of them may hang. Reads nothing that can block.
    fn items(&self, _root: &Root, _settings: &Settings) -> Vec<String> {
        vec![String::new()]
    }

    /// Reads, in a child. An error is a reason why nothing could be seen.
    fn read(&self, reading: &Reading<'_>) -> Result<Evidence, String>;

    /// Judges one row.
    fn judge(&self, row: &Row, past: &mut Past, now: Moment, settings: &Settings) -> Observation;

    /// What it means that a job has not answered: by itself only that nothing was seen.
    fn silent(&self, item: &str) -> Observation {
        Observation::unknown(&Row::new(item), "no answer: the kernel or a device hangs")
    }
}
