//! Two hosts that cannot reach each other while both reach all others.

use super::fault::{Fault, FaultInfo, FaultTarget};
use crate::damage::Damage;
use crate::error::Result;

pub(super) struct PathBlocked;

impl Fault for PathBlocked {
    fn about(&self) -> &FaultInfo {
        static ABOUT: FaultInfo = FaultInfo::pair(
            "path-blocked",
            "path-blocked",
            "a filter in the network drops everything between two hosts",
        )
        .in_the_network();
        &ABOUT
    }

    fn inject(&self, damage: &mut Damage<'_>, target: &FaultTarget, _strength: f64) -> Result<()> {
        let (a, b) = target.pair()?;
        let ((a, _), (b, _)) = (damage.host(a)?, damage.host(b)?);
        let (from, to) = (a.underlay(), b.underlay());
        let rules = format!("ip saddr {from} ip daddr {to} drop\nip saddr {to} ip daddr {from} drop");
        damage.bridge_rules(a.hypervisor, &rules)
    }
}
