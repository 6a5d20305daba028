//! A slow path from one hypervisor to another one, in the core: each of them is fine with all others.

use super::fault::{Fault, FaultInfo, FaultTarget};
use super::port_rate::{capped_kbit, shaper};
use crate::cluster::core_port;
use crate::damage::{ClusterMachine, Damage};
use crate::error::Result;

pub(super) struct SlowBetweenGroups;

impl Fault for SlowBetweenGroups {
    fn about(&self) -> &FaultInfo {
        static ABOUT: FaultInfo = FaultInfo::between(
            "slow-between-groups",
            "path-between-groups-slow",
            "the core carries 25-50 % of the uplink from one hypervisor to another one",
        )
        .in_the_network();
        &ABOUT
    }

    fn inject(&self, damage: &mut Damage<'_>, target: &FaultTarget, strength: f64) -> Result<()> {
        let FaultTarget::Between(from, to) = target else {
            return Err(target.unfit("a pair of hypervisors such as a:b"));
        };
        let topology = &damage.cluster.topology;
        let (from, to) = (topology.hypervisor(from)?, topology.hypervisor(to)?);
        let port = core_port(from);
        let [kbit, other] = [from, to].map(|end| capped_kbit(topology, end, strength));
        let shaper = shaper(kbit.min(other));
        // What comes in can only be shaped by sending it through a device of its own.
        damage.ip(
            ClusterMachine::Core,
            "link add ifb0 type ifb\nlink set ifb0 up\n",
            "link del ifb0\n".into(),
        )?;
        let mut lines =
            vec![format!("qdisc add dev ifb0 root {shaper}"), format!("qdisc add dev {port} ingress")];
        let into = topology.hosts().into_iter().filter(|h| h.hypervisor == to);
        lines.extend(into.map(|host| {
            let address = host.underlay();
            format!(
                "filter add dev {port} parent ffff: protocol ip u32 match ip dst {address}/32 \
                 action mirred egress redirect dev ifb0"
            )
        }));
        let lines = lines.join("\n") + "\n";
        damage.tc(ClusterMachine::Core, &lines, format!("qdisc del dev {port} ingress\n"))
    }
}
