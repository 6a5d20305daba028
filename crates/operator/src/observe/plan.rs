//! What a survey will measure, in which order, within which time. Pure.
//!
//! What comes in: inventory, facts, a time budget. What goes out: rounds of tests, the expected time, and in
//! words what the budget left out. The important goes first, so that a survey that is cut short has the most
//! telling half. UDP rates are a first guess: the survey lowers them to what TCP reached on the pair.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use linerate_model::inventory::{HostName, Inventory, Layer};
use linerate_model::kind::{MtuPlan, RttPlan, TcpPlan, TestKind, TestPlan, UdpPlan};
use linerate_model::plan::{Plan, Round, Test};

use super::nic::{self, Facts};
use super::pack::{Sharing, Uplinks, pack};
use super::pairs;

/// Up to this many hosts every ordered pair is measured, twice.
pub const FULL_MATRIX_HOSTS_MAX: usize = 8;
/// Random matchings beyond; 8 find a host that is 20 % slow, 4 one that is 50 % slow.
const MATCHINGS: [usize; 5] = [8, 7, 6, 5, 4];
/// From so many hosts on the fewest matchings are all: each is twice as many tests as hosts, of four kinds,
/// and what a host needs to be judged does not grow with the number of others.
const VERY_MANY_HOSTS: usize = 4000;
/// Times of one TCP transfer that a budget chooses from, milliseconds.
const TCP_MS: [u32; 11] = [3000, 2000, 1500, 1000, 800, 600, 500, 400, 350, 300, 250];
/// Time of one TCP transfer without a budget.
const TCP_MS_DEFAULT: u32 = 1000;
/// Time of a UDP loss probe, and where it would have to be left out otherwise.
const UDP_MS: u32 = 500;
const UDP_SHORT_MS: u32 = 250;
/// Probes of loss of one pair in one layer, and how long each takes: what comes and goes is met by several
/// short looks at different times rather than by a long one. The more there is time for transfers, the more
/// looks come before longer transfers.
const LOOKS: [Looks; 4] = [
    Looks { count: 3, udp_ms: UDP_MS, tcp_ms_max: u32::MAX },
    Looks { count: 3, udp_ms: UDP_SHORT_MS, tcp_ms_max: u32::MAX },
    Looks { count: 2, udp_ms: UDP_SHORT_MS, tcp_ms_max: 400 },
    ONE_LOOK,
];
/// With so many pairs that an end has probes at many times anyway; and where not even two short ones fit.
const ONE_LOOK: Looks = Looks { count: 1, udp_ms: UDP_MS, tcp_ms_max: 250 };
/// The idle RTT of every pair is measured where that takes at most this share of the budget, and at most so
/// long.
const RTT_ALL_SHARE: f64 = 0.06;
const RTT_ALL_S_MAX: f64 = 6.0;
/// Pairs inside one machine are bound by its CPU: their transfers run alone, are this much shorter, and their
/// probes slower, so that they take no time from what passes a NIC.
const INNER_SHARE: f64 = 0.5;
const INNER_UDP_BPS_MAX: f64 = 50e6;
/// With more such pairs than this, those of different machines run together after all.
const INNER_ALONE_MAX: usize = 24;
/// Share of the budget that is kept for the second stage and for what has to be repeated, but seconds enough
/// for the few tests that tell causes apart, as long as they take no more than this share of it.
const RESERVE: f64 = 0.06;
const RESERVE_S_MIN: f64 = 4.0;
const RESERVE_MAX: f64 = 0.2;
/// Share of the budget that is kept beside it for longer transfers, where limiters were read on hosts.
const LONGER_MAX: f64 = 0.25;
/// Streams of the many-stream tests.
const STREAMS: u16 = 8;
/// Payload of a UDP loss probe: fits every tunnel, so that loss is not mistaken for an MTU fault. On a slow
/// path it is smaller, so that the probe has this many datagrams: of 4000, a loss of one in a thousand takes
/// at least one with 98 %.
const UDP_PAYLOAD_BYTES: (u16, u16) = (512, 1200);
const UDP_DATAGRAMS: f64 = 4000.0;
/// Share of the path's rate that a UDP loss probe takes, and its limits in bit/s.
const UDP_SHARE: f64 = 0.2;
const UDP_BPS: (f64, f64) = (2e6, 200e6);
const RTT: RttPlan = RttPlan { count: 6 };
const MTU_TRIES: u8 = 3;
/// The smallest packet that every IPv4 host must take.
const MTU_SMALL: u32 = 576;

/// How often a pair is probed for loss.
#[derive(Debug, Clone, Copy)]
struct Looks {
    count: u32,
    udp_ms: u32,
    /// Beside longer transfers there is time for more.
    tcp_ms_max: u32,
}

/// What is wanted.
#[derive(Debug, Clone)]
pub struct SurveySpec<'a> {
    /// Who is there.
    pub inventory: &'a Inventory,
    /// What is known about them.
    pub facts: &'a Facts,
    /// Hosts that did not answer.
    pub absent: &'a BTreeSet<HostName>,
    /// Time for all that is still to come.
    pub budget: Option<Duration>,
    /// Chooses matchings and breaks ties.
    pub seed: u64,
}

/// The rate of a UDP loss probe on a path that carries `path_bps`; `inner` for a pair inside one machine.
pub fn udp_rate(path_bps: Option<f64>, inner: bool) -> f64 {
    let most = if inner { INNER_UDP_BPS_MAX } else { UDP_BPS.1 };
    (path_bps.unwrap_or(1e9) * UDP_SHARE).clamp(UDP_BPS.0, most)
}

/// The payload of the datagrams of such a probe.
pub fn udp_payload(rate_bps: f64, duration_ms: u32) -> u16 {
    let (least, most) = UDP_PAYLOAD_BYTES;
    let bytes = rate_bps * f64::from(duration_ms) / 8e3 / UDP_DATAGRAMS;
    bytes.clamp(f64::from(least), f64::from(most)) as u16
}

/// A UDP probe with its share of what a path carries; one that asks for packets has a rate of its own, and
/// other tests have none.
pub fn probe_of(kind: &TestKind, path_bps: f64, inner: bool) -> TestKind {
    match kind.get::<UdpPlan>().filter(|_| !linerate_diagnose::asks_for_packets(kind)) {
        Some(udp) => {
            let rate_bps = udp_rate(Some(path_bps), inner);
            let payload_bytes = udp_payload(rate_bps, udp.duration_ms);
            UdpPlan { rate_bps, payload_bytes, ..*udp }.into()
        }
        None => kind.clone(),
    }
}

/// What of a budget is kept for the second stage; `longer` is what transfers take that are longer than what
/// a limiter may have saved up.
pub fn reserve(budget: Duration, longer: Duration) -> Duration {
    let seconds = budget.as_secs_f64();
    let usual = Duration::from_secs_f64(RESERVE_S_MIN.clamp(RESERVE * seconds, RESERVE_MAX * seconds));
    usual + longer.min(budget.mul_f64(LONGER_MAX))
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum What {
    Rtt,
    Mtu,
    Tcp { repeat: u16 },
    Udp { repeat: u16 },
    Streams,
}

impl What {
    fn repeat(self) -> u16 {
        match self {
            Self::Tcp { repeat } | Self::Udp { repeat } => repeat,
            Self::Rtt | Self::Mtu | Self::Streams => 0,
        }
    }

    /// Which of the probes of loss of a pair it is; 0 for all else.
    fn look(self) -> u32 {
        if let Self::Udp { repeat } = self { u32::from(repeat) } else { 0 }
    }
}

#[derive(Debug, Clone)]
struct Block {
    what: What,
    layer: Layer,
    title: String,
    rounds: Rounds,
}

#[derive(Debug, Clone, Copy)]
struct Times {
    tcp_ms: u32,
    udp_ms: u32,
    /// Probes of loss of each pair.
    looks: u32,
}

impl Times {
    fn shortest() -> Self {
        let tcp_ms = *TCP_MS.last().expect("the list is not empty");
        Self { tcp_ms, udp_ms: ONE_LOOK.udp_ms, looks: ONE_LOOK.count }
    }

    fn includes(self, block: &Block) -> bool {
        block.what.look() < self.looks
    }

    fn tcp_ms(self, inner: bool) -> u32 {
        if inner { (f64::from(self.tcp_ms) * INNER_SHARE) as u32 } else { self.tcp_ms }
    }

    fn cost_s(self, block: &Block) -> f64 {
        let round_s = |inner: bool| {
            let (tcp_ms, udp_ms) = (self.tcp_ms(inner), self.udp_ms);
            let expected = match block.what {
                What::Rtt => RTT.expected(),
                What::Mtu => MtuPlan { sizes: Vec::new(), tries: MTU_TRIES }.expected(),
                What::Tcp { .. } => TcpPlan::single(tcp_ms).expected(),
                What::Streams => TcpPlan { streams: STREAMS, duration_ms: tcp_ms }.expected(),
                What::Udp { .. } => UdpPlan::paced(UDP_BPS.0, UDP_PAYLOAD_BYTES.0, udp_ms).expected(),
            };
            expected.as_secs_f64()
        };
        block.rounds.iter().map(|round| round_s(round.inner)).sum()
    }

    fn total_s(self, blocks: &[Block]) -> f64 {
        blocks.iter().filter(|b| self.includes(b)).map(|b| self.cost_s(b)).sum()
    }
}

/// The plan for a spec.
pub fn plan(spec: &SurveySpec<'_>) -> Plan {
    let Some(budget) = spec.budget else {
        let first = if measured(spec) < VERY_MANY_HOSTS { 0 } else { MATCHINGS.len() - 1 };
        let blocks = blocks(spec, MATCHINGS[first]);
        let fewer = (first > 0)
            .then(|| format!("{} of {} matchings of pairs", MATCHINGS[0] - MATCHINGS[first], MATCHINGS[0]));
        let times = choices(spec).find(|times| times.tcp_ms <= TCP_MS_DEFAULT).unwrap_or(Times::shortest());
        return written(spec, &blocks, times, fewer.into_iter().collect());
    };
    let longer = linerate_diagnose::longer_transfers(spec.inventory, spec.facts);
    let room_s = budget.saturating_sub(reserve(budget, longer)).as_secs_f64();
    let full = measured(spec) <= FULL_MATRIX_HOSTS_MAX;
    let fewest = MATCHINGS[MATCHINGS.len() - 1] as f64;
    let mut at_most = if measured(spec) < VERY_MANY_HOSTS { f64::INFINITY } else { fewest };
    for matchings in MATCHINGS.iter().take(if full { 1 } else { MATCHINGS.len() }) {
        if *matchings as f64 > at_most {
            continue;
        }
        let blocks = blocks(spec, *matchings);
        for times in choices(spec) {
            if times.total_s(&blocks) <= room_s {
                let mut left_out = Vec::new();
                if !full && *matchings < MATCHINGS[0] {
                    left_out.push(format!(
                        "{} of {} matchings of pairs",
                        MATCHINGS[0] - matchings,
                        MATCHINGS[0]
                    ));
                }
                return written(spec, &blocks, times, left_out);
            }
        }
        // Time grows with the number of matchings, or slower: what cannot fit is not even packed.
        let shortest = Times::shortest().total_s(&blocks);
        at_most = (*matchings as f64 * room_s / shortest.max(1e-3)).ceil();
    }
    let most = budget.mul_f64(1.0 - RESERVE).saturating_sub(longer.min(budget.mul_f64(LONGER_MAX)));
    squeezed(spec, room_s, most.as_secs_f64(), full)
}

/// A budget in which not everything fits: the least important blocks go, then the transfers get the rest.
/// Repetitions and loss probes may take what is kept for the second stage, up to `most_s`: what they show is
/// seen by nothing else.
fn squeezed(spec: &SurveySpec<'_>, room_s: f64, most_s: f64, full: bool) -> Plan {
    let mut blocks = blocks(spec, MATCHINGS[if full { 0 } else { MATCHINGS.len() - 1 }]);
    blocks.retain(|block| block.what.look() == 0);
    let mut shortest = Times::shortest();
    let mut left_out = Vec::new();
    if !full {
        left_out.push(format!("{} of {} matchings of pairs", MATCHINGS[0] - MATCHINGS[4], MATCHINGS[0]));
    }
    // The first TCP matrix of the first layer always stays: without it there is no answer at all.
    let keeps = |b: &Block| b.what == What::Tcp { repeat: 0 } && b.layer == Layer::Underlay;
    while shortest.total_s(&blocks) > room_s {
        let Some(last) = blocks.iter().rposition(|b| !keeps(b)) else { break };
        if blocks[last].what != What::Streams && shortest.total_s(&blocks) <= most_s {
            break;
        }
        if matches!(blocks[last].what, What::Udp { .. }) && shortest.udp_ms > UDP_SHORT_MS {
            shortest.udp_ms = UDP_SHORT_MS;
            left_out.push("half of the time of each UDP loss probe".to_owned());
            continue;
        }
        left_out.push(blocks.remove(last).title);
    }
    // What was dropped first may be small enough to fit into what the last drop made free.
    let times = TCP_MS
        .iter()
        .map(|ms| Times { tcp_ms: *ms, ..shortest })
        .find(|t| t.tcp_ms <= 400 && t.total_s(&blocks) <= room_s);
    let times = times.unwrap_or(shortest);
    if times.total_s(&blocks) > most_s {
        left_out.push(format!("nothing more: the matrix alone takes {:.0} s", times.total_s(&blocks)));
    }
    left_out.sort();
    written(spec, &blocks, times, left_out)
}

/// Hosts with endpoints; the machines of which only facts are read do not count.
fn measured(spec: &SurveySpec<'_>) -> usize {
    let present =
        |h: &&linerate_model::inventory::Host| !h.endpoints.is_empty() && !spec.absent.contains(&h.name);
    spec.inventory.hosts.iter().filter(present).count()
}

/// What a budget may be spent on, the best first.
fn choices(spec: &SurveySpec<'_>) -> impl Iterator<Item = Times> {
    let full = measured(spec) <= FULL_MATRIX_HOSTS_MAX;
    let with = move |tcp_ms: u32| {
        let looks = LOOKS.into_iter().filter(move |looks| full && tcp_ms <= looks.tcp_ms_max);
        let one = (!full).then_some(ONE_LOOK);
        looks.chain(one).map(move |looks| Times { tcp_ms, udp_ms: looks.udp_ms, looks: looks.count })
    };
    TCP_MS.into_iter().flat_map(with)
}

/// All blocks, the important first; the probes of loss of a pair lie apart in time.
fn blocks(spec: &SurveySpec<'_>, matchings: usize) -> Vec<Block> {
    let layers = spec.inventory.layers();
    let packed: Vec<Packed> = layers.iter().map(|layer| Packed::new(spec, *layer, matchings)).collect();
    let mut blocks = Vec::new();
    let mut add = |what: What, words: &str| {
        for p in &packed {
            let rounds = match what {
                What::Rtt => &p.every,
                What::Mtu => &p.small,
                What::Tcp { .. } => &p.bulk,
                What::Udp { .. } => &p.fifth,
                What::Streams => &p.subset,
            };
            if !rounds.is_empty() {
                let title = format!("{words}, {}", p.layer);
                blocks.push(Block { what, layer: p.layer, title, rounds: rounds.clone() });
            }
        }
    };
    add(What::Rtt, "idle RTT");
    add(What::Mtu, "path MTU probes");
    add(What::Tcp { repeat: 0 }, "TCP");
    add(What::Udp { repeat: 0 }, "UDP loss probes");
    let full = measured(spec) <= FULL_MATRIX_HOSTS_MAX;
    // A second look for losses as far from the first as can be; a third between them.
    if full {
        add(What::Tcp { repeat: 1 }, "TCP, second time");
        add(What::Udp { repeat: 2 }, "UDP loss probes, in between");
    }
    add(What::Streams, "TCP with 8 streams");
    if full {
        add(What::Udp { repeat: 1 }, "UDP loss probes, at the end");
    }
    blocks
}

/// Pairs that run together.
#[derive(Debug, Clone)]
struct Together {
    pairs: Vec<(HostName, HostName)>,
    /// All of them inside one machine.
    inner: bool,
}

type Rounds = Vec<Together>;

struct Packed {
    layer: Layer,
    bulk: Rounds,
    fifth: Rounds,
    small: Rounds,
    /// Every pair, as far as that takes little time: a single pair that is cut off shows in nothing else.
    every: Rounds,
    subset: Rounds,
}

impl Packed {
    fn new(spec: &SurveySpec<'_>, layer: Layer, matchings: usize) -> Self {
        let inventory = spec.inventory;
        let hosts: Vec<HostName> = inventory
            .hosts
            .iter()
            .filter(|h| inventory.endpoint(&h.name, layer).is_some() && !spec.absent.contains(&h.name))
            .map(|h| h.name.clone())
            .collect();
        let uplinks =
            Uplinks::new(inventory, &hosts, |h, l| nic::link_bps(spec.facts, inventory, h, l), layer);
        let all_rounds_s = 2.0 * hosts.len() as f64 * RTT.expected().as_secs_f64();
        let room_s = spec.budget.map_or(RTT_ALL_S_MAX, |b| b.as_secs_f64() * RTT_ALL_SHARE);
        let all_pairs = all_rounds_s <= room_s.min(RTT_ALL_S_MAX);
        // Of two devices that only have iperf3 nobody can ask.
        let plain = |host: usize| inventory.iperf3_port(&hosts[host]).is_some();
        let mut wanted = if hosts.len() <= FULL_MATRIX_HOSTS_MAX {
            pairs::all(hosts.len())
        } else {
            pairs::matchings(hosts.len(), matchings, spec.seed)
        };
        let mut subset = pairs::matchings(hosts.len(), 1, spec.seed ^ 1);
        wanted.retain(|(from, to)| !(plain(*from) && plain(*to)));
        subset.retain(|(from, to)| !(plain(*from) && plain(*to)));
        // RTT and MTU tests need a node program at both ends.
        let with_nodes = |pairs: &[(usize, usize)]| -> Vec<(usize, usize)> {
            pairs.iter().copied().filter(|(from, to)| !plain(*from) && !plain(*to)).collect()
        };
        let small = with_nodes(&wanted);
        let every = if all_pairs { with_nodes(&pairs::all(hosts.len())) } else { small.clone() };
        let is_inner = |(from, to): &(usize, usize)| inventory.same_machine(&hosts[*from], &hosts[*to]);
        let named = |pairs: &[(usize, usize)], sharing: Sharing| -> Rounds {
            let (inside, outside): (Vec<_>, Vec<_>) =
                pairs.iter().partition(|p| sharing == Sharing::Bulk && is_inner(p));
            let name = |(from, to): (usize, usize)| (hosts[from].clone(), hosts[to].clone());
            let together = |inner: bool| {
                move |round: Vec<(usize, usize)>| Together {
                    pairs: round.into_iter().map(name).collect(),
                    inner,
                }
            };
            let inside = if inside.len() > INNER_ALONE_MAX {
                pack(&inside, &uplinks, sharing, spec.seed)
            } else {
                inside.into_iter().map(|pair| vec![pair]).collect()
            };
            let outside = pack(&outside, &uplinks, sharing, spec.seed);
            outside.into_iter().map(together(false)).chain(inside.into_iter().map(together(true))).collect()
        };
        Self {
            layer,
            bulk: named(&wanted, Sharing::Bulk),
            fifth: named(&wanted, Sharing::Fifth),
            small: named(&small, Sharing::Nothing),
            every: named(&every, Sharing::Nothing),
            subset: named(&subset, Sharing::Bulk),
        }
    }
}

fn written(spec: &SurveySpec<'_>, blocks: &[Block], times: Times, left_out: Vec<String>) -> Plan {
    let mut plan = Plan { rounds: Vec::new(), expected_s: times.total_s(blocks), left_out };
    let mtus: BTreeMap<Layer, BTreeSet<u32>> =
        blocks.iter().map(|b| b.layer).map(|layer| (layer, known_mtus(spec, layer))).collect();
    let mut id = 0;
    for block in blocks.iter().filter(|b| times.includes(b)) {
        for round in &block.rounds {
            let serial = round.pairs.len() == 1;
            let tests = round
                .pairs
                .iter()
                .map(|(from, to)| {
                    id += 1;
                    Test {
                        id,
                        from: from.clone(),
                        to: to.clone(),
                        layer: block.layer,
                        kind: kind(spec, block, times, (from, to), &mtus[&block.layer]),
                        repeat: block.what.repeat(),
                        serial,
                        second_stage: false,
                    }
                })
                .collect();
            plan.rounds.push(Round { tests });
        }
    }
    plan
}

fn kind(
    spec: &SurveySpec<'_>,
    block: &Block,
    times: Times,
    (from, to): (&str, &str),
    mtus: &BTreeSet<u32>,
) -> TestKind {
    let inner = spec.inventory.same_machine(from, to);
    match block.what {
        What::Rtt => RTT.into(),
        What::Mtu => {
            MtuPlan { sizes: mtu_sizes(spec, block.layer, (from, to), mtus), tries: MTU_TRIES }.into()
        }
        What::Tcp { .. } => TcpPlan::single(times.tcp_ms(inner)).into(),
        What::Streams => TcpPlan { streams: STREAMS, duration_ms: times.tcp_ms(inner) }.into(),
        What::Udp { .. } => {
            let path_bps = nic::path_bps(spec.facts, spec.inventory, from, to, block.layer);
            let rate_bps = udp_rate(path_bps, inner);
            UdpPlan::paced(rate_bps, udp_payload(rate_bps, times.udp_ms), times.udp_ms).into()
        }
    }
}

/// All MTUs that occur in a layer.
fn known_mtus(spec: &SurveySpec<'_>, layer: Layer) -> BTreeSet<u32> {
    let hosts = spec.inventory.hosts.iter();
    hosts.filter_map(|h| nic::mtu(spec.facts, spec.inventory, &h.name, layer)).collect()
}

/// A small packet, the full packet of either end, and where hosts differ the two usual sizes.
fn mtu_sizes(spec: &SurveySpec<'_>, layer: Layer, (from, to): (&str, &str), all: &BTreeSet<u32>) -> Vec<u32> {
    let known = |host: &str| nic::mtu(spec.facts, spec.inventory, host, layer);
    let mut sizes = BTreeSet::from([MTU_SMALL]);
    sizes.extend(known(from));
    sizes.extend(known(to));
    if sizes.len() == 1 || all.len() > 1 {
        sizes.insert(1500);
    }
    if all.len() > 1 && all.iter().any(|mtu| *mtu >= 9000) {
        sizes.insert(9000);
    }
    sizes.into_iter().collect()
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
