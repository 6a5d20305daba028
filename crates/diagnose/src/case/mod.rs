//! Recorded evidence with the expected verdict: one TOML file, matrices as text tables.
//!
//! Text comes in, a snapshot goes out; after the diagnosis, the mismatches with what was expected. It reads no file.

mod entries;
mod expect;
mod file;

use include_dir::{Dir, include_dir};
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

/// Changes of single pairs that are told beside the effect on all.
const CELLS_TOLD: usize = 4;

static BUILTIN: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../cases");

/// The cases that come with the program, with their names, in the order of these.
pub fn builtin() -> Result<Vec<(String, Case)>, CaseError> {
    let mut files: Vec<_> =
        BUILTIN.files().filter(|f| f.path().extension().is_some_and(|e| e == "toml")).collect();
    files.sort_by_key(|f| f.path());
    files
        .into_iter()
        .map(|file| {
            let path = file.path();
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            Ok((name, parse(&path.display().to_string(), file.contents_utf8().unwrap_or_default())?))
        })
        .collect()
}

/// The diagnosis of a case; where it has a state before, the proof of the fix is the first note and opens the headline.
pub fn diagnose(case: &Case, knowledge: &Knowledge) -> Diagnosis {
    let mut diagnosis = crate::diagnose(&case.snapshot, knowledge);
    if let Some(before) = &case.before {
        let changes = diff::runs(before, &case.snapshot);
        let of =
            |kind: diff::Kind| changes.iter().filter(move |d| d.kind == kind).map(|d| d.sentence.clone());
        let mut effects: Vec<String> = of(diff::Kind::Effect).collect();
        if let Some(first) = effects.first() {
            let verdict = first.split(':').next().unwrap_or(first);
            diagnosis.headline = format!("{verdict}; {}", diagnosis.headline);
        }
        // Of a few pairs each one is told.
        let cells: Vec<String> = of(diff::Kind::Cell).collect();
        effects.extend(cells.into_iter().take(CELLS_TOLD));
        diagnosis.notes.splice(0..0, effects);
    }
    diagnosis
}

/// What the diagnosis says otherwise than the case expects; one line each.
pub fn check(case: &Case, diagnosis: &Diagnosis) -> Vec<String> {
    expect::check(case, diagnosis)
}
