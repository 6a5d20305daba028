//! JSON for programs: the run, its diagnosis and its trials in; one object out. Never leaves anything out,
//! never adds words.

use std::fmt::Write;

use linerate_diagnose::disks::{SurveyedDrive, surveyed_in};
use linerate_model::SCHEMA;
use linerate_model::announced::Announcement;
use linerate_model::finding::Diagnosis;
use linerate_model::imported::Imported;
use linerate_model::printable::is_control;
use linerate_model::snapshot::Snapshot;
use linerate_model::trial::Trial;
use linerate_model::verdict::Verdict;
use schemars::JsonSchema;
use serde::Serialize;

use super::material::{Format, Material};
use super::verdict;

/// The shape; `schema` is raised when a field changes its meaning.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Page<'a> {
    schema: u32,
    run: &'a str,
    summary: Verdict,
    diagnosis: &'a Diagnosis,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    trials: &'a [Trial],
    /// What a survey announced before it measured: share, seconds and bytes of each link.
    #[serde(skip_serializing_if = "Option::is_none")]
    load: Option<&'a Announcement>,
    /// The drives of a run that surveyed them, the worst first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    drives: Vec<SurveyedDrive>,
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot_path: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reveal: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    imported: Option<&'a Imported>,
}

impl<'a> Page<'a> {
    fn of(snapshot: &'a Snapshot, diagnosis: &'a Diagnosis) -> Self {
        Self {
            schema: SCHEMA,
            run: &diagnosis.run,
            summary: verdict::of(snapshot, diagnosis),
            diagnosis,
            trials: &[],
            load: snapshot.announced.as_deref(),
            drives: surveyed_in(snapshot),
            snapshot_path: None,
            reveal: None,
            imported: None,
        }
    }
}

/// `linerate show RUN --json`.
#[derive(Debug)]
pub struct Json;

impl Format for Json {
    fn name(&self) -> &'static str {
        "json"
    }

    fn extension(&self) -> &'static str {
        "json"
    }

    fn render(&self, m: &Material<'_>) -> String {
        write(&Page {
            trials: m.trials,
            reveal: m.reveal,
            imported: m.snapshot.imported.as_deref(),
            ..Page::of(m.snapshot, m.diagnosis)
        })
    }
}

/// `{"schema":1,"run":…,"summary":…,"diagnosis":…}`, with the path of the stored snapshot where there is one.
pub fn page(snapshot: &Snapshot, diagnosis: &Diagnosis, snapshot_path: Option<&str>) -> String {
    write(&Page { snapshot_path, ..Page::of(snapshot, diagnosis) })
}

/// The same with the account of what was read of the files of others.
pub fn imported(snapshot: &Snapshot, diagnosis: &Diagnosis) -> String {
    // What is missing follows the verdict.
    let account = snapshot
        .imported
        .as_deref()
        .map(|account| Imported { missing: diagnosis.asked.clone(), ..account.clone() });
    let imported = account.as_ref();
    write(&Page { imported, ..Page::of(snapshot, diagnosis) })
}

fn write(page: &Page<'_>) -> String {
    // Numbers that are not finite become null, keys are strings: nothing here can fail.
    shown(serde_json::to_string_pretty(page).expect("plain model values always serialise")) + "\n"
}

/// JSON that a terminal shows as it is: of the characters that act on one JSON itself escapes those below 32
/// only. The others stand in strings only, where any character may be written as its number.
pub fn shown(text: String) -> String {
    let passes = |c: char| !is_control(c) || c == '\n';
    if text.chars().all(passes) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 64);
    for c in text.chars() {
        if passes(c) {
            out.push(c);
        } else {
            // All of them lie in the first plane; writing into a `String` cannot fail.
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_safe_on_a_terminal_and_stays_json() {
        let value = vec!["a\u{9b}\u{202e}\u{7f}\u{1b}\nä"];
        let safe = shown(serde_json::to_string_pretty(&value).unwrap());
        assert!(!safe.chars().any(|c| is_control(c) && c != '\n'), "{safe:?}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&safe).unwrap(), value);
    }
}
