//! What a survey may send over each link. Pure.
//!
//! What comes in: inventory, facts, the share of a link that tests may use, the planned rounds. What goes
//! out: the announcement, the pace and the byte limit of each test, and a ledger that pays for every test
//! before it runs. A test that it cannot pay for is left out.

use std::collections::BTreeMap;

use linerate_diagnose::{LinkSpeeds, asks_for_packets, link_speeds};
use linerate_model::announced::{Announcement, LinkLoad};
use linerate_model::inventory::Inventory;
use linerate_model::kind::{MtuPlan, RttPlan, TcpPlan, TestKind, UdpPlan};
use linerate_model::path_methods::{MethodPair, PathClass, PathMethods};
use linerate_model::plan::{Round, Test};
use linerate_model::snapshot::Snapshot;
use linerate_model::tuning::Tuning;

use super::plan;

/// How often a test that was invalid is repeated, while there is time: a machine is often busy for a minute
/// and then is not.
pub const REPEATS_MAX: usize = 4;
/// A link of unknown speed, where tests are paced: slower ones are not sold any more.
const ASSUMED_PACED_BPS: f64 = 100e6;
/// A link of unknown speed, where they are not: what it may carry in the time of a test.
const ASSUMED_BPS: f64 = 25e9;
/// Share of its limit that the payload of a transfer is paced to. Headers take 7 % (106 bytes of each 1500
/// inside a tunnel), the ten packets that Linux sends before it paces a stream 6 % of the first 100 ms on
/// 20 Mbit/s.
const TCP_SHARE: f64 = 0.8;
/// The same of a probe with datagrams, which is late by 5 ms at most and catches up.
const UDP_SHARE: f64 = 0.8;
/// Probes with datagrams that may pass an uplink in one direction at the same time
/// ([`super::pack::Sharing::Fifth`]).
const UDP_AT_ONCE: f64 = 3.0;
/// Bytes on the wire, both directions, of a byte of payload: headers, acknowledgements, segments that are
/// sent again.
const TCP_WIRE: f64 = 1.2;
/// The same of datagrams of 512 bytes inside a tunnel.
const UDP_WIRE: f64 = 1.25;
/// Bytes on the wire of a small request and its answer.
const REQUEST_BYTES: u64 = 300;
/// How often small tests run at most: once, and what is repeated.
const SMALL_TIMES: u64 = 1 + REPEATS_MAX as u64;
/// Seconds on each link for repetitions and the second stage at least; else as many as were planned.
const AGAIN_S_MIN: f64 = 8.0;
/// Part of what is announced beyond the plan that repetitions leave to the tests that decide. On a busy
/// machine repetitions would use up all of it.
const DECIDING_SHARE: f64 = 1.0 / 3.0;
/// The bytes of one write are made smaller where a transfer has fewer than this many of them.
const WRITES_MIN: u64 = 64;
/// Limits of a write that was made smaller, bytes.
const WRITE_BYTES: (u64, u64) = (4 << 10, 256 << 10);

/// Below this rate any method fills a path: a small or busy host moves several Gbit/s on its loopback.
pub const FAST_BPS: f64 = 2e9;

/// A link: whether it is the uplink of a group, and the name.
type Link = (bool, String);

/// The limits of a survey.
#[derive(Debug)]
pub struct Limits<'a> {
    inventory: &'a Inventory,
    speeds: LinkSpeeds,
    /// Share of each link; `None`: all of it.
    share: Option<f64>,
    /// Methods of the classes of paths that are faster than the plain ones.
    methods: BTreeMap<PathClass, MethodPair>,
}

impl<'a> Limits<'a> {
    /// For a snapshot with its facts.
    pub fn new(snapshot: &Snapshot, inventory: &'a Inventory, share: Option<f64>) -> Self {
        Self { inventory, speeds: link_speeds(snapshot), share, methods: BTreeMap::new() }
    }

    fn assumed_bps(&self) -> f64 {
        if self.share.is_some() { ASSUMED_PACED_BPS } else { ASSUMED_BPS }
    }

    /// The links that a test passes; none inside one machine.
    fn links(&self, test: &Test) -> Vec<Link> {
        if test.from == test.to || self.inventory.same_machine(&test.from, &test.to) {
            return Vec::new();
        }
        let (mine, others) = (self.inventory.groups_of(&test.from), self.inventory.groups_of(&test.to));
        let only = |a: &[&linerate_model::inventory::Group], b: &[&linerate_model::inventory::Group]| {
            let own = a.iter().filter(|g| b.iter().all(|o| o.name != g.name));
            own.map(|g| (true, g.name.clone())).collect::<Vec<_>>()
        };
        let mut links = vec![(false, test.from.clone()), (false, test.to.clone())];
        links.extend(only(&mine, &others));
        links.extend(only(&others, &mine));
        links
    }

    fn known_bps(&self, (is_uplink, name): &Link) -> Option<f64> {
        if *is_uplink { self.speeds.uplinks.get(name) } else { self.speeds.hosts.get(name) }.copied()
    }

    /// The slowest link between the hosts of a test, bit/s; hosts of unknown speed have the assumed one.
    fn path_bps(&self, test: &Test) -> f64 {
        let ends = [&test.from, &test.to];
        let of_ends = ends.map(|host| self.speeds.hosts.get(host).copied().unwrap_or(self.assumed_bps()));
        let links = self.links(test);
        let uplinks =
            links.iter().filter(|(is_uplink, _)| *is_uplink).filter_map(|link| self.known_bps(link));
        uplinks.chain(of_ends).fold(f64::INFINITY, f64::min)
    }

    /// Payload rate that a transfer is paced to, bit/s.
    pub fn pace_bps(&self, test: &Test) -> Option<f64> {
        test.kind.get::<TcpPlan>()?;
        Some(self.share? * TCP_SHARE * self.path_bps(test))
    }

    /// Payload that a transfer may send, bytes. `None` where it passes no link and has no pace.
    fn bytes_max(&self, test: &Test) -> Option<u64> {
        let tcp = test.kind.get::<TcpPlan>()?;
        let is_free = self.share.is_none() && self.links(test).is_empty();
        let bps = self.pace_bps(test).unwrap_or_else(|| self.path_bps(test));
        (!is_free).then(|| (bps * f64::from(tcp.duration_ms) / 8e3) as u64)
    }

    /// The class of the path of a transfer whose sender or receiver may be slower than its links. A path
    /// inside one machine has none: its links are the CPUs that both ends share. Nor has one that is paced to
    /// a share.
    pub fn fast_class(&self, test: &Test) -> Option<PathClass> {
        let is_plain = |host: &str| self.inventory.iperf3_port(host).is_some();
        let is_asked = test.kind.is::<TcpPlan>() && self.share.is_none();
        if !is_asked || is_plain(&test.from) || is_plain(&test.to) || self.links(test).is_empty() {
            return None;
        }
        let is_known = [&test.from, &test.to].iter().all(|host| self.speeds.hosts.contains_key(*host));
        let path_bps = self.path_bps(test);
        let link_bps = is_known.then_some(path_bps as u64);
        (path_bps >= FAST_BPS).then_some(PathClass { layer: test.layer, link_bps })
    }

    /// From now on transfers over paths of this class are made so.
    pub fn set_methods(&mut self, chosen: &PathMethods) {
        self.methods.insert(chosen.class, chosen.methods.clone());
    }

    /// The methods of the class of a test, where one was chosen.
    pub fn methods_of(&self, test: &Test) -> Option<&MethodPair> {
        // Most surveys have none: nothing of a test has to be known then.
        if self.methods.is_empty() { None } else { self.methods.get(&self.fast_class(test)?) }
    }

    /// How the transfer of a test is made: with the methods of its class.
    pub fn tuning(&self, test: &Test) -> Tuning {
        let tuning = self.plain_tuning(test);
        match self.methods_of(test) {
            Some(methods) => methods.tuned(tuning),
            None => tuning,
        }
    }

    /// How it is made by the plain methods.
    pub fn plain_tuning(&self, test: &Test) -> Tuning {
        let mut tuning = Tuning::default();
        let Some(bytes) = self.bytes_max(test) else { return tuning };
        let streams = test.kind.get::<TcpPlan>().map_or(1, |tcp| u64::from(tcp.streams.max(1)));
        tuning.bytes_max = Some(bytes);
        tuning.pacing_bps = self.pace_bps(test).map(|bps| bps / streams as f64);
        let write = bytes / streams / WRITES_MIN;
        let (least, most) = WRITE_BYTES;
        tuning.write_bytes = (write < most).then(|| write.max(least) as u32);
        tuning
    }

    /// The test at a rate within its share: of probes with datagrams several pass one link.
    pub fn paced(&self, test: Test) -> Test {
        let (Some(share), Some(udp)) = (self.share, test.kind.get::<UdpPlan>()) else { return test };
        let most_bps = share * UDP_SHARE / UDP_AT_ONCE * self.path_bps(&test);
        if udp.rate_bps <= most_bps {
            return test;
        }
        let payload_bytes = plan::udp_payload(most_bps, udp.duration_ms);
        let kind = UdpPlan { rate_bps: most_bps, payload_bytes, ..*udp }.into();
        Test { kind, ..test }
    }

    /// Whether a test can keep to the share: no flood of datagrams, no transfer of an iperf3 server, and of
    /// transfers only single streams.
    pub fn allows(&self, test: &Test) -> bool {
        let is_plain = |host: &str| self.inventory.iperf3_port(host).is_some();
        self.share.is_none()
            || !is_plain(&test.from)
                && !is_plain(&test.to)
                && match &test.kind {
                    TestKind::Tcp(tcp) => tcp.is_single(),
                    TestKind::Udp(_) => !asks_for_packets(&test.kind),
                    _ => true,
                }
    }

    /// Rounds without the tests that cannot keep to the share, each at its rate.
    pub fn rounds(&self, rounds: Vec<Round>) -> Vec<Round> {
        if self.share.is_none() {
            return rounds;
        }
        let kept = |round: Round| {
            let tests = round.tests.into_iter().filter(|test| self.allows(test));
            Round { tests: tests.map(|test| self.paced(test)).collect() }
        };
        rounds.into_iter().map(kept).filter(|round| !round.tests.is_empty()).collect()
    }

    /// What a test costs each link that it passes: seconds, and bytes on the wire at most.
    fn cost(&self, test: &Test) -> Cost {
        match &test.kind {
            TestKind::Tcp(tcp) => {
                let bytes = self.bytes_max(test).unwrap_or(0) as f64 * TCP_WIRE;
                Cost { seconds: f64::from(tcp.duration_ms) / 1e3, bytes: bytes as u64, is_small: false }
            }
            TestKind::Udp(udp) => {
                let seconds = f64::from(udp.duration_ms) / 1e3;
                let bytes = (udp.rate_bps * seconds / 8.0 * UDP_WIRE) as u64;
                Cost { seconds, bytes, is_small: false }
            }
            kind => {
                let sizes = |mtu: &MtuPlan| mtu.sizes.iter().map(|size| u64::from(*size) * 2).sum::<u64>();
                let probes = kind.get().map_or(0, |mtu: &MtuPlan| sizes(mtu) * u64::from(mtu.tries));
                let requests = kind.get().map_or(1, |rtt: &RttPlan| u64::from(rtt.count));
                Cost { seconds: 0.0, bytes: probes + requests * REQUEST_BYTES, is_small: true }
            }
        }
    }

    /// What is announced of the planned rounds, and the ledger that enforces it.
    pub fn announced<'r>(&self, rounds: impl IntoIterator<Item = &'r Round>) -> (Announcement, LoadLedger) {
        let mut links: BTreeMap<Link, (LinkLoad, u64)> = BTreeMap::new();
        for test in rounds.into_iter().flat_map(|round| &round.tests) {
            let cost = self.cost(test);
            for link in self.links(test) {
                let (load, small) = links.entry(link).or_default();
                load.planned_s += cost.seconds;
                load.planned_bytes += cost.bytes;
                *small += if cost.is_small { cost.bytes } else { 0 };
            }
        }
        let mut left = BTreeMap::new();
        let loads = links.into_iter().map(|(link, (mut load, small))| {
            load.bps = self.known_bps(&link);
            let bps = load.bps.unwrap_or(self.assumed_bps()) * self.share.unwrap_or(1.0);
            let again = (AGAIN_S_MIN * bps / 8.0 * TCP_WIRE) as u64;
            let again_s = load.planned_s.max(AGAIN_S_MIN);
            load.most_s = load.planned_s + again_s;
            let bulk = load.planned_bytes - small;
            let again = bulk.max(again);
            load.most_bytes = bulk + again + small * SMALL_TIMES;
            let deciding = (again_s * DECIDING_SHARE, (again as f64 * DECIDING_SHARE) as u64);
            left.insert(link.clone(), Left { all: (load.most_s, bulk + again), deciding });
            (load.is_uplink, load.of) = link;
            load
        });
        let announcement = Announcement {
            share: self.share,
            pace: self.share.map(|share| share * TCP_SHARE),
            assumed_bps: self.assumed_bps(),
            links: loads.collect(),
        };
        (announcement, LoadLedger { left, refused: 0 })
    }
}

/// What a test costs.
#[derive(Debug, Clone, Copy)]
struct Cost {
    seconds: f64,
    bytes: u64,
    /// It only sends small packets, which are paid for beforehand.
    is_small: bool,
}

/// What is left of the announced load of a link: seconds and bytes.
#[derive(Debug, Clone, Copy)]
struct Left {
    all: (f64, u64),
    /// The part of it that only deciding tests may use.
    deciding: (f64, u64),
}

impl Left {
    fn affords(&self, cost: Cost, decides: bool) -> bool {
        let kept = if decides { (0.0, 0) } else { self.deciding };
        self.all.0 - kept.0 >= cost.seconds && self.all.1.saturating_sub(kept.1) >= cost.bytes
    }

    fn pay(&mut self, cost: Cost, decides: bool) {
        let of = |(seconds, bytes): (f64, u64)| {
            ((seconds - cost.seconds).max(0.0), bytes.saturating_sub(cost.bytes))
        };
        self.all = of(self.all);
        if decides {
            self.deciding = of(self.deciding);
        }
    }
}

/// What is left of the announced load of each link.
#[derive(Debug, Default)]
pub struct LoadLedger {
    left: BTreeMap<Link, Left>,
    /// Tests that it could not pay for.
    refused: usize,
}

impl LoadLedger {
    /// Whether what is left covers a test.
    pub fn affords(&self, limits: &Limits<'_>, test: &Test) -> bool {
        let cost = limits.cost(test);
        let affords = |link: &Link| self.left.get(link).is_some_and(|l| l.affords(cost, test.second_stage));
        cost.is_small || limits.links(test).iter().all(affords)
    }

    /// Pays for a test. `false`: it may not run.
    pub fn pays(&mut self, limits: &Limits<'_>, test: &Test) -> bool {
        if !self.affords(limits, test) {
            self.refused += 1;
            return false;
        }
        let cost = limits.cost(test);
        for link in limits.links(test).iter().filter(|_| !cost.is_small) {
            if let Some(left) = self.left.get_mut(link) {
                left.pay(cost, test.second_stage);
            }
        }
        true
    }

    /// Counts tests that were asked for and are not covered.
    pub fn refuse(&mut self, tests: usize) {
        self.refused += tests;
    }

    /// What it left out, in words.
    pub fn left_out(&self) -> Option<String> {
        let refused = self.refused;
        (refused > 0).then(|| format!("{refused} tests: the announced load of a link was used up"))
    }
}

#[cfg(test)]
#[path = "limits_tests.rs"]
mod tests;
