//! How a run begins that is no survey: the snapshot with its hosts, stored with those that could not be
//! reached; and how every run ends.

use linerate_model::finding::Diagnosis;
use linerate_model::inventory::Inventory;
use linerate_model::snapshot::Snapshot;

use linerate_fleet::Fleet;
use linerate_fleet::clock;
use linerate_store::{Store, StoreError};

/// Begins a run of now.
///
/// # Errors
/// The store cannot be written.
pub(super) fn begin(fleet: &Fleet, inventory: &Inventory, store: &mut Store) -> Result<Snapshot, StoreError> {
    let snapshot = Snapshot {
        schema: linerate_model::SCHEMA,
        id: crate::run_id::new_id(),
        start_ms: clock::now_ms(),
        inventory: inventory.clone(),
        gaps: fleet.gaps.clone(),
        ..Snapshot::default()
    };
    store.begin_run(&snapshot, None)?;
    for gap in &snapshot.gaps {
        store.add_gap(&snapshot.id, gap)?;
    }
    Ok(snapshot)
}

/// Ends a run: stored with its diagnosis. A call that failed is no run: it is not stored, and has no id.
///
/// # Errors
/// The store cannot be written.
pub(super) fn end(
    store: &mut Store,
    snapshot: &mut Snapshot,
    diagnosis: &mut Diagnosis,
    has_failed: bool,
) -> Result<(), StoreError> {
    if has_failed {
        store.discard(&snapshot.id)?;
        snapshot.id.clear();
        diagnosis.run.clear();
        return Ok(());
    }
    store.finish(snapshot, diagnosis)
}
