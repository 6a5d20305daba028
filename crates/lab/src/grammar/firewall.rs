//! A rule of nftables: in the firewall of a host for what it receives or sends, or in the bridge of a
//! hypervisor for what its hosts receive.

use linerate_model::finding::Direction;
use linerate_model::random::Random;

use super::fault::{DrawnFault, Mechanism, at_group, at_host, at_pair, two_hosts};
use super::packets::{self, Packets};
use crate::cluster::Cluster;
use crate::topology::UPLINK;

/// What a rule does with the packets that it is about.
struct Verdict {
    words: String,
    rule: String,
    mechanism: Mechanism,
}

/// Draws one. `rate_mbit` is what the component carries.
fn verdict(random: &mut Random, rate_mbit: u32) -> Verdict {
    let verdict = |words: String, rule: String, mechanism| Verdict { words, rule, mechanism };
    match random.below(8) {
        0 => {
            let ppm = 2000 + random.below(40_000);
            let rule = format!("numgen random mod 1000000 < {ppm} drop");
            verdict(format!("drops {:.1} %", ppm as f64 / 1e4), rule, Mechanism::Loss)
        }
        1 => verdict("drops all".into(), "drop".into(), Mechanism::Blocked),
        2 | 3 => {
            let kbytes = u64::from(rate_mbit) * 125 * (15 + random.below(40) as u64) / 100;
            let rule = format!("limit rate over {kbytes} kbytes/second burst 128 kbytes drop");
            verdict(format!("lets {kbytes} kB/s through"), rule, Mechanism::Rate)
        }
        4 => {
            let packets = 300 + random.below(1500);
            let rule = format!("limit rate over {packets}/second burst 50 packets drop");
            verdict(format!("lets {packets} packets/s through"), rule, Mechanism::Rate)
        }
        5 => {
            let bytes = [300, 536, 900][random.below(3)];
            let rule = format!("tcp flags syn tcp option maxseg size set {bytes}");
            verdict(format!("clamps the MSS to {bytes} bytes"), rule, Mechanism::Size)
        }
        6 => {
            let option = ["sack-perm", "window", "timestamp"][random.below(3)];
            verdict(
                format!("strips the option {option}"),
                format!("reset tcp option {option}"),
                Mechanism::Tcp,
            )
        }
        _ => verdict("marks with cs1".into(), "ip dscp set cs1".into(), Mechanism::Queue),
    }
}

fn rule(packets: &Packets, verdict: &Verdict) -> String {
    format!("{} {}", packets.rule, verdict.rule)
}

/// In the firewall of a host.
pub(super) fn of_a_host(cluster: &Cluster, random: &mut Random) -> Option<DrawnFault> {
    let topology = &cluster.topology;
    let (host, peer) = two_hosts(topology, random)?;
    let is_input = random.below(2) == 0;
    let (hook, direction, side) =
        if is_input { ("input", Direction::Rx, "saddr") } else { ("output", Direction::Tx, "daddr") };
    let packets = packets::draw(random, &peer, side);
    let verdict = verdict(random, topology.uplink_of(host.hypervisor).rate_mbit);
    // Both ends of a connection have to offer an option.
    let directions: &[Direction] = match verdict.mechanism {
        Mechanism::Tcp | Mechanism::Size | Mechanism::Blocked => &[],
        _ => &[direction],
    };
    let truth = match (packets.is_one_peer, is_input) {
        (false, _) => at_host(topology, &host, directions),
        (true, true) => at_pair(&peer, &host),
        (true, false) => at_pair(&host, &peer),
    };
    let chain = format!(
        "chain {hook} {{\ntype filter hook {hook} priority 0; policy accept;\n{}\n}}",
        rule(&packets, &verdict)
    );
    let (name, ends) = (host.name.clone(), (host.name.clone(), peer.name));
    Some(DrawnFault {
        summary: format!("a rule in the {hook} of {name} {}: {}", verdict.words, packets.words),
        truth,
        mechanism: verdict.mechanism,
        signs: vec!["firewall.".into()],
        ends,
        make: Box::new(move |damage| {
            let (_, machine) = damage.host(&name)?;
            damage.host_rules(machine, &chain)
        }),
    })
}

/// In the bridge of a hypervisor, for what comes in from its uplink.
pub(super) fn of_a_bridge(cluster: &Cluster, random: &mut Random) -> Option<DrawnFault> {
    let topology = &cluster.topology;
    let (host, peer) = two_hosts(topology, random)?;
    let packets = packets::draw(random, &peer, "saddr");
    let verdict = verdict(random, topology.uplink_of(host.hypervisor).rate_mbit);
    let number = host.hypervisor;
    let directions: &[Direction] = match verdict.mechanism {
        Mechanism::Tcp | Mechanism::Size | Mechanism::Blocked => &[],
        _ => &[Direction::Rx],
    };
    let truth = if packets.is_one_peer && topology.hypervisors[number].hosts.len() == 1 {
        at_pair(&peer, &host)
    } else {
        at_group(topology, number, directions)
    };
    // A bridge sees frames: the type comes first.
    let rules = format!("iifname \"{UPLINK}\" ether type ip {}", rule(&packets, &verdict));
    let name = topology.hypervisors[number].name.clone();
    Some(DrawnFault {
        summary: format!("a rule in the bridge of {name} {}: {}", verdict.words, packets.words),
        truth,
        mechanism: verdict.mechanism,
        signs: vec!["firewall.".into()],
        ends: (host.name, peer.name),
        make: Box::new(move |damage| damage.bridge_rules(number, &rules)),
    })
}
