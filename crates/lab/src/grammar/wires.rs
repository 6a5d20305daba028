//! The wire of a hypervisor: loss, damage, doubles, reordering, delay, jitter, limits of rate, packets and
//! size, in one direction. Nothing of it is seen on a host.

use linerate_model::finding::Direction;
use linerate_model::random::Random;

use super::fault::{DrawnFault, Mechanism, at_group, two_hosts};
use crate::cluster::Cluster;
use crate::wire::Toward;
use crate::wire::settings::Settings;

/// A property with what it does, in words.
fn property(random: &mut Random, rate_bps: u64) -> (Settings, String, Mechanism) {
    let ppm = (3000 + random.below(40_000)) as u32;
    let percent = f64::from(ppm) / 1e4;
    let share = rate_bps * (20 + random.below(40) as u64) / 100;
    let delay_ms = 2 + random.below(20) as u64;
    let changed = Settings::default();
    match random.below(10) {
        0 => (Settings { loss_ppm: ppm, ..changed }, format!("loses {percent:.1} %"), Mechanism::Loss),
        1 => (Settings { damage_ppm: ppm, ..changed }, format!("damages {percent:.1} %"), Mechanism::Loss),
        2 => (Settings { duplicate_ppm: ppm, ..changed }, format!("doubles {percent:.1} %"), Mechanism::Loss),
        3 => (Settings { reorder_ppm: ppm, ..changed }, format!("reorders {percent:.1} %"), Mechanism::Loss),
        4 => (
            Settings { delay_ns: delay_ms * 1_000_000, ..changed },
            format!("adds {delay_ms} ms"),
            Mechanism::Queue,
        ),
        5 => (
            Settings { jitter_ns: delay_ms * 500_000, ..changed },
            format!("jitters by {} ms", delay_ms as f64 / 2.0),
            Mechanism::Queue,
        ),
        6 => (
            Settings { police_bps: share, ..changed },
            format!("polices to {} Mbit/s", share / 1_000_000),
            Mechanism::Rate,
        ),
        7 => (
            Settings { rate_bps: share, ..changed },
            format!("carries {} Mbit/s", share / 1_000_000),
            Mechanism::Rate,
        ),
        8 => {
            let packets = 500 + random.below(3000) as u32;
            (
                Settings { packets_per_s: packets, ..changed },
                format!("carries {packets} packets/s"),
                Mechanism::Rate,
            )
        }
        _ => {
            let bytes = 900 + random.below(500) as u32;
            let words = format!("drops packets above {bytes} bytes");
            (Settings { packet_bytes_max: bytes, ..changed }, words, Mechanism::Size)
        }
    }
}

/// Applies what was drawn over what the wire has.
fn merge(wire: &mut Settings, drawn: &Settings) {
    let zero = Settings::default();
    wire.delay_ns += drawn.delay_ns;
    for (value, new, none) in [
        (&mut wire.rate_bps, drawn.rate_bps, zero.rate_bps),
        (&mut wire.police_bps, drawn.police_bps, zero.police_bps),
        (&mut wire.jitter_ns, drawn.jitter_ns, zero.jitter_ns),
    ] {
        if new != none {
            *value = new;
        }
    }
    for (value, new, none) in [
        (&mut wire.loss_ppm, drawn.loss_ppm, zero.loss_ppm),
        (&mut wire.damage_ppm, drawn.damage_ppm, zero.damage_ppm),
        (&mut wire.duplicate_ppm, drawn.duplicate_ppm, zero.duplicate_ppm),
        (&mut wire.reorder_ppm, drawn.reorder_ppm, zero.reorder_ppm),
        (&mut wire.packets_per_s, drawn.packets_per_s, zero.packets_per_s),
        (&mut wire.packet_bytes_max, drawn.packet_bytes_max, zero.packet_bytes_max),
    ] {
        if new != none {
            *value = new;
        }
    }
}

/// At the uplink of a hypervisor.
pub(super) fn of_an_uplink(cluster: &Cluster, random: &mut Random) -> Option<DrawnFault> {
    let topology = &cluster.topology;
    let (host, peer) = two_hosts(topology, random)?;
    let number = host.hypervisor;
    let (toward, direction) =
        [(Toward::Hypervisor, Direction::Rx), (Toward::Core, Direction::Tx)][random.below(2)];
    let (drawn, words, mechanism) = property(random, topology.uplink_of(number).rate_bps());
    // A delay is seen by both ends alike.
    let directions: &[Direction] =
        if matches!(mechanism, Mechanism::Queue) { &[] } else { std::slice::from_ref(&direction) };
    let name = &topology.hypervisors[number].name;
    Some(DrawnFault {
        summary: format!("the uplink of {name} {words} in direction {direction:?}"),
        truth: at_group(topology, number, directions),
        mechanism,
        signs: Vec::new(),
        ends: (host.name, peer.name),
        make: Box::new(move |damage| damage.wire(number, toward, |settings| merge(settings, &drawn))),
    })
}
