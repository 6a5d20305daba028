//! A NIC to which packets are handed one by one although all its offload switches are on.

use linerate_model::finding::Direction;

use super::{Fault, Place, Truth};
use crate::damage::Damage;
use crate::error::Result;
use crate::topology::Topology;

pub(super) struct GsoSegments;

/// What the kernel gives every device.
const USUAL: u32 = 65_535;

impl Fault for GsoSegments {
    fn name(&self) -> &'static str {
        "gso-max-segs"
    }

    fn cause(&self) -> &'static str {
        "gso-max-segs-small"
    }

    fn summary(&self) -> &'static str {
        "the NIC of one host takes aggregated packets of one segment only: each packet costs CPU"
    }

    fn places(&self, topology: &Topology) -> Vec<Place> {
        Place::all_hosts(topology)
    }

    fn inject(&self, damage: &mut Damage<'_>, place: &Place, _strength: f64) -> Result<()> {
        let (_, machine) = damage.host(place.host()?)?;
        let set = |segments: u32| format!("link set eth0 gso_max_segs {segments}\n");
        damage.ip(machine, &set(1), set(USUAL))
    }

    fn truth(&self, topology: &Topology, place: &Place) -> Truth {
        Truth::host(self, topology, place, &[Direction::Tx])
    }
}
