//! A hypervisor whose bridge shows every frame to the firewall, which has a long list of rules for routed
//! traffic.

use super::fault::{Fault, FaultInfo, FaultTarget};
use super::host_firewall::long_list;
use crate::damage::{ClusterMachine, Damage};
use crate::error::Result;

pub(super) struct BridgeFilter;

const CALL: &str = "net.bridge.bridge-nf-call-iptables";

impl Fault for BridgeFilter {
    fn about(&self) -> &FaultInfo {
        static ABOUT: FaultInfo = FaultInfo::hypervisor(
            "bridge-filter",
            "bridge-firewall",
            "the bridge of a hypervisor shows the frames of its hosts to a firewall with 12 000 rules for routed traffic",
            &[],
        );
        &ABOUT
    }

    fn unavailable(&self) -> Option<String> {
        let file = std::path::Path::new("/proc/sys/net/bridge/bridge-nf-call-iptables");
        (!file.exists()).then(|| "this kernel has no netfilter in bridges".into())
    }

    fn inject(&self, damage: &mut Damage<'_>, target: &FaultTarget, _strength: f64) -> Result<()> {
        let machine = ClusterMachine::Hypervisor(damage.cluster.topology.hypervisor(target.hypervisor()?)?);
        let rules = long_list();
        damage.host_rules(
            machine,
            &format!("chain forward {{\ntype filter hook forward priority 0; policy accept;\n{rules}\n}}"),
        )?;
        damage.sysctl(machine, CALL, "1")
    }
}
