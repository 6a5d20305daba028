//! Faults of tunnel packets only; plain traffic passes.

use linerate_model::finding::Direction;

use super::fault::{Fault, FaultInfo, FaultTarget};
use crate::damage::Damage;
use crate::error::Result;
use crate::topology::UPLINK;

/// UDP port of the tunnel, as rules name it.
const TUNNEL: &str = "ether type ip udp dport 4789";

pub(super) struct Tunnel {
    about: FaultInfo,
    /// What happens to the packets of the tunnel, in the words of nftables.
    verdict: fn(f64) -> String,
}

/// A share of them is lost.
pub(super) static LOSS: Tunnel = Tunnel {
    about: FaultInfo::hypervisor(
        "tunnel-loss",
        "tunnel-loss",
        "2-5 % of the tunnel's packets into a hypervisor are lost, plain traffic passes",
        &[Direction::Rx],
    )
    .in_the_network(),
    verdict: |strength| format!("numgen random mod 100000 < {} drop", 2000 + (3000.0 * strength) as u32),
};

/// None arrives.
pub(super) static FILTERED: Tunnel = Tunnel {
    about: FaultInfo::hypervisor(
        "tunnel-filtered",
        "tunnel-blocked",
        "a filter drops the tunnel's packets from and to a hypervisor, plain traffic passes",
        &[Direction::Both],
    )
    .in_the_network(),
    verdict: |_| "drop".into(),
};

impl Fault for Tunnel {
    fn about(&self) -> &FaultInfo {
        &self.about
    }

    fn inject(&self, damage: &mut Damage<'_>, target: &FaultTarget, strength: f64) -> Result<()> {
        let topology = &damage.cluster.topology;
        let hypervisor = topology.hypervisor(target.hypervisor()?)?;
        let verdict = (self.verdict)(strength);
        let sides: &[&str] =
            if self.about.directions == [Direction::Both] { &["iifname", "oifname"] } else { &["iifname"] };
        let rules: Vec<String> =
            sides.iter().map(|side| format!("{side} \"{UPLINK}\" {TUNNEL} {verdict}")).collect();
        damage.bridge_rules(hypervisor, &rules.join("\n"))
    }
}
