//! A hypervisor whose uplink has a smaller MTU than the hosts on it.

use super::{Fault, Place, Truth};
use crate::cluster::UPLINK;
use crate::damage::{Damage, Machine};
use crate::error::Result;
use crate::topology::Topology;

pub(super) struct MachineMtuLow;

impl Fault for MachineMtuLow {
    fn name(&self) -> &'static str {
        "machine-mtu-low"
    }

    fn cause(&self) -> &'static str {
        "machine-mtu-low"
    }

    fn summary(&self) -> &'static str {
        "the uplink of a hypervisor has MTU 1300, the hosts on it and all other devices have 1500"
    }

    fn places(&self, topology: &Topology) -> Vec<Place> {
        Place::all_hypervisors(topology)
    }

    fn inject(&self, damage: &mut Damage<'_>, place: &Place, _strength: f64) -> Result<()> {
        let machine = Machine::Hypervisor(damage.cluster.topology.hypervisor(place.hypervisor()?)?);
        let set = |mtu: u32| format!("link set {UPLINK} mtu {mtu}\n");
        damage.ip(machine, &set(1300), set(1500))
    }

    fn truth(&self, topology: &Topology, place: &Place) -> Truth {
        Truth::group(self, topology, place, &[])
    }
}
