//! The hands of a trial on real nodes. Comes in: open sessions. Goes out: values read back, outcomes of
//! tests.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use linerate_model::change::{Change, ReadBack};
use linerate_model::fact::FactKey;
use linerate_model::inventory::Inventory;
use linerate_model::plan::Test;
use linerate_model::sample::Outcome;

use super::drive::{HostActions, Tested};
use crate::observe::{disturb, measure};
use linerate_fleet::Fleet;
use linerate_fleet::changes::{FleetChangeError, FleetChanges};
use linerate_fleet::clock;

/// A worthless measurement is repeated within this time; later the deadline of the node comes too near.
const REPEAT_WITHIN: Duration = Duration::from_secs(5);

/// Hands on the sessions of a fleet; see the file's head.
#[derive(Debug)]
pub struct FleetActions<'a> {
    fleet: &'a Fleet,
    inventory: &'a Inventory,
    changes: FleetChanges<'a>,
}

impl<'a> FleetActions<'a> {
    /// Hands on these sessions.
    pub fn new(fleet: &'a Fleet, inventory: &'a Inventory) -> Self {
        Self { fleet, inventory, changes: FleetChanges::new(fleet, inventory) }
    }

    /// Ends the sessions that were opened again. The others belong to the caller.
    pub async fn bye(self) {
        self.changes.bye().await;
    }
}

impl HostActions for FleetActions<'_> {
    async fn apply(
        &mut self,
        host: &str,
        trial: &str,
        changes: &[Change],
        deadline_s: u32,
    ) -> Result<ReadBack, FleetChangeError> {
        self.changes.apply(host, trial, changes, deadline_s).await
    }

    async fn revert(&mut self, host: &str, trial: &str) -> Result<ReadBack, FleetChangeError> {
        self.changes.revert(host, trial).await
    }

    async fn extend(&mut self, host: &str, trial: &str, deadline_s: u32) -> Result<(), FleetChangeError> {
        self.changes.extend(host, trial, deadline_s).await
    }

    async fn keep(
        &mut self,
        host: &str,
        trial: &str,
        changes: &[Change],
    ) -> Result<Vec<PathBuf>, FleetChangeError> {
        self.changes.keep(host, trial, changes).await
    }

    async fn undo(&mut self, host: &str, trial: &str) -> Result<ReadBack, FleetChangeError> {
        self.changes.undo(host, trial).await
    }

    async fn read(&mut self, host: &str, keys: &[FactKey]) -> Result<ReadBack, FleetChangeError> {
        self.changes.read(host, keys).await
    }

    async fn measure(&mut self, test: &Test) -> Tested {
        let begun = Instant::now();
        loop {
            let start_ms = clock::now_ms();
            let sample = measure::measure(self.fleet, self.inventory, test, measure::Patience::Usual).await;
            let spans = disturb::read(self.inventory.disturbances.as_deref());
            let span = disturb::harm(&spans, start_ms, clock::now_ms(), &test.kind);
            let contended = span.map(|span| span.reason.clone());
            let is_good = contended.is_none() && !matches!(sample.outcome, Outcome::Invalid { .. });
            if is_good || begun.elapsed() > REPEAT_WITHIN {
                return Tested { outcome: sample.outcome, contended };
            }
        }
    }
}
