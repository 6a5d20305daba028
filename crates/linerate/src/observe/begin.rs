//! How a run begins that is no survey: the snapshot with its hosts, stored with those that could not be
//! reached.

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
