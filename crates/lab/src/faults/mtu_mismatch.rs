//! One host with a smaller MTU than its peers.

use super::fault::{Fault, FaultInfo, FaultTarget};
use crate::damage::Damage;
use crate::error::Result;

pub(super) struct MtuMismatch;

impl Fault for MtuMismatch {
    fn about(&self) -> &FaultInfo {
        static ABOUT: FaultInfo = FaultInfo::host(
            "mtu-mismatch",
            "mtu-mismatch",
            "the NIC of one host has MTU 1400, all others have 1500",
            &[],
        );
        &ABOUT
    }

    fn inject(&self, damage: &mut Damage<'_>, target: &FaultTarget, _strength: f64) -> Result<()> {
        let (_, machine) = damage.host(target.host()?)?;
        damage.ip(machine, "link set eth0 mtu 1400\n", "link set eth0 mtu 1500\n".into())
    }
}
