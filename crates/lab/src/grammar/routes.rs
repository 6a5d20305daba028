//! A route, a neighbour entry or a forwarding entry of one host that leads astray or holds back.

use linerate_model::random::Random;

use super::fault::{DrawnFault, Mechanism, at_entry, two_hosts};
use crate::cluster::Cluster;
use crate::topology::OVERLAY;

/// A route of the underlay: to one other host, or an attribute of all.
pub(super) fn of_a_host(cluster: &Cluster, random: &mut Random) -> Option<DrawnFault> {
    let topology = &cluster.topology;
    let (host, peer) = two_hosts(topology, random)?;
    let to = peer.underlay();
    let source = host.underlay();
    let (forth, words, mechanism) = match random.below(4) {
        0 => (format!("route add blackhole {to}/32\n"), "a black hole".to_owned(), Mechanism::Blocked),
        1 => {
            let window = 3000 + 1000 * random.below(20);
            let line = format!("route add {to}/32 dev eth0 src {source} window {window}\n");
            (line, format!("a window of {window} bytes"), Mechanism::Tcp)
        }
        2 => {
            let mtu = 600 + 50 * random.below(15);
            let line = format!("route add {to}/32 dev eth0 src {source} mtu lock {mtu}\n");
            (line, format!("an MTU of {mtu}"), Mechanism::Size)
        }
        _ => {
            let segments = 1 + random.below(3);
            let line = format!("route add {to}/32 dev eth0 src {source} initcwnd {segments}\n");
            (line, format!("an initial window of {segments} segments"), Mechanism::Tcp)
        }
    };
    let name = host.name.clone();
    Some(DrawnFault {
        summary: format!("the route of {name} to {} has {words}", peer.name),
        truth: at_entry(&host, &peer),
        mechanism,
        signs: vec!["route.".into()],
        ends: (host.name, peer.name),
        make: Box::new(move |damage| {
            let (_, machine) = damage.host(&name)?;
            damage.ip(machine, &forth, format!("route del {to}/32\n"))
        }),
    })
}

/// An entry of the overlay: the neighbour, or where its frames are sent.
pub(super) fn of_the_overlay(cluster: &Cluster, random: &mut Random) -> Option<DrawnFault> {
    let topology = &cluster.topology;
    let (host, peer) = two_hosts(topology, random)?;
    let name = host.name.clone();
    let is_neighbour = random.below(2) == 0;
    let strange = "02:4c:78:00:00:fe";
    let (address, mac, truly) = (peer.overlay(), peer.overlay_mac(), peer.underlay());
    let set = move |mac: &str| format!("neigh replace {address} lladdr {mac} dev {OVERLAY} nud permanent\n");
    let words = if is_neighbour { "neighbour entry" } else { "forwarding entry" };
    Some(DrawnFault {
        summary: format!("the {words} of {name} in the overlay for {} is wrong", peer.name),
        truth: at_entry(&host, &peer),
        mechanism: Mechanism::Blocked,
        signs: vec!["neighbour.".into(), "neigh.".into(), "fdb.".into()],
        ends: (host.name, peer.name),
        make: Box::new(move |damage| {
            let (_, machine) = damage.host(&name)?;
            if is_neighbour {
                return damage.ip(machine, &set(strange), set(&mac));
            }
            let entry = |to: &str| format!("fdb replace {mac} dev {OVERLAY} dst {to} self permanent\n");
            let (wrong, right) = (entry("10.77.0.250"), entry(&truly.to_string()));
            damage.step(
                |cluster| machine.of(cluster).bridge(&wrong),
                move |cluster| machine.of(cluster).bridge(&right),
            )
        }),
    })
}
