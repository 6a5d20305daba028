//! A queue discipline: at a device of a host for what it sends, behind an `ifb` for what it receives, or at
//! the port of the hypervisor that it hangs on.

use linerate_model::finding::Direction;
use linerate_model::random::Random;

use super::fault::{DrawnFault, Mechanism, at_host, two_hosts};
use crate::cluster::Cluster;
use crate::damage::ClusterMachine;
use crate::topology::OVERLAY;

/// A discipline with what it does, in words. `kbit` is the rate of the component.
fn discipline(random: &mut Random, kbit: u64) -> (String, String, Mechanism) {
    let share = kbit * (15 + random.below(45) as u64) / 100;
    match random.below(4) {
        0 | 1 => (
            format!("tbf rate {share}kbit burst 32kb latency 30ms"),
            format!("shapes to {share} kbit/s"),
            Mechanism::Rate,
        ),
        2 => (
            format!("tbf rate {share}kbit burst 16kb latency 500ms"),
            format!("shapes to {share} kbit/s and queues half a second"),
            Mechanism::Rate,
        ),
        _ => {
            let mib = 1 + random.below(4);
            (
                format!("tbf rate {share}kbit burst {mib}mb latency 30ms"),
                format!("shapes to {share} kbit/s after a burst of {mib} MB"),
                Mechanism::Rate,
            )
        }
    }
}

/// At `eth0` or the overlay's device of a host: what it sends, or what it receives.
pub(super) fn of_a_host(cluster: &Cluster, random: &mut Random) -> Option<DrawnFault> {
    let topology = &cluster.topology;
    let (host, peer) = two_hosts(topology, random)?;
    let device = ["eth0", OVERLAY][random.below(2)];
    let is_sending = random.below(2) == 0;
    let kbit = u64::from(topology.uplink_of(host.hypervisor).rate_mbit) * 1000;
    let (queue, words, mechanism) = discipline(random, kbit);
    let direction = if is_sending { Direction::Tx } else { Direction::Rx };
    let (name, ends) = (host.name.clone(), (host.name.clone(), peer.name));
    let sign = if is_sending { format!("nic.{device}.qdisc") } else { "nic.ifb0.".into() };
    Some(DrawnFault {
        summary: format!("{device} of {name} {words}, {}", if is_sending { "sending" } else { "receiving" }),
        truth: at_host(topology, &host, &[direction]),
        mechanism,
        signs: vec![sign],
        ends,
        make: Box::new(move |damage| {
            let (_, machine) = damage.host(&name)?;
            if is_sending {
                let forth = format!("qdisc add dev {device} root {queue}\n");
                return damage.tc(machine, &forth, format!("qdisc del dev {device} root\n"));
            }
            damage.ip(machine, "link add ifb0 type ifb\nlink set ifb0 up\n", "link del ifb0\n".into())?;
            damage.tc(machine, &redirected(device, &queue), format!("qdisc del dev {device} ingress\n"))
        }),
    })
}

/// Lines for `tc`: what a device receives passes the queue of `ifb0`.
fn redirected(device: &str, queue: &str) -> String {
    format!(
        "qdisc add dev ifb0 root {queue}\nqdisc add dev {device} ingress\nfilter add dev {device} parent ffff: \
         protocol all u32 match u32 0 0 action mirred egress redirect dev ifb0\n"
    )
}

/// At the port of the hypervisor: what the host receives.
pub(super) fn of_a_port(cluster: &Cluster, random: &mut Random) -> Option<DrawnFault> {
    let topology = &cluster.topology;
    let (host, peer) = two_hosts(topology, random)?;
    let kbit = u64::from(topology.uplink_of(host.hypervisor).rate_mbit) * 1000;
    let (queue, words, mechanism) = discipline(random, kbit);
    let (number, port) = (host.hypervisor, host.port());
    Some(DrawnFault {
        summary: format!("port {port} of {} {words}", topology.hypervisors[number].name),
        truth: at_host(topology, &host, &[Direction::Rx]),
        mechanism,
        signs: vec![format!("nic.{port}.qdisc")],
        ends: (host.name, peer.name),
        make: Box::new(move |damage| {
            let forth = format!("qdisc add dev {port} root {queue}\n");
            damage.tc(ClusterMachine::Hypervisor(number), &forth, format!("qdisc del dev {port} root\n"))
        }),
    })
}
