//! What a report is made of, and what a report format is.

use linerate_model::finding::Diagnosis;
use linerate_model::snapshot::Snapshot;
use linerate_model::trial::Trial;

/// What a report is made of.
#[derive(Debug, Clone, Copy)]
pub struct Material<'a> {
    /// What was observed.
    pub snapshot: &'a Snapshot,
    /// What it means.
    pub diagnosis: &'a Diagnosis,
    /// What was tried.
    pub trials: &'a [Trial],
    /// What the lab had broken, when the report may tell.
    pub reveal: Option<&'a str>,
}

/// A report format.
pub trait Format: Sync {
    /// What is typed: `linerate show RUN --html`.
    fn name(&self) -> &'static str;
    /// Of the file, without a dot.
    fn extension(&self) -> &'static str;
    /// The whole report.
    fn render(&self, material: &Material<'_>) -> String;
}
