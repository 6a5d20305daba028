//! The investigations of `cases/` as pasted texts: the imported text must get the verdict that the case
//! demands.

use std::path::Path;

use linerate_cases as case;
use linerate_model::snapshot::Snapshot;

use super::{file, read_one};

fn demanded(name: &str) -> case::Case {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../cases/casebook-{name}.toml"));
    case::parse(name, &std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Differences between the verdict on an imported text and the case.
fn differences(name: &str, snapshot: Snapshot, before: Option<Snapshot>) -> Vec<String> {
    let mut case = demanded(name);
    case.snapshot = snapshot;
    case.before = before;
    let diagnosis = linerate_report::words::written(case::diagnose(&case, crate::knowledge()));
    case::check(&case, &diagnosis)
}

fn holds(name: &str, pasted: &str) {
    let snapshot = read_one(file(&format!("casebook/{pasted}")));
    assert_eq!(differences(name, snapshot, None), Vec::<String>::new(), "{name}");
}

#[test]
fn a2_five_nodes() {
    holds("a2", "a2.md");
}

#[test]
fn a3_the_sixth_node_decides() {
    holds("a3", "a3.md");
}

#[test]
fn a4_the_fix_is_proven() {
    let (before, after) = (read_one(file("casebook/a3.md")), read_one(file("casebook/a4.md")));
    assert_eq!(differences("a4", after, Some(before)), Vec::<String>::new());
}

#[test]
fn a5_large_packets_vanish() {
    holds("a5", "a5.txt");
}

#[test]
fn b1_at_the_ceiling() {
    holds("b1", "b1.txt");
}

#[test]
fn b2_the_receiving_core() {
    holds("b2", "b2.txt");
}

#[test]
fn c2_two_levels() {
    holds("c2", "c2.txt");
}

#[test]
fn c4_two_levels_of_two_streams() {
    holds("c4", "c4.txt");
}

#[test]
fn e3_the_replication_layer() {
    holds("e3", "e3.txt");
}
