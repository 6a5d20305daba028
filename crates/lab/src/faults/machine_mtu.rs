//! A hypervisor whose uplink has a smaller MTU than the hosts on it.

use super::fault::{Fault, FaultInfo, FaultTarget};
use crate::damage::{ClusterMachine, Damage};
use crate::error::Result;
use crate::topology::UPLINK;

pub(super) struct MachineMtuLow;

impl Fault for MachineMtuLow {
    fn about(&self) -> &FaultInfo {
        static ABOUT: FaultInfo = FaultInfo::hypervisor(
            "machine-mtu-low",
            "machine-mtu-low",
            "the uplink of a hypervisor has MTU 1300, the hosts on it and all other devices have 1500",
            &[],
        );
        &ABOUT
    }

    fn inject(&self, damage: &mut Damage<'_>, target: &FaultTarget, _strength: f64) -> Result<()> {
        let machine = ClusterMachine::Hypervisor(damage.cluster.topology.hypervisor(target.hypervisor()?)?);
        let set = |mtu: u32| format!("link set {UPLINK} mtu {mtu}\n");
        damage.ip(machine, &set(1300), set(1500))
    }
}
