//! A shaper on a host's own NIC that was forgotten.

use linerate_model::finding::Direction;

use super::fault::{Fault, FaultInfo, FaultTarget};
use super::port_rate::{capped_kbit, shaper};
use crate::damage::Damage;
use crate::error::Result;

pub(super) struct ForgottenShaper;

impl Fault for ForgottenShaper {
    fn about(&self) -> &FaultInfo {
        static ABOUT: FaultInfo = FaultInfo::host(
            "forgotten-shaper",
            "forgotten-shaper",
            "a token bucket on a host's own NIC limits what it sends to 25-50 % of the uplink",
            &[Direction::Tx],
        );
        &ABOUT
    }

    fn inject(&self, damage: &mut Damage<'_>, target: &FaultTarget, strength: f64) -> Result<()> {
        let (plan, machine) = damage.host(target.host()?)?;
        let shaper = shaper(capped_kbit(&damage.cluster.topology, plan.hypervisor, strength));
        damage.tc(machine, &format!("qdisc add dev eth0 root {shaper}\n"), "qdisc del dev eth0 root\n".into())
    }
}
