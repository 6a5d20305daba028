//! A smaller MTU of one device on the path, or of a route.

use linerate_model::random::Random;

use super::fault::{DrawnFault, Mechanism, at_host, two_hosts};
use crate::cluster::Cluster;
use crate::damage::ClusterMachine;
use crate::topology::OVERLAY;

/// At `eth0` or the overlay's device of a host, or at the port of its hypervisor.
pub(super) fn of_a_device(cluster: &Cluster, random: &mut Random) -> Option<DrawnFault> {
    let topology = &cluster.topology;
    let (host, peer) = two_hosts(topology, random)?;
    let mtu = 600 + 50 * random.below(17);
    let port = host.port();
    let (device, on_host) = [("eth0", true), (OVERLAY, true), (port.as_str(), false)][random.below(3)];
    let device = device.to_owned();
    let (name, number) = (host.name.clone(), host.hypervisor);
    let truth = at_host(topology, &host, &[]);
    Some(DrawnFault {
        summary: format!("the MTU of {device} at {name} is {mtu}"),
        truth,
        mechanism: Mechanism::Size,
        signs: vec![format!("nic.{device}.mtu")],
        ends: (name.clone(), peer.name),
        make: Box::new(move |damage| {
            let machine = if on_host { damage.host(&name)?.1 } else { ClusterMachine::Hypervisor(number) };
            let old = machine.of(damage.cluster).mtu(&device)?;
            let set = |mtu: &dyn std::fmt::Display| format!("link set {device} mtu {mtu}\n");
            damage.ip(machine, &set(&mtu), set(&old))
        }),
    })
}
