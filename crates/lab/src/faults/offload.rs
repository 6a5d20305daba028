//! Offload switches in the wrong position: they cost CPU, or destroy the overlay.

use linerate_model::finding::Direction;
use linerate_sys::offload::OffloadSwitch;

use super::fault::{Fault, FaultInfo, FaultTarget};
use crate::damage::{ClusterMachine, Damage};
use crate::error::Result;
use crate::topology::UPLINK;

pub(super) struct Offload {
    about: FaultInfo,
    device: &'static str,
    switches: &'static [(OffloadSwitch, bool)],
}

/// The fault of the casebook.
pub(super) static GRO_OVERLAY: Offload = Offload {
    about: FaultInfo::hypervisor(
        "gro-overlay",
        "nic-gro-overlay",
        "receive offload of a hypervisor's uplink is on and destroys bursts of TCP inside vxlan",
        &[Direction::Rx],
    ),
    device: UPLINK,
    switches: &[(OffloadSwitch::Gro, true)],
};

/// Overlay packets are made one by one.
pub(super) static OVERLAY_OFFLOAD_OFF: Offload = Offload {
    about: FaultInfo::host(
        "overlay-offload-off",
        "overlay-offload-off",
        "the overlay device of one host has no offloads: each packet costs CPU",
        &[Direction::Tx],
    ),
    device: "vx0",
    switches: &[(OffloadSwitch::Tso, false), (OffloadSwitch::Gso, false), (OffloadSwitch::TxChecksum, false)],
};

/// All packets are made one by one.
pub(super) static TSO_OFF: Offload = Offload {
    about: FaultInfo::host(
        "tso-off",
        "tso-off",
        "the NIC of one host has no TCP segmentation offload: each packet costs CPU",
        &[Direction::Tx],
    ),
    device: "eth0",
    switches: &[(OffloadSwitch::Tso, false)],
};

/// Checksums are computed by the CPU; segmentation offload goes with them.
pub(super) static TX_CHECKSUM_OFF: Offload = Offload {
    about: FaultInfo::host(
        "tx-checksum-off",
        "tx-checksum-off",
        "the NIC of one host does not compute checksums, and so segments nothing either",
        &[Direction::Tx],
    ),
    device: "eth0",
    switches: &[(OffloadSwitch::TxChecksum, false)],
};

/// A packet has to lie in one piece; segmentation offload goes with it.
pub(super) static SCATTER_GATHER_OFF: Offload = Offload {
    about: FaultInfo::host(
        "scatter-gather-off",
        "scatter-gather-off",
        "the NIC of one host takes no packets in pieces, and so segments nothing either",
        &[Direction::Tx],
    ),
    device: "eth0",
    switches: &[(OffloadSwitch::ScatterGather, false)],
};

impl Fault for Offload {
    fn about(&self) -> &FaultInfo {
        &self.about
    }

    fn inject(&self, damage: &mut Damage<'_>, target: &FaultTarget, _strength: f64) -> Result<()> {
        let machine = match target {
            FaultTarget::Hypervisor(name) => {
                ClusterMachine::Hypervisor(damage.cluster.topology.hypervisor(name)?)
            }
            _ => damage.host(target.host()?)?.1,
        };
        damage.offload(machine, self.device, self.switches)
    }
}
