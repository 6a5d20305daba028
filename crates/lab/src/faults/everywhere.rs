//! The same wrong sysctl on every host: a default, not a difference. No host stands out; everything is slower than it could be.

use linerate_model::finding::{Direction, Element};

use super::host_sysctl::{self, HostSysctl};
use super::{Fault, Place, Truth};
use crate::damage::{Damage, Machine};
use crate::error::Result;
use crate::topology::Topology;

pub(super) struct Everywhere {
    name: &'static str,
    summary: &'static str,
    of: &'static HostSysctl,
}

/// Receive buffers.
pub(super) static SMALL_RMEM: Everywhere = Everywhere {
    name: "small-rmem-everywhere",
    summary: "tcp_rmem of every host ends at 24 kB, as a shared image would have it",
    of: &host_sysctl::SMALL_RMEM,
};

/// Send buffers.
pub(super) static SMALL_WMEM: Everywhere = Everywhere {
    name: "small-wmem-everywhere",
    summary: "tcp_wmem of every host ends at 16 kB, as a shared image would have it",
    of: &host_sysctl::SMALL_WMEM,
};

impl Fault for Everywhere {
    fn name(&self) -> &'static str {
        self.name
    }

    fn cause(&self) -> &'static str {
        self.of.cause()
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn places(&self, _topology: &Topology) -> Vec<Place> {
        vec![Place::Everywhere]
    }

    fn inject(&self, damage: &mut Damage<'_>, _place: &Place, _strength: f64) -> Result<()> {
        (0..damage.cluster.hosts.len()).try_for_each(|host| self.of.set(damage, Machine::Host(host)))
    }

    fn truth(&self, _topology: &Topology, _place: &Place) -> Truth {
        Truth::at(Element::All, Direction::Both, self.cause())
    }
}
