//! Polls device settings and makes the lab follow them. While the receive offload of an uplink is on, the
//! wire behind it behaves like the NIC of the casebook. An uplink MTU below that of the network drops larger
//! packets, as a real NIC does and a virtual one does not. The overlay MTU sets the packet size of its users
//! (containers), whatever the network below carries.
//!
//! In: namespaces and wires. Out: a setting of the wires, a route of the hosts. It never switches anything on
//! a device.

use std::sync::Arc;
use std::time::Duration;

use linerate_sys::offload::{Ethtool, OffloadSwitch};

use crate::error::{LabError, Result};
use crate::namespace::Namespace;
use crate::periodic::Periodic;
use crate::topology::{HostPlan, OVERLAY, UPLINK};
use crate::wire::settings::Shared;
use crate::wire::{Toward, Wire};

const PERIOD: Duration = Duration::from_millis(100);
/// MTU of everything below the overlay.
const NETWORK_MTU: u32 = 1500;

/// The watching thread; ends when dropped.
#[derive(Debug)]
pub struct DeviceWatch(#[expect(dead_code, reason = "it is here to be dropped")] Periodic);

impl DeviceWatch {
    /// Watches the uplink of each hypervisor for the wire at the same index, and the overlay of each host.
    pub fn start(
        hypervisors: &[Namespace],
        wires: &[Wire],
        hosts: &[(HostPlan, Namespace)],
        overlay_mtu: u32,
    ) -> Result<Self> {
        let mut uplinks: Vec<(Ethtool, [Arc<Shared>; 2])> = Vec::new();
        for (hypervisor, wire) in hypervisors.iter().zip(wires) {
            let ethtool = hypervisor
                .run(Ethtool::open)?
                .map_err(LabError::at(format!("opening a socket in {}", hypervisor.name)))?;
            let both = [Toward::Hypervisor, Toward::Core].map(|toward| Arc::clone(wire.toward(toward)));
            uplinks.push((ethtool, both));
        }
        let mut overlays = Vec::new();
        for (plan, namespace) in hosts {
            let namespace = namespace.again()?;
            overlays.push(Overlay { plan: plan.clone(), namespace, mtu: overlay_mtu, fits: overlay_mtu });
        }
        let watch = Periodic::start("device-watch", PERIOD, move || {
            poll(&uplinks);
            overlays.iter_mut().for_each(Overlay::follow);
        })?;
        Ok(Self(watch))
    }
}

/// The overlay of one host.
struct Overlay {
    plan: HostPlan,
    namespace: Namespace,
    /// As last seen.
    mtu: u32,
    /// The largest that the network below carries.
    fits: u32,
}

impl Overlay {
    fn follow(&mut self) {
        // A device that is going away has no MTU to follow.
        let Ok(mtu) = self.namespace.mtu(OVERLAY) else { return };
        if mtu == self.mtu {
            return;
        }
        let route = self.plan.overlay_route((mtu > self.fits).then_some(mtu));
        // On failure the next poll tries again.
        if self.namespace.ip(&route).is_ok() {
            self.mtu = mtu;
        }
    }
}

fn poll(watched: &[(Ethtool, [Arc<Shared>; 2])]) {
    for (ethtool, [inward, outward]) in watched {
        // A device that is going away has nothing to follow.
        if let Ok(on) = ethtool.get(UPLINK, OffloadSwitch::Gro)
            && inward.get().destroys_joined_overlay != on
        {
            inward.update(|s| s.destroys_joined_overlay = on);
        }
        let Ok(mtu) = ethtool.mtu(UPLINK) else { continue };
        let limit = if mtu < NETWORK_MTU { mtu } else { 0 };
        for wire in [inward, outward].into_iter().filter(|wire| wire.get().nic_mtu != limit) {
            wire.update(|s| s.nic_mtu = limit);
        }
    }
}
