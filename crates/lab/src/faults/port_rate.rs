//! A rate limit on the switch port of one host, outside the host: towards it or from it.

use linerate_model::finding::Direction;

use super::fault::{Fault, FaultInfo, FaultTarget};
use crate::damage::{ClusterMachine, Damage};
use crate::error::Result;
use crate::topology::Topology;

pub(super) struct PortRate {
    about: FaultInfo,
}

/// Towards the host.
pub(super) static RX: PortRate = PortRate {
    about: FaultInfo::host(
        "rx-rate-cap",
        "port-rate-limited",
        "the switch port towards a host is limited to 25-50 % of the uplink",
        &[Direction::Rx],
    )
    .in_the_network(),
};

/// From the host.
pub(super) static TX: PortRate = PortRate {
    about: FaultInfo::host(
        "tx-rate-cap",
        "port-rate-limited",
        "the switch port from a host is limited to 25-50 % of the uplink",
        &[Direction::Tx],
    )
    .in_the_network(),
};

/// 25 to 50 % of the uplink of this hypervisor.
pub(super) fn capped_kbit(topology: &Topology, hypervisor: usize, strength: f64) -> u64 {
    (f64::from(topology.uplink_of(hypervisor).rate_mbit) * 1000.0 * (0.25 + 0.25 * strength)) as u64
}

/// A steady shaper. The burst holds the offloaded frames that TCP sends at such rates; the shaper cuts larger
/// ones, which would pass in lumps.
pub(super) fn shaper(kbit: u64) -> String {
    format!("tbf rate {kbit}kbit burst 32kb latency 30ms")
}

impl Fault for PortRate {
    fn about(&self) -> &FaultInfo {
        &self.about
    }

    fn inject(&self, damage: &mut Damage<'_>, target: &FaultTarget, strength: f64) -> Result<()> {
        let (plan, _) = damage.host(target.host()?)?;
        let switch = ClusterMachine::Hypervisor(plan.hypervisor);
        let port = plan.port();
        let shaper = shaper(capped_kbit(&damage.cluster.topology, plan.hypervisor, strength));
        if self.about.directions == [Direction::Rx] {
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
}
