//! A flapping uplink.

use std::time::Duration;

use linerate_model::finding::Direction;

use super::fault::{Fault, FaultInfo, FaultTarget};
use crate::damage::{ClusterMachine, Damage};
use crate::error::Result;
use crate::namespace::Namespace;
use crate::periodic::Periodic;
use crate::topology::UPLINK;

/// A flapping link has flapped before the survey.
const EARLIER: usize = 5;
const UP: Duration = Duration::from_millis(350);
const DOWN: Duration = Duration::from_millis(60);

pub(super) struct UplinkFlapping;

impl Fault for UplinkFlapping {
    fn about(&self) -> &FaultInfo {
        static ABOUT: FaultInfo = FaultInfo::hypervisor(
            "uplink-flapping",
            "uplink-flapping",
            "the uplink of a hypervisor loses its carrier for 60 ms, twice a second",
            &[Direction::Both],
        )
        .in_the_network();
        &ABOUT
    }

    fn inject(&self, damage: &mut Damage<'_>, target: &FaultTarget, _strength: f64) -> Result<()> {
        let hypervisor = damage.cluster.topology.hypervisor(target.hypervisor()?)?;
        let namespace = ClusterMachine::Hypervisor(hypervisor).of(damage.cluster).again()?;
        for _ in 0..EARLIER {
            flap(&namespace)?;
        }
        let flapping = Periodic::start("uplink-flapping", UP, move || {
            // A lab that is going away has no link to flap.
            let _ = flap(&namespace);
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

fn flap(namespace: &Namespace) -> Result<()> {
    namespace.ip(&format!("link set {UPLINK} carrier off\n"))?;
    std::thread::sleep(DOWN);
    namespace.ip(&format!("link set {UPLINK} carrier on\n"))
}
