//! What the network does to packets of the tunnel only; plain traffic passes.

use linerate_model::finding::Direction;

use super::{Fault, Place, Truth};
use crate::cluster::UPLINK;
use crate::damage::Damage;
use crate::error::Result;
use crate::topology::Topology;

/// UDP port of the tunnel, as rules name it.
const TUNNEL: &str = "ether type ip udp dport 4789";

pub(super) struct Tunnel {
    name: &'static str,
    cause: &'static str,
    summary: &'static str,
    direction: Direction,
    /// What happens to the packets of the tunnel, in the words of nftables.
    verdict: fn(f64) -> String,
}

/// A share of them is lost.
pub(super) static LOSS: Tunnel = Tunnel {
    name: "tunnel-loss",
    cause: "tunnel-loss",
    summary: "2-5 % of the tunnel's packets into a hypervisor are lost, plain traffic passes",
    direction: Direction::Rx,
    verdict: |strength| format!("numgen random mod 100000 < {} drop", 2000 + (3000.0 * strength) as u32),
};

/// None arrives.
pub(super) static FILTERED: Tunnel = Tunnel {
    name: "tunnel-filtered",
    cause: "tunnel-blocked",
    summary: "a filter drops the tunnel's packets from and to a hypervisor, plain traffic passes",
    direction: Direction::Both,
    verdict: |_| "drop".into(),
};

impl Fault for Tunnel {
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
        let topology = &damage.cluster.topology;
        let hypervisor = topology.hypervisor(place.hypervisor()?)?;
        let verdict = (self.verdict)(strength);
        let sides: &[&str] =
            if self.direction == Direction::Both { &["iifname", "oifname"] } else { &["iifname"] };
        let rules: Vec<String> =
            sides.iter().map(|side| format!("{side} \"{UPLINK}\" {TUNNEL} {verdict}")).collect();
        damage.bridge_rules(hypervisor, &rules.join("\n"))
    }

    fn truth(&self, topology: &Topology, place: &Place) -> Truth {
        Truth::group(self, topology, place, &[self.direction])
    }
}
