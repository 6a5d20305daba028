//! A forwarding entry of the tunnel of one host that sends what is for another one to its former address.

use super::fault::{Fault, FaultInfo, FaultTarget};
use crate::damage::Damage;
use crate::error::Result;

pub(super) struct WrongForwarding;

impl Fault for WrongForwarding {
    fn about(&self) -> &FaultInfo {
        static ABOUT: FaultInfo = FaultInfo::pair(
            "wrong-forwarding",
            "forwarding-entry-wrong",
            "the tunnel of one host sends what is for another one to an address that it had before",
        );
        &ABOUT
    }

    fn inject(&self, damage: &mut Damage<'_>, target: &FaultTarget, _strength: f64) -> Result<()> {
        let (a, b) = target.pair()?;
        let ((_, machine), (peer, _)) = (damage.host(a)?, damage.host(b)?);
        let entry =
            |to: &str| format!("fdb replace {} dev vx0 dst {to} self permanent\n", peer.overlay_mac());
        let (wrong, right) =
            (entry(&format!("10.77.0.{}", 200 + peer.number)), entry(&peer.underlay().to_string()));
        damage.step(|c| machine.of(c).bridge(&wrong), move |c| machine.of(c).bridge(&right))
    }
}
