//! Recorded evidence with the expected verdict: one TOML file, matrices as text tables.
//!
//! Text comes in, a snapshot goes out; after the diagnosis, the mismatches with what was expected. It reads no file.

mod expect;
mod file;

use linerate_model::finding::Diagnosis;
use linerate_model::snapshot::Snapshot;
use thiserror::Error;

pub use expect::{Expect, ExpectFinding};

use crate::{Knowledge, diff};

/// A case file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{file}:{line}: {problem}\nhint: {hint}")]
pub struct CaseError {
    /// File.
    pub file: String,
    /// Line, 1-based; 0 when it concerns the whole file.
    pub line: usize,
    /// What is wrong.
    pub problem: String,
    /// What to do.
    pub hint: String,
}

/// Recorded evidence.
#[derive(Debug, Clone, Default)]
pub struct Case {
    /// One line.
    pub title: String,
    /// The evidence.
    pub snapshot: Snapshot,
    /// The evidence before a fix.
    pub before: Option<Snapshot>,
    /// What the diagnosis must say.
    pub expect: Expect,
}

/// Reads a case from the text of its file.
pub fn parse(file: &str, text: &str) -> Result<Case, CaseError> {
    file::parse(file, text)
}

/// The diagnosis of a case; where it has a state before, the proof of the fix is the first note and opens the headline.
pub fn diagnose(case: &Case, knowledge: &Knowledge) -> Diagnosis {
    let mut diagnosis = crate::diagnose(&case.snapshot, knowledge);
    if let Some(before) = &case.before {
        let effects: Vec<String> = diff::runs(before, &case.snapshot)
            .into_iter()
            .filter(|d| d.kind == diff::Kind::Effect)
            .map(|d| d.sentence)
            .collect();
        if let Some(first) = effects.first() {
            let verdict = first.split(':').next().unwrap_or(first);
            diagnosis.headline = format!("{verdict}; {}", diagnosis.headline);
        }
        diagnosis.notes.splice(0..0, effects);
    }
    diagnosis
}

/// What the diagnosis says otherwise than the case expects; one line each.
pub fn check(case: &Case, diagnosis: &Diagnosis) -> Vec<String> {
    expect::check(case, diagnosis)
}
