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
mod alike;
pub mod calibrate;
pub mod compared;
mod connections;
mod context;
pub mod diff;
pub mod disks;
pub mod drops;
pub mod front_ends;
pub mod history;
mod other_traffic;
mod remarks;
pub mod replica_limits;
pub mod stats;
mod storage;
mod stored_outliers;
mod symptoms;
mod together;
pub mod trial;

use std::collections::BTreeMap;
use std::time::Duration;

pub use ceilings::{LinkSpeeds, link_speeds};
use linerate_knowledge::Knowledge;
use linerate_model::fact::HostFacts;
use linerate_model::finding::{Cell, Diagnosis, Finding};
use linerate_model::inventory::{HostName, Inventory};
use linerate_model::plan::Test;
use linerate_model::remark::Remark;
use linerate_model::snapshot::Snapshot;
pub use next::commands as commands_asked;

use crate::attribute::Judged;
use crate::calibrate::Calibration;
use crate::ceilings::Ports;
use crate::context::Context;
use crate::evidence::{CellEvidence, Facts};
use crate::rules::Rules;

/// What is wrong in this snapshot, where and why.
pub fn diagnose(snapshot: &Snapshot, knowledge: &Knowledge) -> Diagnosis {
    diagnose_with(snapshot, knowledge, &Rules::DEFAULT)
}

/// The same by other numbers.
pub fn diagnose_with(snapshot: &Snapshot, knowledge: &Knowledge, rules: &Rules) -> Diagnosis {
    let calibration = &Calibration::of(&rules.calibration, snapshot.imported.is_some());
    let (context, report) = context(snapshot, rules);
    let judged = located(&context, knowledge);
    let confirmed = judged.iter().filter(|j| !j.located.unconfirmed);
    let losses = confirmed.map(|j| attribute::finding(&context, j, calibration)).collect();
    let mut storage = attribute::of_storage(&context, knowledge, calibration);
    storage.extend(attribute::of_drives(&context, knowledge, calibration));
    let settings = merge::of_settings(&context, &judged, &storage, knowledge, calibration);
    let (mut findings, consequences) = merge::merge(&context, knowledge, losses, settings, storage);
    findings.extend(merge::of_standing(&context, &findings, knowledge, calibration));
    let remarks: Vec<Remark> =
        consequences.into_iter().chain(remarks(&context, &report, &judged, &findings, knowledge)).collect();
    let mut diagnosis = Diagnosis {
        schema: linerate_model::SCHEMA,
        run: snapshot.id.clone(),
        summary: remarks::summary(&context, &report, &judged),
        asked: next::asked(snapshot, knowledge.topics(), &remarks, &findings),
        remarks,
        advice: advice::of(&context.facts, &context.cells, &report, &findings),
        findings,
        not_used: remarks::not_used(snapshot, &report, rules),
        blind: remarks::blind(snapshot),
        cells: report,
        ..Diagnosis::default()
    };
    if let Some(before) = before(snapshot) {
        compared::add(&before, snapshot, &mut diagnosis);
    }
    diagnosis
}

/// The state before a change, where imported evidence holds all pairs twice, as in two tables.
fn before(snapshot: &Snapshot) -> Option<Snapshot> {
    let earlier = &snapshot.imported.as_ref()?.earlier;
    let samples: Vec<_> = earlier.iter().filter(|e| e.whole).map(|e| e.sample.clone()).collect();
    let inventory = snapshot.inventory.clone();
    (!samples.is_empty()).then(|| Snapshot { inventory, samples, ..Snapshot::default() })
}

/// The matrix: one cell per ordered pair and layer that was measured, beside its ceiling.
pub fn cells(snapshot: &Snapshot) -> Vec<Cell> {
    measured(snapshot, &Rules::DEFAULT).3
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
    let (context, _) = context(snapshot, &Rules::DEFAULT);
    let mut tests: Vec<Test> = Vec::new();
    let judged = located(&context, knowledge);
    for judged in &judged {
        next::add_new(&mut tests, next::tests(&context, judged));
    }
    next::add_new(&mut tests, next::longer(&context, &judged));
    for (id, test) in (first_id..).zip(&mut tests) {
        test.id = id;
    }
    tests
}

/// Time that the second stage needs for longer transfers, since rules with limits were read.
#[must_use]
pub fn longer_transfers(inventory: &Inventory, facts: &BTreeMap<HostName, HostFacts>) -> Duration {
    next::longer_time(inventory, facts, &Rules::DEFAULT.next)
}

/// Stages 1 and 2: what is known and what was measured, beside its ceilings.
fn measured<'a>(
    snapshot: &'a Snapshot,
    rules: &'a Rules,
) -> (Facts<'a>, Vec<CellEvidence<'a>>, Ports<'a>, Vec<Cell>) {
    let facts = Facts::new(snapshot, rules);
    let cells = evidence::collect(snapshot, rules);
    let ports = Ports::seen(&cells, &rules.ceilings);
    let (cells, ceilings) = ceilings::with_ceilings(&facts, cells, &ports);
    let report = ceilings::report(&cells, ceilings);
    (facts, cells, ports, report)
}

/// The first three stages: also how far off the cells are.
fn context<'a>(snapshot: &'a Snapshot, rules: &'a Rules) -> (Context<'a>, Vec<Cell>) {
    let (facts, cells, ports, report) = measured(snapshot, rules);
    let rows = metrics::rows(&facts, &cells, &report, &ports);
    (Context::new(facts, cells, rows, ports), report)
}

/// Stages 4 and 5: the suspects that explain it, with their causes.
fn located<'a, 'k>(context: &Context<'a>, knowledge: &'k Knowledge) -> Vec<Judged<'a, 'k>> {
    let inventory = &context.facts.snapshot.inventory;
    let hypotheses = locate::columns(inventory, &context.cells, &context.rows, context.facts.rules);
    locate::locate(inventory, &context.cells, &hypotheses, &context.rows, context.facts.rules)
        .into_iter()
        .map(|l| attribute::judge(context, l, knowledge))
        .collect()
}

/// What is worth knowing and is no finding, from everywhere.
fn remarks(
    context: &Context<'_>,
    report: &[Cell],
    judged: &[Judged<'_, '_>],
    findings: &[Finding],
    knowledge: &Knowledge,
) -> Vec<Remark> {
    let mut remarks = remarks::of_tests(context, report, judged);
    let disks = storage::remarks(context.facts.snapshot, &context.facts.rules.disks);
    remarks.extend(disks.into_iter().map(Remark::Disk));
    remarks.extend(together::remarks(&context.facts));
    remarks.extend(stored_outliers::remarks(&context.facts));
    remarks.extend(together::sent_again(&context.facts, report, findings));
    remarks.extend(connections::remarks(context));
    remarks.extend(other_traffic::remarks(context));
    remarks.extend(remarks::front_ends(&context.facts));
    remarks.extend(symptoms::remarks(context, report));
    if findings.is_empty() && remarks.is_empty() {
        remarks.extend(remarks::read(context.facts.snapshot, knowledge));
    }
    remarks.extend(remarks::paced(context.facts.snapshot));
    remarks.extend(remarks::methods(context.facts.snapshot));
    remarks
}
