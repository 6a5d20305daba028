//! A simulated cluster: hosts with different links in racks, some of them bad receivers, and the results of
//! tests between them.
//!
//! In: sizes and a seed. Out: a snapshot as a survey would leave it, and who is bad. It computes rates with
//! noise; no packet is sent, and no fact is read: the diagnosis locates faults and finds no causes.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::{IpAddr, Ipv4Addr};

use linerate_model::inventory::{Endpoint, Group, Host, Inventory, Layer, SlurmSpec, TransportSpec};
use linerate_model::kind::TcpPlan;
use linerate_model::plan::Test;
use linerate_model::random::Random;
use linerate_model::sample::{Measurement, Outcome, Sample};
use linerate_model::snapshot::Snapshot;

/// The cluster and its noise. `docs/dev/scale.md` has the source of each default.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Nature {
    /// Hosts of a rack.
    pub rack: usize,
    /// Links of 10, 25 and 100 Gbit/s: shares of the hosts.
    pub links: [f64; 3],
    /// What a healthy transfer reaches of its ceiling.
    pub level: f64,
    /// Doublings by which hosts differ from each other though nothing is wrong with them (standard
    /// deviation).
    pub host_sigma: f64,
    /// Doublings by which repetitions of a test differ (scale of a Student t with three degrees of freedom:
    /// heavy tails).
    pub test_sigma: f64,
    /// Share of the tests that something else contended.
    pub contended: f64,
    /// What those lose, doublings (mean of an exponential distribution).
    pub disturbance: f64,
    /// Share of the tests that could not run, and of unreachable hosts.
    pub refused: f64,
    /// Share of the hosts.
    pub unreachable: f64,
}

impl Default for Nature {
    fn default() -> Self {
        Self {
            rack: 40,
            links: [0.3, 0.6, 0.1],
            level: 0.96,
            host_sigma: 0.02,
            test_sigma: 0.05,
            contended: 0.05,
            disturbance: 0.7,
            refused: 0.005,
            unreachable: 0.002,
        }
    }
}

/// Bit/s of the kinds of links.
const LINKS_BPS: [f64; 3] = [10e9, 25e9, 100e9];
/// Payload share of a link at an MTU of 1500.
const FRAMING: f64 = 1448.0 / 1538.0;
/// Milliseconds from the beginning of a test to that of the next.
const APART_MS: u64 = 20;
/// A transfer never reaches more of its ceiling than this.
const SHARE_MAX: f64 = 0.995;

/// How large, how many are bad, how bad.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClusterSize {
    /// Hosts.
    pub hosts: usize,
    /// Bad receivers among them.
    pub faults: usize,
    /// Tests that each host sends, and receives.
    pub rounds: usize,
    /// Share of the throughput into a bad receiver that is lost, 0 to 1.
    pub lost: f64,
}

/// A snapshot and its truth.
#[derive(Debug, Clone)]
pub struct SimulatedCluster {
    /// What a survey would have seen.
    pub snapshot: Snapshot,
    /// Names of the bad receivers.
    pub truth: BTreeSet<String>,
}

/// Draws a cluster and the results of its tests.
pub fn draw(size: ClusterSize, nature: &Nature, seed: u64) -> SimulatedCluster {
    let mut random = Random(seed);
    let links: Vec<f64> = (0..size.hosts).map(|_| link(nature, &mut random)).collect();
    let own: Vec<f64> = (0..size.hosts).map(|_| nature.host_sigma * normal(&mut random)).collect();
    let mut order: Vec<usize> = (0..size.hosts).collect();
    random.shuffle(&mut order);
    let dead: BTreeSet<usize> =
        order.iter().rev().take((size.hosts as f64 * nature.unreachable) as usize).copied().collect();
    let bad: BTreeSet<usize> =
        order.iter().filter(|h| !dead.contains(h)).take(size.faults).copied().collect();
    let penalty = -(1.0 - size.lost).max(1e-6).log2();
    let mut samples = Vec::with_capacity(size.hosts * size.rounds);
    let mut met: HashSet<(usize, usize)> = HashSet::new();
    for _ in 0..size.rounds {
        match_anew(&mut order, &mut met, &mut random);
        for pair in order.chunks_exact(2) {
            for (from, to) in [(pair[0], pair[1]), (pair[1], pair[0])] {
                if dead.contains(&from) || dead.contains(&to) {
                    continue;
                }
                let ceiling = links[from].min(links[to]) * FRAMING;
                let mut below =
                    own[from].abs() + own[to].abs() + nature.test_sigma * student(&mut random).abs();
                if random.fraction() < nature.contended {
                    below -= nature.disturbance * (1.0 - random.fraction()).ln();
                }
                if bad.contains(&to) {
                    below += penalty;
                }
                let share = (nature.level * (-below).exp2()).min(SHARE_MAX);
                let outcome = if random.fraction() < nature.refused {
                    Outcome::Gap { reason: "refused".to_owned() }
                } else {
                    let throughput_bps = Some(ceiling * share);
                    Outcome::Measured(Box::new(Measurement { throughput_bps, ..Measurement::default() }))
                };
                samples.push(sample(samples.len(), from, to, outcome));
            }
        }
    }
    SimulatedCluster {
        snapshot: Snapshot {
            schema: linerate_model::SCHEMA,
            id: "simulated".to_owned(),
            inventory: inventory(&links, nature.rack),
            samples,
            ..Snapshot::default()
        },
        truth: bad.into_iter().map(name).collect(),
    }
}

/// Another random order whose neighbours have not met yet, as far as a few exchanges can do that: a plan does
/// not measure a pair twice while others are left.
fn match_anew(order: &mut [usize], met: &mut HashSet<(usize, usize)>, random: &mut Random) {
    random.shuffle(order);
    let pair = |order: &[usize], i: usize| (order[i].min(order[i + 1]), order[i].max(order[i + 1]));
    let last = order.len() / 2;
    for i in (0..last).map(|i| 2 * i) {
        for _ in 0..16 {
            if !met.contains(&pair(order, i)) {
                break;
            }
            order.swap(i + 1, 2 * random.below(last) + 1);
        }
    }
    met.extend((0..last).map(|i| pair(order, 2 * i)));
}

fn link(nature: &Nature, random: &mut Random) -> f64 {
    let mut at = random.fraction() * nature.links.iter().sum::<f64>();
    for (share, bps) in nature.links.iter().zip(LINKS_BPS) {
        if at < *share {
            return bps;
        }
        at -= share;
    }
    LINKS_BPS[0]
}

/// Box and Muller.
fn normal(random: &mut Random) -> f64 {
    let radius = (-2.0 * (1.0 - random.fraction()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.fraction()).cos()
}

/// Student's t with three degrees of freedom.
fn student(random: &mut Random) -> f64 {
    let squares: f64 = (0..3).map(|_| normal(random).powi(2)).sum();
    normal(random) / (squares / 3.0).sqrt()
}

fn name(number: usize) -> String {
    format!("n{number:06}")
}

fn sample(id: usize, from: usize, to: usize, outcome: Outcome) -> Sample {
    Sample {
        test: Test {
            id: id as u32,
            serial: false,
            ..Test::new(name(from), name(to), Layer::Underlay, TcpPlan::single(1000).into())
        },
        start_ms: 1 + APART_MS * id as u64,
        outcome,
        tx_counters: BTreeMap::default(),
        rx_counters: BTreeMap::default(),
    }
}

fn inventory(links: &[f64], rack: usize) -> Inventory {
    let rack_name = |number: usize| format!("rack{number:04}");
    let group =
        |number: usize| Group { name: rack_name(number), kind: "rack".to_owned(), ..Group::default() };
    let host = |(number, bps): (usize, &f64)| Host {
        name: name(number),
        transport: TransportSpec::Slurm(SlurmSpec { node: name(number), ..SlurmSpec::default() }),
        groups: vec![rack_name(number / rack)],
        endpoints: vec![Endpoint {
            address: IpAddr::V4(Ipv4Addr::from(0x0a00_0001 + number as u32)),
            layer: Layer::Underlay,
            netns: None,
            link_bps: Some(*bps),
        }],
        state_dir: None,
        etc_dir: None,
        cache_dir: None,
    };
    Inventory {
        name: "simulated".to_owned(),
        groups: (0..links.len().div_ceil(rack)).map(group).collect(),
        hosts: links.iter().enumerate().map(host).collect(),
        ..Inventory::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_world() {
        let size = ClusterSize { hosts: 60, faults: 3, rounds: 4, lost: 0.5 };
        let worlds = [draw(size, &Nature::default(), 5), draw(size, &Nature::default(), 5)];
        assert_eq!(worlds[0].truth, worlds[1].truth);
        assert!(worlds[0].snapshot.samples == worlds[1].snapshot.samples);
        assert_eq!((worlds[0].truth.len(), worlds[0].snapshot.samples.len()), (3, 240));
        assert_ne!(worlds[0].truth, draw(size, &Nature::default(), 6).truth);
    }

    #[test]
    fn noise_has_the_width_that_is_asked_for() {
        let mut random = Random(3);
        let mut draws: Vec<f64> = (0..20_000).map(|_| normal(&mut random)).collect();
        draws.sort_by(f64::total_cmp);
        // Quartiles of the normal distribution: -0.674 and 0.674.
        assert!((draws[5_000] + 0.674).abs() < 0.03 && (draws[15_000] - 0.674).abs() < 0.03);
        let mut draws: Vec<f64> = (0..20_000).map(|_| student(&mut random)).collect();
        draws.sort_by(f64::total_cmp);
        // Of Student's t with three degrees of freedom: 0.765.
        assert!((draws[15_000] - 0.765).abs() < 0.03, "{}", draws[15_000]);
    }
}
