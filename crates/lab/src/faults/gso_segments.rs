//! A NIC to which packets are handed one by one although all its offload switches are on.

use linerate_model::finding::Direction;

use super::fault::{Fault, FaultInfo, FaultTarget};
use crate::damage::Damage;
use crate::error::Result;

pub(super) struct GsoSegments;

/// What the kernel gives every device.
const USUAL: u32 = 65_535;

impl Fault for GsoSegments {
    fn about(&self) -> &FaultInfo {
        static ABOUT: FaultInfo = FaultInfo::host(
            "gso-max-segs",
            "gso-max-segs-small",
            "the NIC of one host takes aggregated packets of one segment only: each packet costs CPU",
            &[Direction::Tx],
        );
        &ABOUT
    }

    fn inject(&self, damage: &mut Damage<'_>, target: &FaultTarget, _strength: f64) -> Result<()> {
        let (_, machine) = damage.host(target.host()?)?;
        let set = |segments: u32| format!("link set eth0 gso_max_segs {segments}\n");
        damage.ip(machine, &set(1), set(USUAL))
    }
}
