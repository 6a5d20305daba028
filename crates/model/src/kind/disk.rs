//! Requests to a file or a block device.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::test_plan::{OutOfLimits, TestPlan, check, ms};
use crate::disk_load::{
    BLOCK_BYTES_MAX, BLOCK_BYTES_MIN, DiskPhase, DiskTarget, Durable, OUTSTANDING_MAX, PHASE_MS_MAX,
    PHASES_MAX, THREADS_MAX,
};
use crate::load::LoadReport;

/// A load on a disk: one target, phases in their order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiskPlan {
    /// Where.
    pub target: DiskTarget,
    /// What, one after the other, 1 to [`PHASES_MAX`].
    pub phases: Vec<DiskPhase>,
    /// Longest time of each phase.
    pub phase_ms: u32,
    /// No phase moves more bytes than that; `None` leaves it to the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_max: Option<u64>,
    /// No phase makes more requests than that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_max: Option<u64>,
    /// Method of making requests by name; `None` takes the best that the host allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub way: Option<String>,
}

/// Filling a file or looking through a device, about.
const PREPARE: Duration = Duration::from_secs(6);
/// Filling a file, looking through a device, filling it with zeros again, at most.
const PREPARE_MAX: Duration = Duration::from_secs(180);
/// What may still be written when a phase is over.
const FLUSH_MAX: Duration = Duration::from_secs(30);

impl TestPlan for DiskPlan {
    fn name() -> &'static str {
        "disk"
    }

    fn title(&self) -> String {
        "disk".to_owned()
    }

    fn has_one_end(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), OutOfLimits> {
        let phases = self.phases.len();
        check((1..=PHASES_MAX).contains(&phases), "the number of phases", phases as f64, "1 to 32")?;
        check((1..=PHASE_MS_MAX).contains(&self.phase_ms), "phase_ms", self.phase_ms, "1 to 3600000")?;
        self.phases.iter().try_for_each(check_phase)
    }

    fn time_max(&self) -> Duration {
        let phases = u32::try_from(self.phases.len()).unwrap_or(u32::MAX);
        PREPARE_MAX + (ms(self.phase_ms) + FLUSH_MAX) * phases
    }

    fn expected(&self) -> Duration {
        let prepare = if self.target.is_writable() { PREPARE } else { Duration::ZERO };
        ms(u64::from(self.phase_ms) * self.phases.len() as u64) + prepare
    }

    fn missing(&self, tx: &LoadReport, _: &LoadReport) -> Option<&'static str> {
        tx.disk.as_ref().is_none_or(|d| d.phases.is_empty()).then_some("no request ended")
    }
}

fn check_phase(phase: &DiskPhase) -> Result<(), OutOfLimits> {
    let (bytes, under_way) = (phase.block_bytes, phase.outstanding());
    let sectors = (BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX).contains(&bytes) && bytes % BLOCK_BYTES_MIN == 0;
    check(sectors, "the size of a request", bytes, "a multiple of 512 from 512 to 16777216")?;
    check(phase.reads <= 100, "the share of reads", phase.reads, "0 to 100")?;
    check((1..=OUTSTANDING_MAX).contains(&under_way), "depth times threads", under_way, "1 to 4096")?;
    check(phase.threads <= THREADS_MAX, "the number of threads", phase.threads, "1 to 256")?;
    let flushes = !matches!(phase.durable, Durable::Data(0) | Durable::Full(0));
    check(flushes, "writes before a flush", 0, "1 or more")
}
