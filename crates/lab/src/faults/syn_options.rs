//! What a device on the path changes in the options of connections that are opened through it.

use linerate_model::finding::Direction;

use super::fault::{Fault, FaultInfo, FaultTarget};
use crate::damage::Damage;
use crate::error::Result;
use crate::topology::UPLINK;

pub(super) struct SynOptions {
    about: FaultInfo,
    /// What happens to a segment that opens a connection, in the words of nftables.
    change: &'static str,
}

/// The window scale is taken out.
pub(super) static WINDOW_SCALE: SynOptions = SynOptions {
    about: FaultInfo::hypervisor(
        "window-scale-stripped",
        "window-scale-stripped",
        "a device before a hypervisor takes the window scale out of what opens a connection",
        &[Direction::Both],
    )
    .in_the_network(),
    change: "reset tcp option window",
};

/// Selective acknowledgements are taken out.
pub(super) static SACK: SynOptions = SynOptions {
    about: FaultInfo::hypervisor(
        "sack-stripped",
        "tcp-option-stripped",
        "a device before a hypervisor takes SACK out of what opens a connection",
        &[Direction::Both],
    )
    .in_the_network(),
    change: "reset tcp option sack-perm",
};

/// The segment size is made small.
pub(super) static SEGMENT: SynOptions = SynOptions {
    about: FaultInfo::hypervisor(
        "mss-clamped",
        "mss-clamped",
        "a device before a hypervisor clamps the segments of its connections to 256 bytes",
        &[Direction::Both],
    )
    .in_the_network(),
    change: "tcp option maxseg size set 256",
};

impl Fault for SynOptions {
    fn about(&self) -> &FaultInfo {
        &self.about
    }

    fn inject(&self, damage: &mut Damage<'_>, target: &FaultTarget, _strength: f64) -> Result<()> {
        let hypervisor = damage.cluster.topology.hypervisor(target.hypervisor()?)?;
        let rule = |side: &str| {
            format!("{side} \"{UPLINK}\" ether type ip tcp flags & (syn | rst) == syn {}", self.change)
        };
        damage.bridge_rules(hypervisor, &format!("{}\n{}", rule("iifname"), rule("oifname")))
    }
}
