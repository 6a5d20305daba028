//! A rate limit on the switch port of one host, outside the host: towards it or from it.

use linerate_model::finding::Direction;

use super::{Fault, Place, Truth};
use crate::damage::{Damage, Machine};
use crate::error::Result;
use crate::topology::Topology;

/// Towards the host.
pub(super) static RX: PortRate = PortRate { direction: Direction::Rx };
/// From the host.
pub(super) static TX: PortRate = PortRate { direction: Direction::Tx };

pub(super) struct PortRate {
    direction: Direction,
}

/// 25 to 50 % of the uplink of this hypervisor.
pub(super) fn capped_kbit(topology: &Topology, hypervisor: usize, strength: f64) -> u64 {
    (f64::from(topology.uplink_of(hypervisor).rate_mbit) * 1000.0 * (0.25 + 0.25 * strength)) as u64
}

/// A steady shaper. The burst holds the offloaded frames that TCP sends at such rates; the shaper cuts larger ones, which
/// would pass in lumps.
pub(super) fn shaper(kbit: u64) -> String {
    format!("tbf rate {kbit}kbit burst 32kb latency 30ms")
}

impl Fault for PortRate {
    fn name(&self) -> &'static str {
        if self.direction == Direction::Rx { "rx-rate-cap" } else { "tx-rate-cap" }
    }

    fn cause(&self) -> &'static str {
        "port-rate-limited"
    }

    fn summary(&self) -> &'static str {
        if self.direction == Direction::Rx {
            "the switch port towards a host is limited to 25-50 % of the uplink"
        } else {
            "the switch port from a host is limited to 25-50 % of the uplink"
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
        let switch = Machine::Hypervisor(plan.hypervisor);
        let port = plan.port();
        let shaper = shaper(capped_kbit(&damage.cluster.topology, plan.hypervisor, strength));
        if self.direction == Direction::Rx {
            return damage.tc(
                switch,
                &format!("qdisc add dev {port} root {shaper}\n"),
                format!("qdisc del dev {port} root\n"),
            );
        }
        // What comes in can only be shaped by sending it through a device of its own.
        damage.ip(switch, "link add ifb0 type ifb\nlink set ifb0 up\n", "link del ifb0\n".into())?;
        damage.tc(
            switch,
            &format!(
                "qdisc add dev ifb0 root {shaper}\nqdisc add dev {port} ingress\nfilter add dev {port} parent ffff: \
                 protocol all u32 match u32 0 0 action mirred egress redirect dev ifb0\n"
            ),
            format!("qdisc del dev {port} ingress\n"),
        )
    }

    fn truth(&self, topology: &Topology, place: &Place) -> Truth {
        Truth::host(self, topology, place, &[self.direction])
    }
}
