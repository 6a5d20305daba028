//! Random loss in one direction at the switch port of a host.

use linerate_model::finding::Direction;

use super::{Fault, Place, Truth};
use crate::damage::Damage;
use crate::error::Result;
use crate::topology::Topology;

/// Towards the host.
pub(super) static RX: Loss = Loss { direction: Direction::Rx };
/// From the host.
pub(super) static TX: Loss = Loss { direction: Direction::Tx };

pub(super) struct Loss {
    direction: Direction,
}

impl Fault for Loss {
    fn name(&self) -> &'static str {
        if self.direction == Direction::Rx { "loss-rx" } else { "loss-tx" }
    }

    fn cause(&self) -> &'static str {
        "packet-loss"
    }

    fn summary(&self) -> &'static str {
        if self.direction == Direction::Rx {
            "1-2 % of the packets towards a host are lost at its switch port"
        } else {
            "1-2 % of the packets from a host are lost at its switch port"
        }
    }

    fn outside_the_hosts(&self) -> bool {
        true
    }

    fn places(&self, topology: &Topology) -> Vec<Place> {
        Place::all_hosts(topology)
    }

    fn inject(&self, damage: &mut Damage<'_>, place: &Place, strength: f64) -> Result<()> {
        let (plan, _) = damage.host(place.host()?)?;
        let side = if self.direction == Direction::Rx { "oifname" } else { "iifname" };
        let lost_of_100_000 = 1000 + (1000.0 * strength) as u32;
        let rule = format!("{side} \"{}\" numgen random mod 100000 < {lost_of_100_000} drop", plan.port());
        damage.bridge_rules(plan.hypervisor, &rule)
    }

    fn truth(&self, topology: &Topology, place: &Place) -> Truth {
        Truth::host(self, topology, place, &[self.direction])
    }
}
