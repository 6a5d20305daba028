//! Samples grouped into cells: one ordered pair in one layer, with the medians that the reasoning works on.
//! A snapshot comes in, cells go out, in a fixed order; nothing is judged here.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use linerate_model::fact::GapSubject;
use linerate_model::finding::Metric;
use linerate_model::inventory::{Group, Host, Inventory, Layer};
use linerate_model::kind::{RttPlan, TcpPlan, TestKind, UdpPlan};
use linerate_model::load::LoadReport;
use linerate_model::path_mtu::MtuProbe;
use linerate_model::sample::{Measurement, Outcome, Sample};
use linerate_model::snapshot::Snapshot;

use super::transfers::{rates, rates_in, rates_of, series};
use crate::rules::{EvidenceRules, Rules};
use crate::stats::{TwoLevels, mean, median, quantile, two_levels};

/// What is known of one ordered pair in one layer.
#[derive(Debug, Clone)]
pub(crate) struct CellEvidence<'a> {
    /// The numbers of the reasoning.
    pub rules: &'a Rules,
    /// Sender.
    pub from: &'a str,
    /// Receiver.
    pub to: &'a str,
    /// Both by their places in the inventory.
    pub ends: [usize; 2],
    /// Layer.
    pub layer: Layer,
    /// Cells with the same layer and the same nearest common group are compared with each other.
    pub kind: Kind,
    /// Tests that say something: measured, or nothing got through.
    pub samples: Vec<&'a Sample>,
    /// Tests that were invalid; their counters still show why.
    pub worthless: Vec<&'a Sample>,
    /// Throughput of each single-stream test, or of each part of a long one that jumps; 0 when nothing got
    /// through.
    pub rates: Vec<f64>,
    /// Median throughput, bit/s.
    pub throughput_bps: Option<f64>,
    /// Median of the rates that its transfers were paced to.
    pub pace_bps: Option<f64>,
    /// Share of datagrams that its UDP probes lost: the mean, for what is lost intermittently is lost.
    pub loss: Option<f64>,
    /// Median of the idle RTT.
    pub rtt_idle_us: Option<f64>,
    /// Median of the loaded RTT.
    pub rtt_loaded_us: Option<f64>,
    /// Median of the bytes that a stream of another tool may have in flight.
    pub window_bytes: Option<f64>,
    /// Median of the maximum segment sizes that other tools reported.
    pub mss_bytes: Option<f64>,
    /// Median of the retransmits.
    pub retransmits_per_s: Option<f64>,
    /// Median of the CPU cost.
    pub cpu_s_per_gb: Option<f64>,
    /// Two levels, where at least half of the tests show them.
    pub two: Option<TwoLevels>,
    /// Median share of the busiest CPU at the sender.
    pub core_busy_tx: Option<f64>,
    /// Median share of the busiest CPU at the receiver.
    pub core_busy_rx: Option<f64>,
}

/// One test in one response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Single {
    /// When it began, Unix milliseconds; 0 when unknown.
    pub start_ms: u64,
    /// What it showed, in the unit of the response.
    pub value: f64,
    /// Whether it repeats another one.
    pub again: bool,
    /// Whether it is of several connections at once.
    pub several: bool,
}

impl Single {
    /// What a test showed, milliseconds after its start.
    fn of(sample: &Sample, at_ms: u64, value: f64) -> Self {
        let test = &sample.test;
        let start_ms = if sample.start_ms == 0 { 0 } else { sample.start_ms + at_ms };
        let several = test.kind.get().is_some_and(TcpPlan::is_parallel);
        Self { start_ms, value, again: test.second_stage, several }
    }
}

/// Share of the datagrams of a UDP test that were lost; 1 where none came through. `None` of other tests.
fn lost(sample: &Sample) -> Option<f64> {
    if !sample.test.kind.is::<UdpPlan>() {
        return None;
    }
    match &sample.outcome {
        Outcome::Measured(m) => m.loss,
        Outcome::NothingThrough { .. } => Some(1.0),
        _ => None,
    }
}

/// Share of the datagrams of a UDP test that were reordered, or duplicated where that is more.
fn reordered(sample: &Sample) -> Option<f64> {
    let Outcome::Measured(m) = &sample.outcome else { return None };
    // A ping that was lost says nothing of an order.
    m.loss.filter(|_| sample.test.kind.is::<UdpPlan>())?;
    Some(m.reordered.unwrap_or(0.0).max(m.duplicated.unwrap_or(0.0)))
}

/// What makes cells comparable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Kind {
    /// Layer.
    pub layer: Layer,
    /// How many groups the two ends have in common: 0 across everything, more inside.
    pub shared_groups: usize,
}

impl<'a> CellEvidence<'a> {
    /// The measurements among the samples.
    pub(crate) fn measured(&self) -> impl Iterator<Item = (&'a Sample, &'a Measurement)> + '_ {
        self.samples.iter().filter_map(|s| match &s.outcome {
            Outcome::Measured(m) => Some((*s, m.as_ref())),
            _ => None,
        })
    }

    /// Values of one field of all measurements.
    pub(crate) fn values(&self, field: impl Fn(&Measurement) -> Option<f64>) -> Vec<f64> {
        self.measured().filter_map(|(_, m)| field(m)).filter(|v| v.is_finite()).collect()
    }

    /// UDP loss of each test; 1 where no datagram came through. Not of small datagrams, of which many more
    /// are sent.
    pub(crate) fn losses(&self) -> Vec<f64> {
        self.probed_where(lost, |s| self.is_full(s))
    }

    /// The same of small datagrams.
    pub(crate) fn small_losses(&self) -> Vec<f64> {
        self.probed_where(lost, |s| self.is_small(&s.test.kind))
    }

    /// Share of datagrams that were reordered, or duplicated where that is more, of each UDP probe.
    pub(crate) fn reorderings(&self) -> Vec<f64> {
        self.probed_where(reordered, |_| true)
    }

    fn probed_where(&self, value: fn(&Sample) -> Option<f64>, wanted: impl Fn(&Sample) -> bool) -> Vec<f64> {
        self.samples.iter().filter(|s| wanted(s)).filter_map(|s| value(s)).collect()
    }

    /// UDP probes in a response that only they have; none of another response.
    pub(crate) fn probes_of(&self, response: Metric) -> Vec<Single> {
        match response {
            Metric::Loss => self.singles(|s| lost(s).filter(|_| self.is_full(s))),
            Metric::Reordering => self.singles(reordered),
            _ => Vec::new(),
        }
    }

    /// The tests that have a value, one by one.
    pub(crate) fn singles(&self, value: impl Fn(&Sample) -> Option<f64>) -> Vec<Single> {
        self.samples.iter().filter_map(|s| Some(Single::of(s, 0, value(s)?))).collect()
    }

    /// The rates of all transfers, one by one: of a long one that jumps those of its parts, 0 where nothing
    /// got through.
    pub(crate) fn transfers(&self) -> Vec<Single> {
        let rates = |s: &'a Sample| rates_in(s, &self.rules.evidence).into_iter().map(move |rate| (s, rate));
        let all = self.samples.iter().flat_map(|s| rates(s));
        all.map(|(s, (at_ms, rate))| Single::of(s, at_ms, rate)).collect()
    }

    /// Values of the UDP probes in a response that only they have, and those of their repetitions among them;
    /// `None` of another response.
    pub(crate) fn probed(&self, response: Metric) -> Option<[Vec<f64>; 2]> {
        if !is_of_probes(response) {
            return None;
        }
        let probes = self.probes_of(response);
        let values = |again: bool| probes.iter().filter(|p| p.again || !again).map(|p| p.value).collect();
        Some([values(false), values(true)])
    }

    /// All path MTU probes.
    pub(crate) fn probes(&self) -> Vec<&'a MtuProbe> {
        self.measured().flat_map(|(_, m)| &m.mtu).collect()
    }

    /// Whether a probe is of small datagrams.
    pub(crate) fn is_small(&self, kind: &TestKind) -> bool {
        is_small(kind, &self.rules.evidence)
    }

    fn is_full(&self, sample: &Sample) -> bool {
        !self.is_small(&sample.test.kind)
    }

    /// Whether at least two repetitions say the same as the first look: most of the single transfers among
    /// them are bad again.
    pub(crate) fn is_confirmed(&self, expected_bps: Option<f64>) -> bool {
        let again = || self.samples.iter().filter(|s| s.test.second_stage);
        let good = |rate: &f64| {
            expected_bps.is_some_and(|expected| *rate >= self.rules.evidence.healthy_repetition * expected)
        };
        let transfers: Vec<f64> = rates_of(again(), true, &self.rules.evidence);
        again().count() >= self.rules.evidence.repetitions_min
            && (transfers.is_empty() || transfers.iter().filter(|r| good(r)).count() * 2 < transfers.len())
    }
}

/// How much the RTT of the idle path changes from one request to the next, over its middle.
pub(crate) fn rtt_spread(cell: &CellEvidence<'_>) -> Option<f64> {
    let spread = |m: &Measurement| {
        let rtts = m.tx.as_ref()?.rtt_us.as_slice();
        let changes: Vec<f64> = rtts.windows(2).map(|w| (w[1] - w[0]).abs()).collect();
        let enough = rtts.len() >= cell.rules.evidence.rtts_min;
        enough.then_some(median(&changes)? / median(rtts).filter(|m| *m > 0.0)?)
    };
    let requests = cell.measured().filter(|(s, _)| s.test.kind.is::<RttPlan>());
    median(&requests.filter_map(|(_, m)| spread(m)).collect::<Vec<_>>())
}

/// Whether only probes with datagrams show it, and show it as a share of them.
pub(crate) fn is_of_probes(response: Metric) -> bool {
    matches!(response, Metric::Loss | Metric::Reordering)
}

/// Whether a probe asks how many packets a path carries rather than how many bytes.
pub(crate) fn is_small(kind: &TestKind, rules: &EvidenceRules) -> bool {
    kind.get().is_some_and(|udp: &UdpPlan| udp.payload_bytes <= rules.small_payload_max)
}

/// The groups of each host, both by their places in the inventory; direct ones first.
pub(crate) fn groups_by_host(inventory: &Inventory) -> Vec<Vec<usize>> {
    let places: HashMap<&str, usize> =
        inventory.groups.iter().enumerate().map(|(i, g)| (g.name.as_str(), i)).collect();
    let place = |group: &Group| places.get(group.name.as_str()).copied();
    let of_host = |host: &Host| inventory.groups_of(&host.name).into_iter().filter_map(place).collect();
    inventory.hosts.iter().map(of_host).collect()
}

/// All cells of a snapshot, by layer, sender, receiver in the order of the inventory.
pub(crate) fn collect<'a>(snapshot: &'a Snapshot, rules: &'a Rules) -> Vec<CellEvidence<'a>> {
    let subjects = snapshot.gaps.iter().map(|gap| &gap.what);
    let lost: BTreeSet<&str> = subjects
        .filter_map(|what| if let GapSubject::Host(name) = what { Some(&**name) } else { None })
        .collect();
    let hosts = snapshot.inventory.hosts.iter().enumerate();
    let places: HashMap<&str, usize> = hosts.map(|(i, h)| (h.name.as_str(), i)).collect();
    // Sorted at once: of a hundred thousand hosts there are too many cells to look each of them up.
    let mut sorted: Vec<([usize; 2], &'a Sample)> = snapshot
        .samples
        .iter()
        .filter(|s| !matches!(s.outcome, Outcome::Gap { .. }) && !is_own_failure(s))
        .filter_map(|s| {
            let [from, to] = [&s.test.from, &s.test.to].map(|host| places.get(host.as_str()).copied());
            // What a host sends to itself passes nothing.
            Some(([from?, to?], s)).filter(|_| from != to)
        })
        .collect();
    sorted.sort_by_key(|(ends, sample)| (sample.test.layer, *ends));
    let groups = groups_by_host(&snapshot.inventory);
    let mut cells: Vec<CellEvidence<'a>> = sorted
        .chunk_by(|(a, one), (b, other)| (one.test.layer, a) == (other.test.layer, b))
        .filter_map(|of_cell| {
            let (ends, first) = of_cell.first()?;
            // A host that was lost explains why nothing came through to it; that is a gap, not a slow path.
            let explained = |s: &Sample| {
                matches!(s.outcome, Outcome::NothingThrough { .. })
                    && (lost.contains(first.test.from.as_str()) || lost.contains(first.test.to.as_str()))
            };
            let tests = of_cell.iter().map(|(_, sample)| *sample).filter(|s| !explained(s));
            cell(rules, *ends, &groups, tests)
        })
        .collect();
    let peers = peer_rates(&cells, &rules.evidence);
    for cell in &mut cells {
        let healthy = peers.get(&cell.kind).copied();
        cell.two = cell.two.take().filter(|levels| is_capacity(levels, healthy, &rules.evidence));
    }
    cells
}

/// Errors of the test itself, in the words of the kernel: an address or port that cannot be used at the own
/// end is no evidence of the network.
const OWN: [&str; 3] = ["address already in use", "address in use", "cannot assign requested address"];

/// Whether a test failed at its own end.
pub(crate) fn is_own_failure(sample: &Sample) -> bool {
    let Outcome::NothingThrough { reason } = &sample.outcome else { return false };
    let reason = reason.to_lowercase();
    OWN.iter().any(|words| reason.contains(words))
}

fn is_capacity(levels: &TwoLevels, healthy_bps: Option<f64>, rules: &EvidenceRules) -> bool {
    healthy_bps.is_none_or(|healthy| levels.high >= rules.capacity_min * healthy)
}

/// One cell from its tests; `None` without any.
fn cell<'a>(
    rules: &'a Rules,
    ends: [usize; 2],
    groups: &[Vec<usize>],
    tests: impl Iterator<Item = &'a Sample>,
) -> Option<CellEvidence<'a>> {
    let is_worthless = |s: &&Sample| matches!(s.outcome, Outcome::Invalid { .. });
    let (worthless, samples): (Vec<&Sample>, Vec<&Sample>) = tests.partition(is_worthless);
    let test = &samples.iter().chain(&worthless).next()?.test;
    let shared = groups[ends[0]].iter().filter(|group| groups[ends[1]].contains(group)).count();
    let mut cell = CellEvidence {
        rules,
        from: &test.from,
        to: &test.to,
        ends,
        layer: test.layer,
        kind: Kind { layer: test.layer, shared_groups: shared },
        rates: rates(&samples, &rules.evidence),
        samples,
        worthless,
        throughput_bps: None,
        pace_bps: None,
        loss: None,
        rtt_idle_us: None,
        rtt_loaded_us: None,
        window_bytes: None,
        mss_bytes: None,
        retransmits_per_s: None,
        cpu_s_per_gb: None,
        two: None,
        core_busy_tx: None,
        core_busy_rx: None,
    };
    cell.throughput_bps = median(&cell.rates);
    cell.pace_bps = median(&tcp_values(&cell, |m| m.asked_bps));
    cell.loss = mean(&cell.losses());
    cell.rtt_idle_us = median(&cell.values(|m| m.rtt_idle_us));
    cell.rtt_loaded_us = median(&cell.values(|m| m.rtt_loaded_us));
    cell.window_bytes = median(&cell.values(|m| m.window_bytes));
    cell.mss_bytes = median(&cell.values(|m| m.mss_bytes));
    cell.retransmits_per_s = median(&cell.values(|m| m.retransmits_per_s));
    cell.cpu_s_per_gb = median(&tcp_values(&cell, |m| m.cpu_s_per_gb));
    cell.core_busy_tx = median(&tcp_values(&cell, |m| busy_by_itself(m.tx.as_ref()?, &rules.evidence)));
    cell.core_busy_rx = median(&tcp_values(&cell, |m| busy_by_itself(m.rx.as_ref()?, &rules.evidence)));
    cell.two = two_state(&cell);
    Some(cell)
}

/// The share of the busiest CPU, as far as the transfer can have filled it: where its threads, and the
/// interrupts on that CPU, together spent much less, something else kept it busy. Interrupts of all CPUs
/// stand in where nobody counted those of one.
fn busy_by_itself(end: &LoadReport, rules: &EvidenceRules) -> Option<f64> {
    let busy = end.core_busy_max?;
    let busiest = end.cores.iter().max_by(|a, b| a.busy.total_cmp(&b.busy)).map(|core| core.softirq);
    let per_s = |seconds: f64| Some(seconds / end.elapsed_s).filter(|_| end.elapsed_s > 0.0);
    let interrupts = busiest.or_else(|| per_s(end.softirq_s?));
    let spent = interrupts.and_then(|share| Some(per_s(end.cpu_s)? + share));
    spent.is_none_or(|spent| spent >= rules.own_work_min * busy).then_some(busy)
}

/// Values of TCP tests only: UDP tests have their own price.
pub(crate) fn tcp_values(cell: &CellEvidence<'_>, field: impl Fn(&Measurement) -> Option<f64>) -> Vec<f64> {
    cell.measured()
        .filter(|(s, _)| s.test.kind.is::<TcpPlan>())
        .filter_map(|(_, m)| field(m))
        .filter(|v| v.is_finite())
        .collect()
}

/// Two levels when at least half of the series that are long enough show them; levels from the clearest one.
fn two_state(cell: &CellEvidence<'_>) -> Option<TwoLevels> {
    let rules = &cell.rules.evidence;
    let all: Vec<Vec<f64>> = cell
        .measured()
        .filter(|(s, _)| s.test.kind.is::<TcpPlan>())
        .map(|(_, m)| series(m, rules))
        .filter(|s| s.len() >= rules.series_min)
        .collect();
    let jumping: Vec<TwoLevels> = all.iter().filter_map(|s| two_levels(s, rules)).collect();
    if jumping.len() * 2 < all.len() || jumping.is_empty() {
        return None;
    }
    jumping.into_iter().max_by_key(|t| t.switches)
}

/// Whether the throughput of several cells jumps between two levels when their tests are strung together: one
/// test may be too short to show both. `healthy_bps`: what good cells reach. One cell that is apart from the
/// others is another cell, not another time.
pub(crate) fn jump_together(cells: &[&CellEvidence<'_>], healthy_bps: Option<f64>) -> bool {
    let Some(least) = cells.iter().map(|c| c.kind.shared_groups).min() else { return false };
    let rules = &cells[0].rules.evidence;
    let strung = |cell: &CellEvidence<'_>| -> Vec<f64> {
        let transfers = cell.measured().filter(|(s, _)| s.test.kind.is::<TcpPlan>());
        transfers.flat_map(|(_, m)| series(m, rules)).collect()
    };
    let of_cells: Vec<Vec<f64>> =
        cells.iter().filter(|c| c.kind.shared_groups == least).map(|c| strung(c)).collect();
    let Some(levels) =
        two_levels(&of_cells.concat(), rules).filter(|levels| is_capacity(levels, healthy_bps, rules))
    else {
        return false;
    };
    let middle = (levels.high * levels.low.max(1.0)).sqrt();
    let is_high = |series: &&Vec<f64>| median(series).is_some_and(|rate| rate > middle);
    let high = of_cells.iter().filter(is_high).count();
    let low = of_cells.iter().filter(|series| !series.is_empty()).count() - high;
    cells.iter().any(|c| c.two.is_some()) || high.min(low) >= rules.level_cells_min
}

/// What the good cells of each kind reach, for kinds without a known ceiling and to calibrate those with one.
pub(crate) fn peer_rates(cells: &[CellEvidence<'_>], rules: &EvidenceRules) -> BTreeMap<Kind, f64> {
    let mut by_kind: BTreeMap<Kind, Vec<f64>> = BTreeMap::new();
    for cell in cells {
        // What nothing gets through says nothing of what the others may reach.
        by_kind.entry(cell.kind).or_default().extend(cell.throughput_bps.filter(|bps| *bps > 0.0));
    }
    by_kind
        .into_iter()
        .filter_map(|(kind, rates)| Some((kind, quantile(&rates, rules.peer_quantile)?)))
        .collect()
}

/// Whether no more than two hosts were measured.
pub(crate) fn two_hosts(cells: &[CellEvidence<'_>]) -> bool {
    let mut hosts: BTreeSet<&str> = BTreeSet::new();
    // The third one ends it: there may be ten thousand.
    cells.iter().flat_map(|c| [c.from, c.to]).all(|host| {
        hosts.insert(host);
        hosts.len() <= 2
    })
}

#[cfg(test)]
mod tests {
    use linerate_model::load::CoreUse;

    use super::*;

    #[test]
    fn a_cpu_that_others_keep_busy_is_no_limit_of_the_transfer() {
        let end = |cpu_s, softirq_s| LoadReport {
            elapsed_s: 1.0,
            cpu_s,
            softirq_s,
            core_busy_max: Some(0.99),
            ..LoadReport::default()
        };
        let busy = |end: &LoadReport| busy_by_itself(end, &Rules::DEFAULT.evidence);
        assert_eq!(busy(&end(0.01, Some(0.05))), None);
        assert_eq!(busy(&end(0.2, Some(0.7))), Some(0.99));
        assert_eq!(busy(&end(0.01, None)), Some(0.99));
        // Interrupts of two CPUs together look like a busy one.
        let cores =
            vec![CoreUse { cpu: 0, busy: 0.99, softirq: 0.25 }, CoreUse { cpu: 1, busy: 0.9, softirq: 0.25 }];
        assert_eq!(busy(&LoadReport { cores, ..end(0.03, Some(0.5)) }), None);
    }

    #[test]
    fn an_address_that_cannot_be_used_is_no_loss() {
        let failed = |reason: &str| {
            let kind = TcpPlan::single(250).into();
            let test = linerate_model::plan::Test::new("a".into(), "b".into(), Layer::Underlay, kind);
            Sample::new(test, 0, Outcome::NothingThrough { reason: reason.to_owned() })
        };
        assert!(is_own_failure(&failed("bind 10.0.0.1:5201: Address already in use")));
        assert!(is_own_failure(&failed("cannot assign requested address (os error 99)")));
        assert!(!is_own_failure(&failed("connection refused")));
    }

    /// Seen on a busy machine: 14 % of the ceiling, 92 %, nothing at all.
    #[test]
    fn a_repetition_that_is_as_good_as_it_should_be_confirms_no_loss() {
        let sample = |bps: f64| {
            Sample::new(
                linerate_model::plan::Test {
                    repeat: 100,
                    second_stage: true,
                    ..linerate_model::plan::Test::new(
                        "a".into(),
                        "b".into(),
                        Layer::Underlay,
                        TcpPlan::single(250).into(),
                    )
                },
                0,
                Outcome::Measured(Box::new(Measurement {
                    throughput_bps: Some(bps),
                    ..Measurement::default()
                })),
            )
        };
        let confirmed = |rates: &[f64]| {
            let samples: Vec<Sample> = rates.iter().map(|bps| sample(*bps)).collect();
            cell(&Rules::DEFAULT, [0, 1], &[Vec::new(), Vec::new()], samples.iter())
                .is_some_and(|c| c.is_confirmed(Some(75e6)))
        };
        assert!(confirmed(&[10e6, 12e6]));
        assert!(confirmed(&[10e6, 69e6, 0.0]));
        assert!(!confirmed(&[69e6, 0.0]));
        assert!(!confirmed(&[10e6]), "once is no repetition");
    }
}
