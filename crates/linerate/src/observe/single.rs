//! One test that somebody asked for, stored as a run of its own.
//!
//! What comes in: open sessions and tests. What goes out: a snapshot with their samples and a diagnosis that holds one
//! sentence and the worst of what they show; both are in the store. It reads no facts and judges no setting: a survey does.

use linerate_model::finding::Diagnosis;
use linerate_model::inventory::Inventory;
use linerate_model::load::TestKind;
use linerate_model::plan::Test;
use linerate_model::sample::Sample;
use linerate_model::snapshot::Snapshot;

use super::clock;
use super::measure::{self, Patience};
use crate::fleet::Fleet;
use crate::report::single;
use crate::store::{Store, StoreError};

/// Runs the tests one after the other. Those of kind `http` have one end.
pub async fn run(
    fleet: &Fleet,
    inventory: &Inventory,
    store: &mut Store,
    tests: &[Test],
) -> Result<(Snapshot, Diagnosis), StoreError> {
    let mut snapshot = Snapshot {
        schema: linerate_model::SCHEMA,
        id: clock::new_id(),
        start_ms: clock::now_ms(),
        inventory: inventory.clone(),
        gaps: fleet.gaps.clone(),
        ..Snapshot::default()
    };
    store.begin_run(&snapshot, None)?;
    for gap in &snapshot.gaps {
        store.add_gap(&snapshot.id, gap)?;
    }
    for test in tests {
        let sample = one(fleet, inventory, test).await;
        store.add_samples(&snapshot.id, std::slice::from_ref(&sample))?;
        snapshot.samples.push(sample);
    }
    let diagnosis = Diagnosis {
        schema: linerate_model::SCHEMA,
        run: snapshot.id.clone(),
        headline: single::headline(&snapshot.samples),
        cells: Vec::new(),
        findings: Vec::new(),
        refused: Vec::new(),
        notes: Vec::new(),
        blind: snapshot.gaps.clone(),
    };
    store.finish(&snapshot, &diagnosis)?;
    Ok((snapshot, diagnosis))
}

async fn one(fleet: &Fleet, inventory: &Inventory, test: &Test) -> Sample {
    match test.kind {
        TestKind::Http(_) => measure::alone(fleet, inventory, test).await,
        _ => measure::measure(fleet, inventory, test, Patience::Usual).await,
    }
}
