//! The reasoning: a snapshot and the knowledge come in, a diagnosis goes out.
//!
//! Pure: no file, no clock, no socket, no randomness except from a given seed. The same snapshot gives the
//! same findings on any machine. It never measures and never changes anything.
#![deny(missing_docs)]

// The stages, in their order.

// What was measured, and what of it is valid.
mod evidence;

// What should be reached.
mod ceilings;

// How far off each cell is in each metric, against its noise.
mod metrics;

// Which suspects explain it.
mod locate;

// Why.
mod attribute;

// What is one finding.
mod merge;

// Which measurement would decide.
mod next;

// The numbers of all of them.
pub mod rules;

mod advice;
pub mod calibrate;
pub mod case;
mod context;
pub mod diff;
pub mod disks;
pub mod front_ends;
mod remarks;
pub mod replica_limits;
pub mod stats;
mod storage;
mod together;
pub mod trial;
mod verdict;

use linerate_knowledge::Knowledge;
use linerate_model::finding::{Cell, Diagnosis};
use linerate_model::plan::Test;
use linerate_model::snapshot::Snapshot;

use crate::rules::Rules;

/// What is wrong in this snapshot, where and why.
pub fn diagnose(snapshot: &Snapshot, knowledge: &Knowledge) -> Diagnosis {
    diagnose_with(snapshot, knowledge, &Rules::DEFAULT)
}

/// The same by other numbers.
pub fn diagnose_with(snapshot: &Snapshot, knowledge: &Knowledge, rules: &Rules) -> Diagnosis {
    verdict::diagnose(snapshot, knowledge, rules)
}

/// The matrix: one cell per ordered pair and layer that was measured, beside its ceiling.
pub fn cells(snapshot: &Snapshot) -> Vec<Cell> {
    let rules = &Rules::DEFAULT;
    let cells = evidence::collect(snapshot, rules);
    let ports = ceilings::Ports::seen(&cells, &rules.ceilings);
    let facts = evidence::Facts::new(snapshot, rules);
    let (cells, ceilings) = ceilings::with_ceilings(&facts, cells, &ports);
    ceilings::report(&cells, ceilings)
}

/// Whether a UDP probe asks how many packets a path carries rather than how many bytes: its rate is no share
/// of what TCP reached.
#[must_use]
pub fn asks_for_packets(kind: &linerate_model::kind::TestKind) -> bool {
    evidence::is_small(kind, &Rules::DEFAULT.evidence)
}

/// The tests of the adaptive second stage: what would tell apart what the evidence so far cannot, serial,
/// each pair and kind with its repetitions. Empty when nothing is open. Numbers of tests start at `first_id`.
pub fn second_stage(snapshot: &Snapshot, knowledge: &Knowledge, first_id: u32) -> Vec<Test> {
    verdict::second_stage(snapshot, knowledge, first_id, &Rules::DEFAULT)
}
