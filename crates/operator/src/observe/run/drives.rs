//! The drives of all hosts as a part of a survey, when the pairs are done: nothing of ours loads a host
//! meanwhile.
//!
//! What comes in: the facts of the survey. What goes out: samples of drives in the same snapshot, read within
//! the limits of `linerate disk survey`. A budget keeps time for them, and they end with it.

use std::time::Duration;

use linerate_diagnose::disks;

use super::Survey;
use crate::observe::disk_survey::{DiskSurveyOrder, DrivePart, PHASE_MS};
use linerate_store::StoreError;

/// Share of a budget that drives may have at most.
const BUDGET_MAX: f64 = 0.4;
/// Tests of a drive: at random offsets and in a row, and once more those that seem slow.
const TESTS: u32 = 4;
/// Reading the counters of quiet drives takes about as long, with what the network adds.
const AROUND: Duration = Duration::from_secs(3);

impl Survey<'_> {
    /// Keeps time of the budget for the drives.
    pub(super) fn keep_time_for_drives(&mut self) {
        let (true, Some(budget)) = (self.order.drives, self.order.budget) else { return };
        let most = disks::hosts_with_drives(&self.snapshot)
            .map(|(_, facts)| disks::surveyed(facts, &[]).len())
            .max()
            .unwrap_or(0);
        let each = Duration::from_millis(u64::from(PHASE_MS)) * TESTS;
        let expected = AROUND + each * u32::try_from(most).unwrap_or(u32::MAX);
        self.for_drives = expected.min(budget.mul_f64(BUDGET_MAX));
    }

    /// Reads the drives.
    pub(super) async fn drives(&mut self) -> Result<(), StoreError> {
        if !self.order.drives {
            return Ok(());
        }
        let until = self.order.budget.map(|budget| self.started + budget);
        let order = DiskSurveyOrder::usual(until);
        let (fleet, inventory, progress) = (self.fleet, self.order.inventory, self.progress);
        let part = DrivePart { fleet, inventory, order: &order, progress };
        part.read(&mut self.snapshot, self.store).await
    }
}
