//! Random loss in one direction at the switch port of a host.

use linerate_model::finding::Direction;

use super::fault::{Fault, FaultInfo, FaultTarget};
use crate::damage::Damage;
use crate::error::Result;

pub(super) struct Loss {
    about: FaultInfo,
    /// The side of the port at which packets in that direction are seen.
    side: &'static str,
}

/// Towards the host.
pub(super) static RX: Loss = Loss {
    about: FaultInfo::host(
        "loss-rx",
        "packet-loss",
        "1-2 % of the packets towards a host are lost at its switch port",
        &[Direction::Rx],
    )
    .in_the_network(),
    side: "oifname",
};

/// From the host.
pub(super) static TX: Loss = Loss {
    about: FaultInfo::host(
        "loss-tx",
        "packet-loss",
        "1-2 % of the packets from a host are lost at its switch port",
        &[Direction::Tx],
    )
    .in_the_network(),
    side: "iifname",
};

impl Fault for Loss {
    fn about(&self) -> &FaultInfo {
        &self.about
    }

    fn inject(&self, damage: &mut Damage<'_>, target: &FaultTarget, strength: f64) -> Result<()> {
        let (plan, _) = damage.host(target.host()?)?;
        let lost_of_100_000 = 1000 + (1000.0 * strength) as u32;
        let rule =
            format!("{} \"{}\" numgen random mod 100000 < {lost_of_100_000} drop", self.side, plan.port());
        damage.bridge_rules(plan.hypervisor, &rule)
    }
}
