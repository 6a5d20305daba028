//! A flapping link, as with a loose plug or a dying optic.

use std::time::Duration;

use super::fault::{Fault, FaultInfo, FaultTarget};
use crate::damage::Damage;
use crate::error::Result;
use crate::periodic::Periodic;

pub(super) struct HostLinkFlap;

const UP: Duration = Duration::from_millis(350);
const DOWN: Duration = Duration::from_millis(60);

impl Fault for HostLinkFlap {
    fn about(&self) -> &FaultInfo {
        static ABOUT: FaultInfo = FaultInfo::host(
            "host-link-flap",
            "host-link-flapping",
            "the link of one host goes down for 60 ms about twice a second",
            &[],
        )
        .in_the_network();
        &ABOUT
    }

    fn inject(&self, damage: &mut Damage<'_>, target: &FaultTarget, _strength: f64) -> Result<()> {
        let (plan, _) = damage.host(target.host()?)?;
        let hypervisor = damage.cluster.hypervisors[plan.hypervisor].again()?;
        let port = plan.port();
        let flapping = Periodic::start("host-link-flap", UP, move || {
            // A lab that is going away has no plug to move.
            let _ = hypervisor.ip(&format!("link set {port} down\n"));
            std::thread::sleep(DOWN);
            let _ = hypervisor.ip(&format!("link set {port} up\n"));
        })?;
        damage.step(
            |_| Ok(()),
            move |_| {
                drop(flapping);
                Ok(())
            },
        )
    }
}
