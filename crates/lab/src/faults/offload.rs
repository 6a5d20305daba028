//! Offload switches in the wrong position: they cost CPU, or destroy the overlay.

use linerate_model::finding::Direction;
use linerate_sys::offload::Switch;

use super::{Fault, Place, Truth};
use crate::cluster::UPLINK;
use crate::damage::{Damage, Machine};
use crate::error::Result;
use crate::topology::Topology;

pub(super) struct Offload {
    name: &'static str,
    cause: &'static str,
    summary: &'static str,
    /// On the hypervisor, not on a host.
    on_hypervisor: bool,
    device: &'static str,
    switches: &'static [(Switch, bool)],
    direction: Direction,
}

/// The fault of the casebook.
pub(super) static GRO_OVERLAY: Offload = Offload {
    name: "gro-overlay",
    cause: "nic-gro-overlay",
    summary: "receive offload of a hypervisor's uplink is on and destroys bursts of TCP inside vxlan",
    on_hypervisor: true,
    device: UPLINK,
    switches: &[(Switch::Gro, true)],
    direction: Direction::Rx,
};

/// Overlay packets are made one by one.
pub(super) static OVERLAY_OFFLOAD_OFF: Offload = Offload {
    name: "overlay-offload-off",
    cause: "overlay-offload-off",
    summary: "the overlay device of one host has no offloads: each packet costs CPU",
    on_hypervisor: false,
    device: "vx0",
    switches: &[(Switch::Tso, false), (Switch::Gso, false), (Switch::TxChecksum, false)],
    direction: Direction::Tx,
};

/// All packets are made one by one.
pub(super) static TSO_OFF: Offload = Offload {
    name: "tso-off",
    cause: "tso-off",
    summary: "the NIC of one host has no TCP segmentation offload: each packet costs CPU",
    on_hypervisor: false,
    device: "eth0",
    switches: &[(Switch::Tso, false)],
    direction: Direction::Tx,
};

/// Checksums are computed by the CPU; segmentation offload goes with them.
pub(super) static TX_CHECKSUM_OFF: Offload = Offload {
    name: "tx-checksum-off",
    cause: "tx-checksum-off",
    summary: "the NIC of one host does not compute checksums, and so segments nothing either",
    on_hypervisor: false,
    device: "eth0",
    switches: &[(Switch::TxChecksum, false)],
    direction: Direction::Tx,
};

/// A packet has to lie in one piece; segmentation offload goes with it.
pub(super) static SCATTER_GATHER_OFF: Offload = Offload {
    name: "scatter-gather-off",
    cause: "scatter-gather-off",
    summary: "the NIC of one host takes no packets in pieces, and so segments nothing either",
    on_hypervisor: false,
    device: "eth0",
    switches: &[(Switch::ScatterGather, false)],
    direction: Direction::Tx,
};

impl Fault for Offload {
    fn name(&self) -> &'static str {
        self.name
    }

    fn cause(&self) -> &'static str {
        self.cause
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn places(&self, topology: &Topology) -> Vec<Place> {
        if self.on_hypervisor { Place::all_hypervisors(topology) } else { Place::all_hosts(topology) }
    }

    fn inject(&self, damage: &mut Damage<'_>, place: &Place, _strength: f64) -> Result<()> {
        let machine = if self.on_hypervisor {
            Machine::Hypervisor(damage.cluster.topology.hypervisor(place.hypervisor()?)?)
        } else {
            damage.host(place.host()?)?.1
        };
        damage.offload(machine, self.device, self.switches)
    }

    fn truth(&self, topology: &Topology, place: &Place) -> Truth {
        if self.on_hypervisor {
            Truth::group(self, topology, place, &[self.direction])
        } else {
            Truth::host(self, topology, place, &[self.direction])
        }
    }
}
