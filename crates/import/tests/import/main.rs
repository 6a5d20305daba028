//! Texts that real tools printed, and texts as people paste them: what is understood of them, and what the
//! verdict is.

// Helpers of tests may fail the test as loudly as the tests themselves.
#![allow(clippy::unwrap_used)]

mod asked;
mod bounds;
mod casebook;
mod faults;
mod first;
mod formats;
mod honest;
mod keys;
mod pasted;
mod random;
mod readers;
mod sentences;
mod shapes;
mod tables;
mod texts;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use linerate_import::{Document, ImportOptions, read};
use linerate_knowledge::Knowledge;
use linerate_model::fact::FactValue;
use linerate_model::imported::Imported;
use linerate_model::sample::{Measurement, Outcome, Sample};
use linerate_model::snapshot::Snapshot;

/// The knowledge of the program, read once: unoptimised that takes half a second.
fn knowledge() -> &'static Knowledge {
    static BUILTIN: LazyLock<Knowledge> = LazyLock::new(|| Knowledge::builtin().unwrap());
    &BUILTIN
}

/// Folder of the fixtures.
fn files() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files")
}

/// Bytes of a fixture.
fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(files().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// A fixture as a file of that name.
fn file(name: &str) -> Document {
    Document::new(name, bytes(name))
}

/// A fixture below a prompt: the command ran on arc-1.
fn under_prompt(name: &str, command: &str) -> Document {
    let text = format!("[root@arc-1 ~]# {command}\n{}", String::from_utf8(bytes(name)).unwrap());
    Document::new("session.txt", text)
}

fn read_one(document: Document) -> Snapshot {
    read(&[document], &ImportOptions::default())
}

fn account(snapshot: &Snapshot) -> &Imported {
    snapshot.imported.as_ref().unwrap()
}

/// Everything was understood.
fn whole(snapshot: &Snapshot) {
    assert_eq!(account(snapshot).unread, [], "{:#?}", account(snapshot));
}

fn measured(sample: &Sample) -> &Measurement {
    match &sample.outcome {
        Outcome::Measured(m) => m,
        other => panic!("{other:?}"),
    }
}

/// Sender, receiver and Mbit/s of each sample.
fn rates(snapshot: &Snapshot) -> Vec<(String, String, f64)> {
    let rate = |s: &Sample| measured(s).throughput_bps.unwrap_or(-1.0);
    snapshot
        .samples
        .iter()
        .map(|s| (s.test.from.clone(), s.test.to.clone(), (rate(s) / 1e4).round() / 100.0))
        .collect()
}

fn is(from: &str, to: &str, mbit: f64) -> (String, String, f64) {
    (from.to_owned(), to.to_owned(), mbit)
}

fn fact<'s>(snapshot: &'s Snapshot, host: &str, key: &str) -> Option<&'s FactValue> {
    snapshot.facts.get(host)?.readings.get(key)
}

fn counter(snapshot: &Snapshot, host: &str, key: &str) -> Option<i64> {
    snapshot.facts.get(host)?.counters.get(key).copied()
}
