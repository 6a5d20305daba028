//! Recorded evidence with the expected verdict: one TOML file, matrices as text tables.
//!
//! Text comes in, a snapshot goes out; after the diagnosis, the mismatches with what was expected. It reads
//! no file.

pub mod anonymous;
mod entries;
mod expect;
mod file;

use include_dir::{Dir, include_dir};
use linerate_knowledge::Knowledge;
use linerate_model::finding::Diagnosis;

pub use expect::{Expect, ExpectFinding};
pub use file::{Case, CaseError, parse};

use linerate_diagnose::compared;
use linerate_diagnose::rules::Rules;

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

/// The diagnosis of a case; where it has a state before, the proof of the fix is the first remark and opens
/// the headline.
pub fn diagnose(case: &Case, knowledge: &Knowledge) -> Diagnosis {
    diagnose_with(case, knowledge, &Rules::DEFAULT)
}

/// The same by other numbers.
pub fn diagnose_with(case: &Case, knowledge: &Knowledge, rules: &Rules) -> Diagnosis {
    let mut diagnosis = linerate_diagnose::diagnose_with(&case.snapshot, knowledge, rules);
    if let Some(before) = &case.before {
        compared::add(before, &case.snapshot, &mut diagnosis);
    }
    diagnosis
}

/// What the diagnosis says otherwise than the case expects; one line each.
pub fn check(case: &Case, diagnosis: &Diagnosis) -> Vec<String> {
    expect::check(&case.expect, diagnosis)
}
