//! What programs read on stderr while a command with `--json` runs: one JSON object per line, described in
//! `docs/guide/programs.md`. A shape that is there is never changed; fields may be added.
//!
//! What comes in: events. What goes out: their lines. Without `--json`, or with `--quiet`, stderr is for
//! people.

use std::sync::atomic::{AtomicBool, Ordering};

use schemars::JsonSchema;
use serde::Serialize;

/// Something that happened.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub(super) enum Event<'a> {
    /// A phase begins.
    Begin {
        phase: &'a str,
        /// What is counted.
        unit: &'a str,
        total: usize,
        /// Seconds that it should take, where that is known.
        expected_s: Option<f64>,
    },
    /// How far it is.
    Progress {
        phase: &'a str,
        unit: &'a str,
        done: usize,
        total: usize,
        /// Of the phase so far; `None` before anything is done.
        rate_per_s: Option<f64>,
        /// About so long until its end, where that is known.
        left_s: Option<f64>,
        /// The current step, in words.
        what: &'a str,
    },
    /// It is over.
    End { phase: &'a str, unit: &'a str, done: usize, total: usize, took_s: f64, rate_per_s: Option<f64> },
    /// A remark for people.
    Note { text: &'a str },
    /// Why the command could not run; nothing follows.
    Error { message: &'a str, hints: &'a [String] },
}

/// A line.
#[derive(Serialize, JsonSchema)]
pub(super) struct Line<'a> {
    schema: u32,
    /// Unix milliseconds.
    at_ms: u64,
    #[serde(flatten)]
    event: &'a Event<'a>,
}

/// Whether stderr is for programs. One for the whole program: whatever is said there has to keep to it.
static WANTED: AtomicBool = AtomicBool::new(false);

/// From now on stderr is for programs.
pub(super) fn want() {
    WANTED.store(true, Ordering::Relaxed);
}

/// Whether it is.
pub(super) fn are_wanted() -> bool {
    WANTED.load(Ordering::Relaxed)
}

/// An event as its line, without the end of it.
pub(super) fn line(event: &Event<'_>, at_ms: u64) -> String {
    let line = Line { schema: linerate_model::SCHEMA, at_ms, event };
    serde_json::to_string(&line).expect("texts, counts and finite numbers")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page that describes them.
    const PAGE: &str = include_str!("../../../../docs/guide/programs.md");

    #[test]
    fn the_guide_describes_every_event_and_field() {
        let events = [
            Event::Begin { phase: "measuring", unit: "tests", total: 3, expected_s: Some(1.0) },
            Event::Progress {
                phase: "measuring",
                unit: "tests",
                done: 1,
                total: 3,
                rate_per_s: None,
                left_s: None,
                what: "",
            },
            Event::End {
                phase: "measuring",
                unit: "tests",
                done: 3,
                total: 3,
                took_s: 1.0,
                rate_per_s: Some(3.0),
            },
            Event::Note { text: "" },
            Event::Error { message: "", hints: &[] },
        ];
        for event in &events {
            let value: serde_json::Value = serde_json::from_str(&line(event, 1)).unwrap();
            let name = value["event"].as_str().unwrap();
            let row = PAGE.lines().find(|l| l.starts_with(&format!("| `{name}` |")));
            let row = row.unwrap_or_else(|| panic!("no row for {name}"));
            for field in value.as_object().unwrap().keys() {
                let common = ["schema", "at_ms", "event"].contains(&field.as_str());
                let shown = if common { PAGE } else { row };
                assert!(shown.contains(&format!("`{field}`")), "{name}: {field}");
            }
        }
    }
}
