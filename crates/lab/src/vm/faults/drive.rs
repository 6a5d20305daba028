//! One drive of many that is slow, late or gone.

use super::fault::{DriveTarget, VmFault};
use crate::error::Result;
use crate::vm::disk::Behaviour;
use crate::vm::lab::VmLab;
use crate::vm::stages::drives::{DrivesStage, GUEST, OPS_PER_S};
use crate::vm::stages::{Stage, StageVerdict};
use crate::vm::topology::VmTopology;

/// A drive of [`Drives`] that behaves differently from its peers.
pub(super) struct OneDrive {
    name: &'static str,
    summary: &'static str,
    what: &'static str,
    behave: fn(&mut Behaviour, f64),
    /// Shell lines that repair the volume once the drive is healthy again.
    repair: Option<&'static str>,
}

/// From a fifteenth to a seventh of the speed of the others: it slows the array down without any error.
pub(super) static SLOW_DRIVE: OneDrive = OneDrive {
    name: "slow-drive",
    summary: "one drive of 36 does 10 to 20 requests a second instead of 150",
    what: "slow-among-equals",
    behave: |b, strength| b.ops_per_s = 20.0 - 10.0 * strength,
    repair: None,
};

/// A drive that retries every read.
pub(super) static LATE_DRIVE: OneDrive = OneDrive {
    name: "late-drive",
    summary: "each request of one drive of 36 takes 60 to 120 ms more",
    what: "slow-among-equals",
    behave: |b, strength| b.delay_ms = 60.0 + 60.0 * strength,
    repair: None,
};

/// The array continues degraded.
pub(super) static FAILED_LEG: OneDrive = OneDrive {
    name: "failed-leg",
    summary: "one drive of 36 answers everything with an error, so that the volume goes on without it",
    what: "degraded",
    behave: |b, _| b.gone = true,
    // The volume takes its leg back and makes good what it missed, faster than it would beside the load by
    // itself.
    repair: Some(
        "echo 100000 >/proc/sys/dev/raid/speed_limit_min; lvchange -y --refresh vg0/home; for i in $(seq 1800); do \
         [ \"$(lvs --noheadings -o lv_health_status,sync_percent vg0/home | tr -d ' ')\" = 100.00 ] && exit 0; sleep 0.2; done; exit 1",
    ),
};

impl VmFault for OneDrive {
    fn name(&self) -> &'static str {
        self.name
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn stage(&self) -> &'static dyn Stage {
        &DrivesStage
    }

    fn targets(&self, topology: &VmTopology) -> Vec<DriveTarget> {
        let of = |guest: &super::super::topology::GuestPlan| {
            let name = guest.name.clone();
            guest.drives().into_iter().map(move |d| DriveTarget { guest: name.clone(), drive: d.name })
        };
        topology.guests.iter().filter(|g| g.name == GUEST).flat_map(of).collect()
    }

    fn inject(&self, lab: &VmLab, target: &DriveTarget, strength: f64) -> Result<()> {
        lab.guest(&target.guest)?.drive(&target.drive)?.behave(|b| (self.behave)(b, strength))
    }

    fn heal(&self, lab: &VmLab, target: &DriveTarget) -> Result<()> {
        let well = Behaviour { ops_per_s: OPS_PER_S, ..Behaviour::default() };
        lab.guest(&target.guest)?.drive(&target.drive)?.behave(|b| *b = well)?;
        self.repair.map_or(Ok(()), |lines| lab.exec(&target.guest, &["bash", "-c", lines]).map(drop))
    }

    fn truth(&self, topology: &VmTopology, target: &DriveTarget) -> Result<StageVerdict> {
        let device = topology.device(&target.guest, &target.drive)?;
        Ok(StageVerdict { host: target.guest.clone(), device, what: self.what.to_owned() })
    }
}
