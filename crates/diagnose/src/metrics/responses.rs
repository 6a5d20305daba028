//! What each cell says in each measured value, as effect: 0 where it is as expected, in doublings otherwise.
//! Cells come in, rows for the localisation go out. Cells of one kind are compared with each other only:
//! traffic inside a hypervisor is a hundred times as fast as traffic through its uplink.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::finding::{Cell, Metric};
use linerate_model::kind::{RttPlan, TcpPlan, UdpPlan};
use linerate_model::path_mtu::MtuProbe;
use linerate_model::remark::TcpOption;
use linerate_model::sample::{Measurement, Outcome, Sample};

use super::options::SWITCHES;
use crate::ceilings::Ports;
use crate::evidence::{CellEvidence, Facts, Kind, Single, is_of_probes, rtt_spread, series, tcp_values};
use crate::rules::MetricRules;
use crate::stats::{mad, mean, median, quantile};

/// One cell in one response.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    /// Index of the cell.
    pub cell: usize,
    /// Which value.
    pub response: Metric,
    /// What it is compared with.
    pub kind: Kind,
    /// Effect: 0 as expected, 1 a factor of two, …
    pub y: f64,
    /// Scale of the noise of `y`.
    pub sigma: f64,
    /// A smaller shift is not worth a finding.
    pub effect_min: f64,
    /// Effect that even the better cells of the kind have: everything is below its ceiling.
    pub common: f64,
    /// Expected value, in the unit of the response.
    pub expected: f64,
    /// Measured value.
    pub measured: f64,
}

/// Whether repetitions confirm what rows say. What a lost transfer brings with it does not confirm it.
pub(crate) fn are_confirmed(rows: &[&Row], cells: &[CellEvidence<'_>]) -> bool {
    let is_transfer = |row: &&&Row| row.response == Metric::Throughput;
    if rows.iter().any(|row| is_transfer(&row)) {
        rows.iter().filter(is_transfer).any(|row| cells[row.cell].is_confirmed(Some(row.expected)))
    } else {
        rows.iter().any(|row| match cells[row.cell].probed(row.response) {
            Some([_, again]) => comes_back(row.response, &again, &cells[row.cell]),
            None => cells[row.cell].is_confirmed(None),
        })
    }
}

/// Whether all that rows say is what one probe showed, and none of its repetitions.
pub(crate) fn are_refuted(rows: &[&Row], cells: &[CellEvidence<'_>]) -> bool {
    let is_refuted = |row: &&Row| {
        let cell = &cells[row.cell];
        let enough = |again: &[f64]| again.len() >= cell.rules.evidence.refuting_repetitions;
        let probed = cell.probed(row.response);
        probed.is_some_and(|[_, again]| enough(&again) && !comes_back(row.response, &again, cell))
    };
    !rows.is_empty() && rows.iter().all(is_refuted)
}

/// Whether what one probe showed was seen in one of its repetitions too: datagrams that are lost
/// intermittently are lost, and by chance hardly ever.
fn comes_back(response: Metric, again: &[f64], cell: &CellEvidence<'_>) -> bool {
    let rules = &cell.rules.metrics;
    let reading = Reading::of(response, rules);
    let is_bad = |value: &f64| reading.as_ref().is_some_and(|r| r.effect(*value, 0.0, rules) >= r.effect_min);
    again.len() >= cell.rules.evidence.refuting_repetitions && again.iter().any(is_bad)
}

/// Doublings of a value beyond what is expected, or below it for a throughput; 0 in a response that is not
/// read off single tests.
pub(crate) fn effect(response: Metric, value: f64, expected: f64, rules: &MetricRules) -> f64 {
    if response == Metric::Throughput {
        return (expected / value.max(1.0)).log2().clamp(0.0, rules.effect_max);
    }
    Reading::of(response, rules).map_or(0.0, |r| r.effect(value, expected, rules))
}

/// The tests of a cell in a response of which each of them tells by itself.
pub(crate) fn singles(response: Metric, cell: &CellEvidence<'_>) -> Vec<Single> {
    let rules = &cell.rules.metrics;
    // Several connections at once fill a queue that one does not.
    let alone = |sample: &Sample| sample.test.kind.get().is_some_and(TcpPlan::is_single);
    let late = |sample: &Sample| match &sample.outcome {
        Outcome::Measured(m) if alone(sample) => late_rtt(m, rules),
        _ => None,
    };
    match response {
        Metric::Throughput => cell.transfers(),
        Metric::RttLoaded => cell.singles(late),
        _ => cell.probes_of(response),
    }
}

/// How one response is read: floors keep ratios of tiny numbers from meaning something.
struct Reading {
    response: Metric,
    /// Added to both sides of the ratio, in the unit of the response.
    floor: f64,
    sigma: f64,
    effect_min: f64,
    /// Rank of the peers' value that counts as healthy, from the best.
    healthy: f64,
}

/// The responses that are read off single tests.
const READ: [Metric; 7] = [
    Metric::Loss,
    Metric::Reordering,
    Metric::Retransmits,
    Metric::Stalls,
    Metric::RttIdle,
    Metric::RttLoaded,
    Metric::CpuCost,
];

impl Reading {
    fn of(response: Metric, rules: &MetricRules) -> Option<Self> {
        let r = rules;
        let [floor, sigma, effect_min, healthy] = match response {
            Metric::Loss => [r.loss_floor, r.loss_sigma, r.loss_effect_min, r.loss_healthy],
            Metric::Reordering => {
                [r.reordering_floor, r.reordering_sigma, r.reordering_effect_min, r.reordering_healthy]
            }
            Metric::Retransmits => {
                [r.retransmits_floor, r.retransmits_sigma, r.retransmits_effect_min, r.retransmits_healthy]
            }
            Metric::Stalls => [r.stalls_floor, r.stalls_sigma, r.stalls_effect_min, r.stalls_healthy],
            Metric::RttIdle => {
                [r.rtt_idle_floor, r.rtt_idle_sigma, r.rtt_idle_effect_min, r.rtt_idle_healthy]
            }
            Metric::RttLoaded => {
                [r.rtt_loaded_floor, r.rtt_loaded_sigma, r.rtt_loaded_effect_min, r.rtt_loaded_healthy]
            }
            Metric::CpuCost => {
                [r.cpu_cost_floor, r.cpu_cost_sigma, r.cpu_cost_effect_min, r.cpu_cost_healthy]
            }
            _ => return None,
        };
        Some(Self { response, floor, sigma, effect_min, healthy })
    }

    /// Doublings of a value beyond what is expected.
    fn effect(&self, value: f64, expected: f64, rules: &MetricRules) -> f64 {
        ((value + self.floor) / (expected + self.floor)).log2().clamp(0.0, rules.effect_max)
    }
}

/// Counter of the times a CPU quota held processes back, and how many in a test mean something.
const THROTTLED: &str = "cgroup.nr_throttled";
/// Counter of the times that a link went away or came back.
const CARRIER: &str = "carrier_changes";

/// All rows of all responses.
pub(crate) fn rows(
    facts: &Facts<'_>,
    cells: &[CellEvidence<'_>],
    report: &[Cell],
    ports: &Ports<'_>,
) -> Vec<Row> {
    let mut rows = throughput(facts, cells, report, ports);
    let dead: Vec<bool> = {
        let mut dead = vec![false; cells.len()];
        for row in rows.iter().filter(|r| r.y > facts.rules.metrics.dead) {
            dead[row.cell] = true;
        }
        dead
    };
    for reading in READ.into_iter().filter_map(|response| Reading::of(response, &facts.rules.metrics)) {
        rows.extend(read(&reading, cells, &dead, &facts.rules.metrics));
    }
    rows.extend(path_mtu(facts, cells));
    rows.extend(two_state(cells, report, &facts.rules.metrics));
    rows.extend(tcp_options(facts, cells));
    rows.extend(held_back(facts, cells));
    rows
}

/// The more favourable of two repeats, the median of more: disturbance only ever makes a single test worse.
fn favourable(values: &[f64], more_is_better: bool) -> Option<f64> {
    if more_is_better {
        return quantile(values, 0.5);
    }
    let turned: Vec<f64> = values.iter().map(|v| -v).collect();
    quantile(&turned, 0.5).map(|v| -v)
}

fn throughput(facts: &Facts<'_>, cells: &[CellEvidence<'_>], report: &[Cell], ports: &Ports<'_>) -> Vec<Row> {
    let rules = &facts.rules.metrics;
    let mut by_kind: BTreeMap<Kind, Vec<(usize, f64, Option<f64>)>> = BTreeMap::new();
    for (i, cell) in cells.iter().enumerate() {
        // A throughput that jumps between two levels has no mean; the lower level is what is lost.
        let nothing = || (cell.measured().next().is_none() && cell.samples.len() > 1).then_some(0.0);
        let rate = cell.two.map(|t| t.low).or_else(|| favourable(&cell.rates, true)).or_else(nothing);
        if let Some(rate) = rate {
            let ceiling = report[i].ceiling.known_bps();
            by_kind.entry(cell.kind).or_default().push((i, rate, ceiling));
        }
    }
    let mut rows = Vec::new();
    for (kind, list) in by_kind {
        let known = list.iter().all(|(_, _, ceiling)| ceiling.is_some());
        let (expected, common) =
            if known { calibrated(&list, rules) } else { (peers(&list, cells, ports, rules), 0.0) };
        let ys: Vec<f64> = list
            .iter()
            .zip(&expected)
            .map(|((_, rate, _), expected)| effect(Metric::Throughput, *rate, *expected, rules))
            .collect();
        // Software links inside one machine share its CPUs with everything else; across machines the spread
        // says it.
        let inside = list.first().is_some_and(|(cell, _, _)| {
            facts.snapshot.inventory.same_machine(cells[*cell].from, cells[*cell].to)
        });
        let (floor, effect_min) = match (known, inside) {
            (true, _) if common == 0.0 => (rules.throughput_sigma_min, rules.throughput_min),
            (true, _) | (false, false) => (rules.throughput_peers_sigma_min, rules.throughput_peers_min),
            (false, true) => (rules.throughput_inside_sigma_min, rules.throughput_inside_min),
        };
        let above: Vec<f64> = ys.iter().map(|y| (y - common).max(0.0)).collect();
        let sigma = spread(cells, &list, &above, rules).clamp(floor, rules.throughput_sigma_max.max(floor));
        rows.extend(list.iter().zip(expected).zip(ys).map(|(((cell, rate, _), expected), y)| Row {
            cell: *cell,
            response: Metric::Throughput,
            kind,
            y,
            sigma,
            effect_min,
            common,
            expected,
            measured: *rate,
        }));
    }
    rows
}

/// Ceilings, lowered to what the better cells of the kind really reach as far as that is still healthy; and
/// what is missing even there.
fn calibrated(list: &[(usize, f64, Option<f64>)], rules: &MetricRules) -> (Vec<f64>, f64) {
    let shares: Vec<f64> = list.iter().filter_map(|(_, rate, ceiling)| Some(rate / (*ceiling)?)).collect();
    let reached = quantile(&shares, rules.healthy_quantile).filter(|_| shares.len() >= rules.common_min);
    let reached = reached.unwrap_or(rules.healthy_share);
    let (healthy, common) = if reached < rules.calibration_min {
        (rules.healthy_share, (rules.healthy_share / reached.max(1e-6)).log2().min(rules.effect_max))
    } else {
        (reached.min(1.0), 0.0)
    };
    (list.iter().map(|(_, _, ceiling)| ceiling.unwrap_or(0.0) * healthy).collect(), common)
}

/// What the better peers reach, for all cells of the kind; with the ports at its ends where they seem to
/// differ.
fn peers(
    list: &[(usize, f64, Option<f64>)],
    cells: &[CellEvidence<'_>],
    ports: &Ports<'_>,
    rules: &MetricRules,
) -> Vec<f64> {
    let rates: Vec<f64> = list.iter().map(|(_, rate, _)| *rate).collect();
    let better = quantile(&rates, rules.healthy_quantile).unwrap_or(0.0);
    list.iter().map(|(cell, ..)| ports.of(&cells[*cell]).unwrap_or(better)).collect()
}

/// Scale of the noise: from repeats where there are any, else from the better part of the cells.
fn spread(
    cells: &[CellEvidence<'_>],
    list: &[(usize, f64, Option<f64>)],
    ys: &[f64],
    rules: &MetricRules,
) -> f64 {
    let repeats: Vec<f64> = list
        .iter()
        .filter_map(|(i, _, _)| {
            let logs: Vec<f64> = cells[*i].rates.iter().filter(|r| **r > 0.0).map(|r| r.log2()).collect();
            (logs.len() >= 2).then(|| (logs[0] - logs[1]).abs())
        })
        .collect();
    // Of two hosts there are only two cells: both repeated say more than anything else.
    if repeats.len() >= rules.repeated_min || (repeats.len() == list.len() && list.len() >= 2) {
        return rules.repeated_sigma * median(&repeats).unwrap_or(0.0);
    }
    // The distance of so few cells is the loss itself: they are taken for as exact as a transfer can be.
    if list.len() < rules.common_min {
        return 0.0;
    }
    let mut sorted = ys.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.truncate((ys.len() * rules.better_fifths).div_ceil(5));
    mad(&sorted).unwrap_or(0.0)
}

fn read(reading: &Reading, cells: &[CellEvidence<'_>], dead: &[bool], rules: &MetricRules) -> Vec<Row> {
    // Beside a path that carries nothing it counts that the others carry something.
    let dead_kinds: BTreeSet<Kind> =
        cells.iter().zip(dead).filter(|(_, d)| **d).map(|(c, _)| c.kind).collect();
    let probed = cells.iter().filter(|c| !c.losses().is_empty()).map(|c| c.kind);
    let probed: BTreeSet<Kind> = probed.filter(|kind| !dead_kinds.contains(kind)).collect();
    let mut by_kind: BTreeMap<Kind, Vec<(usize, f64)>> = BTreeMap::new();
    for (i, cell) in cells.iter().enumerate().filter(|(i, _)| !dead[*i] || reading.response == Metric::Loss) {
        let values = match reading.response {
            Metric::Loss => losses(cell, probed.contains(&cell.kind)),
            Metric::Reordering => cell.reorderings(),
            Metric::Stalls => cell.values(Measurement::latest_us),
            Metric::Retransmits => cell.values(|m| m.retransmits_per_s),
            Metric::RttIdle => cell.values(|m| m.rtt_idle_us),
            Metric::RttLoaded => cell.values(|m| late_rtt(m, rules)),
            _ => tcp_values(cell, |m| m.cpu_s_per_gb),
        };
        let value = if is_of_probes(reading.response) { mean(&values) } else { favourable(&values, false) };
        if let Some(value) = value {
            by_kind.entry(cell.kind).or_default().push((i, value));
        }
    }
    let mut rows = Vec::new();
    for (kind, list) in by_kind {
        let values: Vec<f64> = list.iter().map(|(_, v)| *v).collect();
        // Loss and reordering have an absolute healthy value; the others only have their peers.
        let healthy = match reading.response {
            Metric::Loss | Metric::Reordering => 0.0,
            _ => peers_value(reading, &values, rules).min(without_peers(reading, cells, &list, rules)),
        };
        let sigma = match reading.response {
            Metric::RttIdle if list.len() < rules.common_min => rules.rtt_pair_sigma,
            _ => reading.sigma.max(scatter(reading, &values, rules)),
        };
        let probes = |cell: usize| cells[cell].probed(reading.response).map_or(1, |[all, _]| all.len());
        let slower = slower_than_healthy(cells, &list, healthy);
        let scattered = of_scattered(reading, cells, &list, rules);
        let expected = |cell: usize| match reading.response {
            Metric::RttLoaded => {
                queue_of_its_rate(healthy, cells[cell].rtt_idle_us, slower(cell).min(rules.slower_max))
            }
            _ => healthy,
        };
        rows.extend(list.iter().map(|(cell, value)| (*cell, *value, expected(*cell))).map(
            |(cell, value, expected)| Row {
                cell,
                response: reading.response,
                kind,
                y: reading.effect(value, expected, rules),
                // A few answered requests tell that the path is open, not that it is clean.
                sigma: if reading.response == Metric::Loss && value == 0.0 && cells[cell].losses().is_empty()
                {
                    rules.unprobed_loss_sigma
                } else {
                    // The mean of several probes is known better than that of one.
                    scattered(cell).map_or(sigma, |(sigma, _)| sigma) / (probes(cell).max(1) as f64).sqrt()
                },
                effect_min: scattered(cell).map_or(reading.effect_min, |(_, effect_min)| effect_min),
                common: 0.0,
                expected,
                measured: value,
            },
        ));
    }
    rows
}

/// Noise of an RTT of the idle path, and how much of it is worth a finding: one that changes from request to
/// request is late for another reason than a longer path, the more surely where that of its peers is steady.
fn of_scattered<'c>(
    reading: &Reading,
    cells: &'c [CellEvidence<'_>],
    list: &[(usize, f64)],
    rules: &'c MetricRules,
) -> impl Fn(usize) -> Option<(f64, f64)> + use<'c> {
    let is_idle = reading.response == Metric::RttIdle && list.len() >= rules.common_min;
    let asked = list.iter().filter(|_| is_idle);
    let spreads: Vec<f64> = asked.filter_map(|(cell, _)| rtt_spread(&cells[*cell])).collect();
    let steady = quantile(&spreads, reading.healthy).is_some_and(|spread| spread <= rules.rtt_steady_max);
    let sigma = if steady { rules.rtt_scattered_sigma } else { reading.sigma };
    move |cell| {
        let scatters = is_idle && rtt_spread(&cells[cell])? >= rules.rtt_scattered_min;
        scatters.then_some((sigma, rules.rtt_scattered_effect_min))
    }
}

/// What peers have, at the rank from the best that is usual for the value. Of so few that the quantile would
/// lie between the good one and the bad one, as of two hosts, the best is the peer; only of datagrams that
/// stand still, for two machines may well differ in the rest.
fn peers_value(reading: &Reading, values: &[f64], rules: &MetricRules) -> f64 {
    let best = reading.response == Metric::Stalls && values.len() < rules.common_min;
    let rank = if best { 0.0 } else { reading.healthy };
    quantile(values, rank).unwrap_or(0.0)
}

/// How much the RTT under load scatters among the paths of a kind, doublings: where queues fill by chance,
/// one that is twice as long means nothing. A queue without an end is many times as long, so that the scatter
/// that it makes itself is taken for chance up to a limit.
fn scatter(reading: &Reading, values: &[f64], rules: &MetricRules) -> f64 {
    if reading.response != Metric::RttLoaded || values.len() < rules.scatter_min {
        return 0.0;
    }
    let doublings = |rank: f64| quantile(values, rank).map_or(0.0, |v| (v + reading.floor).log2());
    // The quartiles of a normal distribution are this many standard deviations apart.
    ((doublings(0.75) - doublings(0.25)) / 1.35).min(rules.scatter_max)
}

/// How many times slower a cell is than those of its kind with a healthy value: a port of 10 Gbit/s beside
/// those of 25.
fn slower_than_healthy<'c>(
    cells: &'c [CellEvidence<'_>],
    list: &[(usize, f64)],
    healthy: f64,
) -> impl Fn(usize) -> f64 + use<'c> {
    let theirs = list.iter().filter(|(_, value)| *value <= healthy);
    let usual = median(&theirs.filter_map(|(cell, _)| median(&cells[*cell].rates)).collect::<Vec<_>>());
    move |cell| match (usual, median(&cells[cell].rates)) {
        (Some(usual), Some(rate)) if rate > 0.0 => (usual / rate).max(1.0),
        _ => 1.0,
    }
}

/// RTT under load when a queue of as many bytes as elsewhere empties so many times slower.
fn queue_of_its_rate(healthy_us: f64, idle_us: Option<f64>, slower: f64) -> f64 {
    let queue_us = (healthy_us - idle_us.unwrap_or(healthy_us)).max(0.0);
    healthy_us + queue_us * (slower - 1.0)
}

/// What a value may be where too few cells could be peers of each other: the RTT under load has the idle one
/// to stand on, and that one the fastest of all its requests, for a path that is healthy takes as long every
/// time.
fn without_peers(
    reading: &Reading,
    cells: &[CellEvidence<'_>],
    list: &[(usize, f64)],
    rules: &MetricRules,
) -> f64 {
    let cells = || list.iter().map(|(cell, _)| &cells[*cell]);
    match reading.response {
        _ if list.len() >= rules.common_min => f64::INFINITY,
        Metric::RttLoaded => {
            let idle: Vec<f64> = cells().filter_map(|cell| cell.rtt_idle_us).collect();
            median(&idle).map_or(f64::INFINITY, |idle| idle + rules.queue_usual_us)
        }
        Metric::RttIdle => cells()
            .flat_map(CellEvidence::measured)
            .filter_map(|(_, m)| m.tx.as_ref())
            .flat_map(|tx| &tx.rtt_us)
            .copied()
            .filter(|us| *us > 0.0)
            .fold(f64::INFINITY, f64::min),
        _ => f64::INFINITY,
    }
}

/// Smoothed RTT in the second half of a transfer: the first still shows the start.
fn late_rtt(m: &Measurement, rules: &MetricRules) -> Option<f64> {
    let series = m.tx.as_ref().map(|t| t.series.as_slice()).unwrap_or_default();
    let late: Vec<f64> = series[series.len() / 2..].iter().map(|i| i.rtt_us).filter(|r| *r > 0.0).collect();
    if series.len() >= rules.late_series_min { median(&late).or(m.rtt_loaded_us) } else { m.rtt_loaded_us }
}

/// Shares of lost datagrams. Where no probe of loss ran, the RTT requests still say whether anything gets
/// through; that something does is worth saying only where no pair of the kind was probed, or one is dead: a
/// few answers would outvote real probes.
fn losses(cell: &CellEvidence<'_>, kind_is_probed: bool) -> Vec<f64> {
    let probed = cell.losses();
    if !probed.is_empty() {
        return probed;
    }
    let reached = |s: &&linerate_model::sample::Sample| match s.outcome {
        Outcome::NothingThrough { .. } => 1.0,
        _ => 0.0,
    };
    let requests = cell.samples.iter().filter(|s| s.test.kind.is::<RttPlan>()).map(reached);
    // Where nobody sent a datagram, a connection that never came about is all that is known.
    if requests.clone().next().is_none()
        && !cell.samples.is_empty()
        && cell.samples.iter().all(|s| reached(s) > 0.0)
    {
        return vec![1.0];
    }
    requests.filter(|loss| !kind_is_probed || *loss > 0.0).collect()
}

/// Bytes of the smallest unanswered size and of the largest answered one, when a size does not arrive
/// although a smaller one does and the sender's own interface lets it out.
pub(crate) fn size_limit(probes: &[&MtuProbe], rules: &MetricRules) -> Option<(u32, u32)> {
    let mut answered = 0;
    let mut silent = u32::MAX;
    let sizes: std::collections::BTreeSet<u32> = probes.iter().map(|p| p.bytes).collect();
    for size in sizes {
        let of_size = probes.iter().filter(|p| p.bytes == size);
        let (sent, got, refused) = of_size.fold((0u32, 0u32, false), |(s, g, r), p| {
            (s + u32::from(p.sent), g + u32::from(p.answered), r || p.refused_mtu.is_some())
        });
        if got > 0 {
            answered = answered.max(size);
        } else if sent >= rules.silent_probes_min && !refused {
            silent = silent.min(size);
        }
    }
    (answered > 0 && silent < u32::MAX && silent > answered).then_some((silent, answered))
}

fn path_mtu(facts: &Facts<'_>, cells: &[CellEvidence<'_>]) -> Vec<Row> {
    let rules = &facts.rules.metrics;
    cells
        .iter()
        .enumerate()
        .filter_map(|(i, cell)| {
            let probes = cell.probes();
            if probes.is_empty() || probes.iter().all(|p| p.answered == 0) {
                return None;
            }
            let limit = size_limit(&probes, rules);
            let own = [cell.from, cell.to]
                .into_iter()
                .filter_map(|h| facts.number(h, &format!("nic.{}.mtu", facts.nic(h, cell.layer)?)))
                .fold(f64::INFINITY, f64::min);
            let largest = probes.iter().map(|p| f64::from(p.bytes)).fold(0.0, f64::max);
            Some(Row {
                cell: i,
                response: Metric::PathMtu,
                kind: cell.kind,
                y: if limit.is_some() { rules.yes } else { 0.0 },
                sigma: rules.yes_sigma,
                effect_min: rules.yes_effect_min,
                common: 0.0,
                expected: if own.is_finite() && limit.is_some_and(|(s, _)| f64::from(s) <= own) {
                    own
                } else {
                    largest
                },
                measured: limit.map_or(largest, |(_, answered)| f64::from(answered)),
            })
        })
        .collect()
}

/// A row of each cell whose ends have options on; none where all agree. A connection whose first segment was
/// lost goes on without ECN, which the kernel then takes for the reason.
fn tcp_options(facts: &Facts<'_>, cells: &[CellEvidence<'_>]) -> Vec<Row> {
    let rules = &facts.rules.metrics;
    let row = |(number, cell): (usize, &CellEvidence<'_>)| {
        let asked = SWITCHES.iter().filter(|switch| switch.option != TcpOption::Ecn);
        let taken: Vec<bool> = asked.filter_map(|switch| switch.is_taken_out(facts, cell)).collect();
        let out = taken.iter().filter(|is_out| **is_out).count();
        (!taken.is_empty()).then(|| Row {
            cell: number,
            response: Metric::TcpOptions,
            kind: cell.kind,
            y: if out > 0 { rules.yes } else { 0.0 },
            sigma: rules.yes_sigma,
            effect_min: rules.yes_effect_min,
            common: 0.0,
            expected: 1.0,
            measured: 1.0 - out as f64 / taken.len() as f64,
        })
    };
    let rows: Vec<Row> = cells.iter().enumerate().filter_map(row).collect();
    if rows.iter().all(|row| row.y == 0.0) { Vec::new() } else { rows }
}

/// Software links inside one machine share its CPUs and jump for that reason alone: only cells with a ceiling
/// count.
fn two_state(cells: &[CellEvidence<'_>], report: &[Cell], rules: &MetricRules) -> Vec<Row> {
    let has_series = |cell: &CellEvidence<'_>| {
        let evidence = &cell.rules.evidence;
        cell.measured().any(|(_, m)| series(m, evidence).len() >= evidence.series_min)
    };
    cells
        .iter()
        .enumerate()
        .filter(|(i, cell)| {
            has_series(cell) && (!report[*i].ceiling.is_guess() || cell.kind.shared_groups == 0)
        })
        .map(|(i, cell)| Row {
            cell: i,
            response: Metric::TwoState,
            kind: cell.kind,
            y: if cell.two.is_some() { rules.yes } else { 0.0 },
            sigma: rules.yes_sigma,
            effect_min: rules.yes_effect_min,
            common: 0.0,
            expected: cell.two.map_or(0.0, |t| t.high),
            measured: cell.two.map_or(0.0, |t| t.low),
        })
        .collect()
}

/// Tests during which an end was held back by a CPU quota, or lost its link, also those that were worthless
/// because of it. The value is the share of the tests; it is a row of `setting`, for it explains measurements
/// rather than being one.
fn held_back(facts: &Facts<'_>, cells: &[CellEvidence<'_>]) -> Vec<Row> {
    let rules = &facts.rules.metrics;
    // Devices beside the path come and go with containers.
    let links: Vec<[Vec<String>; 2]> = cells
        .iter()
        .map(|cell| {
            [cell.from, cell.to].map(|host| {
                let nics = facts.path_nics(host, cell.layer);
                nics.iter().map(|nic| format!("nic.{nic}.stat.{CARRIER}")).collect()
            })
        })
        .collect();
    let stopped = |counters: &BTreeMap<String, i64>, links: &[String]| {
        counters.get(THROTTLED).is_some_and(|n| *n >= rules.throttled_min)
            || links.iter().any(|link| counters.get(link).is_some_and(|n| *n > 0))
    };
    // Transfers and small tests apart: a generous quota holds back only what moves much, a mean one
    // everything, and then there may be few transfers.
    let share = |number: usize, cell: &CellEvidence<'_>| {
        let [tx, rx] = &links[number];
        let held_back =
            |s: &&&linerate_model::sample::Sample| stopped(&s.tx_counters, tx) || stopped(&s.rx_counters, rx);
        let all = || cell.samples.iter().chain(&cell.worthless);
        let bulk =
            |s: &&&linerate_model::sample::Sample| s.test.kind.is::<TcpPlan>() || s.test.kind.is::<UdpPlan>();
        let of = |wanted: bool| {
            let tests: Vec<_> = all().filter(|s| bulk(s) == wanted).collect();
            let held = tests.iter().filter(|s| held_back(s)).count();
            (!tests.is_empty()).then(|| held as f64 / tests.len() as f64)
        };
        [of(true), of(false)].into_iter().flatten().reduce(f64::max)
    };
    let shares: Vec<(usize, f64)> =
        cells.iter().enumerate().filter_map(|(i, c)| Some((i, share(i, c)?))).collect();
    if shares.iter().all(|(_, s)| *s == 0.0) {
        return Vec::new();
    }
    shares
        .into_iter()
        .map(|(cell, share)| Row {
            cell,
            response: Metric::Setting,
            kind: cells[cell].kind,
            y: if share >= rules.held_back_min { rules.yes } else { 0.0 },
            sigma: rules.yes_sigma,
            effect_min: rules.yes_effect_min,
            common: 0.0,
            expected: 0.0,
            measured: share,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size_limit(probes: &[&MtuProbe]) -> Option<(u32, u32)> {
        super::size_limit(probes, &crate::rules::Rules::DEFAULT.metrics)
    }

    #[test]
    fn the_better_of_two_repeats_counts() {
        assert_eq!(favourable(&[100.0, 50.0], true), Some(100.0));
        assert_eq!(favourable(&[0.2, 0.0], false), Some(0.0));
        assert_eq!(favourable(&[1.0, 2.0, 9.0], true), Some(2.0));
        assert_eq!(favourable(&[], false), None);
    }

    #[test]
    fn size_limit_needs_a_small_size_that_arrives() {
        let probe = |bytes, sent, answered, refused_mtu| MtuProbe { bytes, sent, answered, refused_mtu };
        let hole = [probe(576, 3, 3, None), probe(1400, 3, 3, None), probe(1500, 3, 0, None)];
        assert_eq!(size_limit(&hole.iter().collect::<Vec<_>>()), Some((1500, 1400)));
        let dead = [probe(576, 3, 0, None), probe(1500, 3, 0, None)];
        assert_eq!(size_limit(&dead.iter().collect::<Vec<_>>()), None);
        let own = [probe(576, 3, 3, None), probe(1500, 3, 0, Some(1400))];
        assert_eq!(size_limit(&own.iter().collect::<Vec<_>>()), None);
    }
}
