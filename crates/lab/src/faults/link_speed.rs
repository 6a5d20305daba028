//! An uplink that negotiated and reports a lower speed than the others.

use linerate_model::finding::Direction;

use super::fault::{Fault, FaultInfo, FaultTarget};
use crate::damage::{ClusterMachine, Damage};
use crate::error::Result;
use crate::topology::UPLINK;
use crate::wire::Toward;

pub(super) struct LinkSpeedLow;

impl Fault for LinkSpeedLow {
    fn about(&self) -> &FaultInfo {
        static ABOUT: FaultInfo = FaultInfo::hypervisor(
            "link-speed-low",
            "link-speed-low",
            "the uplink of a hypervisor came up with a quarter to a half of its speed, as its NIC reports",
            &[Direction::Both],
        )
        .in_the_network();
        &ABOUT
    }

    fn inject(&self, damage: &mut Damage<'_>, target: &FaultTarget, strength: f64) -> Result<()> {
        let hypervisor = damage.cluster.topology.hypervisor(target.hypervisor()?)?;
        let machine = ClusterMachine::Hypervisor(hypervisor);
        let full = damage.cluster.topology.uplink_of(hypervisor).rate_mbit;
        let slow = (f64::from(full) * (0.25 + 0.25 * strength)) as u32;
        damage.step(
            |c| machine.of(c).set_speed(UPLINK, slow),
            move |c| machine.of(c).set_speed(UPLINK, full),
        )?;
        for toward in [Toward::Hypervisor, Toward::Core] {
            damage.wire(hypervisor, toward, |s| s.rate_bps = u64::from(slow) * 1_000_000)?;
        }
        Ok(())
    }
}
