//! An overlay whose MTU ignores its own headers, in a network that drops fragments.

use super::fault::{Fault, FaultInfo, FaultTarget};
use crate::damage::{ClusterMachine, Damage};
use crate::error::Result;

const TOO_LARGE: u32 = 1500;

pub(super) struct OverlayMtuTooLarge;

impl Fault for OverlayMtuTooLarge {
    fn about(&self) -> &FaultInfo {
        static ABOUT: FaultInfo = FaultInfo::everywhere(
            "overlay-mtu-too-large",
            "overlay-mtu-too-large",
            "the overlay has MTU 1500 on a network of MTU 1500, and fragments are dropped",
        );
        &ABOUT
    }

    fn inject(&self, damage: &mut Damage<'_>, _target: &FaultTarget, _strength: f64) -> Result<()> {
        let normal = damage.cluster.topology.overlay.mtu;
        for index in 0..damage.cluster.hosts.len() {
            let plan = &damage.cluster.hosts[index].0;
            let (locked, plain) = (plan.overlay_route(Some(TOO_LARGE)), plan.overlay_route(None));
            // For senders on the same machine the kernel feeds the smaller MTU of the path back into the
            // overlay. Real overlays end in containers, which it does not reach: the locked route stands for
            // them.
            damage.ip(
                ClusterMachine::Host(index),
                &format!("link set vx0 mtu {TOO_LARGE}\n{locked}"),
                format!("{plain}link set vx0 mtu {normal}\n"),
            )?;
        }
        for hypervisor in 0..damage.cluster.hypervisors.len() {
            damage.bridge_rules(hypervisor, "ether type ip ip frag-off & 0x3fff != 0 drop")?;
        }
        Ok(())
    }
}
