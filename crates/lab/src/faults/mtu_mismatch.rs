//! One host with a smaller MTU than its peers.

use super::{Fault, Place, Truth};
use crate::damage::Damage;
use crate::error::Result;
use crate::topology::Topology;

pub(super) struct MtuMismatch;

impl Fault for MtuMismatch {
    fn name(&self) -> &'static str {
        "mtu-mismatch"
    }

    fn cause(&self) -> &'static str {
        "mtu-mismatch"
    }

    fn summary(&self) -> &'static str {
        "the NIC of one host has MTU 1400, all others have 1500"
    }

    fn places(&self, topology: &Topology) -> Vec<Place> {
        Place::all_hosts(topology)
    }

    fn inject(&self, damage: &mut Damage<'_>, place: &Place, _strength: f64) -> Result<()> {
        let (_, machine) = damage.host(place.host()?)?;
        damage.ip(machine, "link set eth0 mtu 1400\n", "link set eth0 mtu 1500\n".into())
    }

    fn truth(&self, topology: &Topology, place: &Place) -> Truth {
        Truth::host(self, topology, place, &[])
    }
}
