//! Faults of the wire between a hypervisor and the core.

use linerate_model::finding::Direction;

use super::{Fault, Place, Truth};
use crate::damage::Damage;
use crate::error::Result;
use crate::topology::Topology;
use crate::wire::Toward;
use crate::wire::settings::Settings;

pub(super) struct UplinkFault {
    name: &'static str,
    cause: &'static str,
    summary: &'static str,
    direction: Direction,
    change: fn(&mut Settings, f64),
}

/// 25 to 50 % of the rate.
fn slower(settings: &mut Settings, strength: f64) {
    settings.rate_bps = (settings.rate_bps as f64 * (0.25 + 0.25 * strength)) as u64;
}

/// What the hypervisor receives is limited.
pub(super) static HYPERVISOR_RX_CAP: UplinkFault = UplinkFault {
    name: "hypervisor-rx-cap",
    cause: "uplink-rate-limited",
    summary: "the uplink of a hypervisor is limited to 25-50 % in the receive direction",
    direction: Direction::Rx,
    change: slower,
};

/// The whole uplink is slow.
pub(super) static SLOW_UPLINK: UplinkFault = UplinkFault {
    name: "slow-uplink",
    cause: "uplink-slow",
    summary: "the uplink of a hypervisor runs at 25-50 % of its rate in both directions",
    direction: Direction::Both,
    change: slower,
};

/// Two rates in turn.
pub(super) static CAPACITY_FLAPPING: UplinkFault = UplinkFault {
    name: "capacity-flapping",
    cause: "capacity-flapping",
    summary: "the uplink of a hypervisor jumps between its rate and a quarter of it every 100-200 ms, receiving",
    direction: Direction::Rx,
    change: |settings, _| settings.flapping_rate_bps = settings.rate_bps / 4,
};

/// Full-size packets vanish.
pub(super) static PMTU_BLACK_HOLE: UplinkFault = UplinkFault {
    name: "pmtu-black-hole",
    cause: "pmtu-black-hole",
    summary: "the uplink of a hypervisor silently drops packets of more than 1400 bytes, receiving",
    direction: Direction::Rx,
    change: |settings, _| settings.packet_bytes_max = 1400,
};

/// Packets overtake each other.
pub(super) static REORDERING: UplinkFault = UplinkFault {
    name: "reordering",
    cause: "packet-reordering",
    summary: "2-4 % of the packets into a hypervisor are overtaken by later ones",
    direction: Direction::Rx,
    change: |settings, strength| settings.reorder_ppm = 20_000 + (20_000.0 * strength) as u32,
};

impl Fault for UplinkFault {
    fn name(&self) -> &'static str {
        self.name
    }

    fn cause(&self) -> &'static str {
        self.cause
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn outside_the_hosts(&self) -> bool {
        true
    }

    fn places(&self, topology: &Topology) -> Vec<Place> {
        Place::all_hypervisors(topology)
    }

    fn inject(&self, damage: &mut Damage<'_>, place: &Place, strength: f64) -> Result<()> {
        let hypervisor = damage.cluster.topology.hypervisor(place.hypervisor()?)?;
        damage.wire(hypervisor, Toward::Hypervisor, |s| (self.change)(s, strength))?;
        if self.direction == Direction::Both {
            damage.wire(hypervisor, Toward::Core, |s| (self.change)(s, strength))?;
        }
        Ok(())
    }

    fn truth(&self, topology: &Topology, place: &Place) -> Truth {
        Truth::group(self, topology, place, &[self.direction])
    }
}
