//! A shaper on a host's own NIC that somebody forgot.

use linerate_model::finding::Direction;

use super::port_rate::{capped_kbit, shaper};
use super::{Fault, Place, Truth};
use crate::damage::Damage;
use crate::error::Result;
use crate::topology::Topology;

pub(super) struct ForgottenShaper;

impl Fault for ForgottenShaper {
    fn name(&self) -> &'static str {
        "forgotten-shaper"
    }

    fn cause(&self) -> &'static str {
        "forgotten-shaper"
    }

    fn summary(&self) -> &'static str {
        "a token bucket on a host's own NIC limits what it sends to 25-50 % of the uplink"
    }

    fn places(&self, topology: &Topology) -> Vec<Place> {
        Place::all_hosts(topology)
    }

    fn inject(&self, damage: &mut Damage<'_>, place: &Place, strength: f64) -> Result<()> {
        let (plan, machine) = damage.host(place.host()?)?;
        let shaper = shaper(capped_kbit(&damage.cluster.topology, plan.hypervisor, strength));
        damage.tc(machine, &format!("qdisc add dev eth0 root {shaper}\n"), "qdisc del dev eth0 root\n".into())
    }

    fn truth(&self, topology: &Topology, place: &Place) -> Truth {
        Truth::host(self, topology, place, &[Direction::Tx])
    }
}
