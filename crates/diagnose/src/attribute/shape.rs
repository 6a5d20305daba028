//! The shape of a loss: medians over the bad cells, beside the cells that are fine.

use std::collections::{BTreeMap, BTreeSet};

use linerate_knowledge::keys::pattern_fits;
use linerate_knowledge::{Cause, features};
use linerate_model::finding::{Clue, Metric};
use linerate_model::inventory::Layer;
use linerate_model::kind::{TcpPlan, TestKind, UdpPlan};
use linerate_model::load::LoadReport;
use linerate_model::sample::{Measurement, Outcome, Sample};

use super::scored::Scored;
use crate::evidence::{CellEvidence, Facts, jump_together, rtt_spread, series, two_hosts};
use crate::metrics::Row;
use crate::rules::{AttributeRules, Rules};
use crate::stats::{mad, mean, median};

/// Values of a shape, by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shape {
    /// Medians over the bad cells.
    values: BTreeMap<&'static str, f64>,
    /// Change of counters at the suspects in bad cells, less the same in cells that are fine; by key.
    counters: BTreeMap<String, f64>,
    /// Layers that were measured.
    pub layers: BTreeSet<Layer>,
    /// No word names the layer, so that it may be the other one.
    pub is_layer_open: bool,
    /// Only two hosts were measured.
    pub two_hosts: bool,
    /// The loss is there in a part of the tests only.
    pub intermittent: bool,
    /// Loaded RTT of the bad cells, us.
    pub rtt_us: Option<f64>,
    /// Throughput of the bad cells, bit/s.
    pub rate_bps: Option<f64>,
}

impl Shape {
    /// Whether this layer may be the only one that was measured.
    pub(crate) fn only_layer_may_be(&self, layer: Layer) -> bool {
        self.layers.len() == 1 && (self.is_layer_open || self.layers.contains(&layer))
    }

    /// A value by the name that a knowledge file uses.
    pub(crate) fn get(&self, name: &str) -> Option<f64> {
        match features::counter(name) {
            Some(pattern) => (!self.counters.is_empty()).then(|| {
                self.counters.iter().filter(|(k, _)| pattern_fits(pattern, k)).map(|(_, v)| *v).sum()
            }),
            None => self.values.get(name).copied(),
        }
    }

    /// Sets a value that comes from elsewhere (storage).
    pub(crate) fn set(&mut self, name: &'static str, value: f64) {
        self.values.insert(name, value);
    }
}

/// What a shape says without a look at the values: which layers were measured, and of how many hosts.
pub(crate) fn frame(facts: &Facts<'_>, cells: &[CellEvidence<'_>]) -> Shape {
    Shape {
        layers: cells.iter().map(|c| c.layer).collect(),
        is_layer_open: facts.is_layer_open(),
        two_hosts: two_hosts(cells),
        ..Shape::default()
    }
}

/// The shape of the bad cells, seen beside the good ones; `suspects` are the hosts whose counters count.
pub(crate) fn of(
    facts: &Facts<'_>,
    cells: &[CellEvidence<'_>],
    rows: &[Row],
    bad_rows: &[usize],
    suspects: &[&str],
) -> Shape {
    let rules = facts.rules;
    let bad_cells: BTreeSet<usize> = bad_rows.iter().map(|r| rows[*r].cell).collect();
    let bad: Vec<&CellEvidence<'_>> = bad_cells.iter().map(|i| &cells[*i]).collect();
    let kinds: BTreeSet<_> = bad.iter().map(|c| c.kind).collect();
    let good: Vec<&CellEvidence<'_>> = (0..cells.len())
        .filter(|i| !bad_cells.contains(i) && kinds.contains(&cells[*i].kind))
        .map(|i| &cells[i])
        .collect();
    // A median of thousands is that of some of them, spread over all.
    let step = good.len().div_ceil(rules.attribute.good_cells_max).max(1);
    let good: Vec<&CellEvidence<'_>> = good.into_iter().step_by(step).collect();
    let mut shape = Shape {
        rate_bps: over(&bad, |c| c.throughput_bps),
        rtt_us: over(&bad, |c| c.rtt_loaded_us.or(c.rtt_idle_us)),
        counters: counters(&bad, &good, suspects),
        ..frame(facts, cells)
    };
    path_values(rules, &mut shape, &bad, &good);
    row_values(&rules.attribute, &mut shape, cells, rows, &bad_cells);
    tcp_values(rules, &mut shape, &bad, &good);
    end_values(&mut shape, &bad, suspects);
    shape
}

/// Median over cells of a value of a cell.
fn over(cells: &[&CellEvidence<'_>], value: impl Fn(&CellEvidence<'_>) -> Option<f64>) -> Option<f64> {
    median(&cells.iter().filter_map(|c| value(c)).collect::<Vec<_>>())
}

fn put(shape: &mut Shape, name: &'static str, value: Option<f64>) {
    if let Some(value) = value.filter(|v| v.is_finite()) {
        shape.values.insert(name, value);
    }
}

fn path_values(all: &Rules, shape: &mut Shape, bad: &[&CellEvidence<'_>], good: &[&CellEvidence<'_>]) {
    let rules = &all.attribute;
    let ratio = |value: &dyn Fn(&CellEvidence<'_>) -> Option<f64>, floor: f64| {
        Some((over(bad, value)? + floor) / (over(good, value)? + floor))
    };
    put(shape, "rtt_idle_ratio", ratio(&|c| c.rtt_idle_us, rules.idle_ratio_floor_us));
    put(shape, "rtt_loaded_ratio", ratio(&|c| c.rtt_loaded_us, rules.loaded_ratio_floor_us));
    put(shape, "retransmits_ratio", ratio(&|c| c.retransmits_per_s, rules.retransmits_ratio_floor));
    put(shape, "cpu_ratio", ratio(&|c| c.cpu_s_per_gb, rules.cpu_ratio_floor));
    // Where nobody sent datagrams, what TCP sent again tells it.
    let sent_again = || over(bad, |c| median(&c.values(|m| tcp_loss(m, rules))));
    put(shape, "loss", over(bad, |c| c.loss).or_else(sent_again));
    put(shape, "reordered", over(bad, |c| mean(&c.values(|m| m.reordered.or(m.duplicated)))));
    put(shape, "duplicated", over(bad, |c| mean(&c.values(|m| m.duplicated))));
    put(shape, "rtt_spread", over(bad, rtt_spread));
    put(shape, "stall_ms", over(bad, |c| median(&c.values(Measurement::latest_us))).map(|us| us / 1e3));
    put(shape, "small_loss", over(bad, |c| median(&c.small_losses())));
    put(shape, "queueing", over(bad, |c| Some(c.rtt_loaded_us? / c.rtt_idle_us.filter(|us| *us > 0.0)?)));
    put(shape, "retransmits_per_s", over(bad, |c| c.retransmits_per_s));
    put(shape, "core_busy_tx", over(bad, |c| c.core_busy_tx));
    put(shape, "core_busy_rx", over(bad, |c| c.core_busy_rx));
    let is_read = |c: &&CellEvidence<'_>| c.core_busy_rx.is_some() || c.core_busy_tx.is_some();
    put(shape, "cpu_unread", Some(f64::from(u8::from(!bad.iter().any(is_read)))));
    let busy = |cells: &[&CellEvidence<'_>]| over(cells, |c| c.core_busy_rx);
    put(shape, "core_busy_rx_excess", busy(bad).map(|b| b - busy(good).unwrap_or(0.0)));
    put(shape, "udp_clean", over(bad, |c| c.loss.map(|l| f64::from(u8::from(l < rules.udp_clean)))));
    let jumps = over(bad, |c| c.rates.first().map(|_| f64::from(u8::from(c.two.is_some()))));
    let healthy_bps = over(good, |c| c.throughput_bps);
    put(shape, "two_state", if jump_together(bad, healthy_bps) { Some(1.0) } else { jumps });
    let limited = |c: &CellEvidence<'_>| {
        Some(f64::from(u8::from(crate::metrics::size_limit(&c.probes(), &all.metrics).is_some())))
    };
    put(shape, "mtu_limit", over(bad, |c| if c.probes().is_empty() { None } else { limited(c) }));
    put(shape, "blocked", over(bad, |c| Some(f64::from(u8::from(is_blocked(c))))));
    put(shape, "streams_gain", over(bad, streams_gain));
    put(
        shape,
        "loss_from_rate",
        over(bad, |c| {
            let offered = c.measured().find_map(|(s, _)| s.test.kind.get::<UdpPlan>())?.rate_bps;
            Some(f64::from(u8::from(c.throughput_bps? < rules.offered_margin * offered)))
        }),
    );
}

/// Whether nothing gets through that needs an answer. A rule in one direction lets the datagrams of the other
/// one arrive.
fn is_blocked(cell: &CellEvidence<'_>) -> bool {
    let answered = |kind: &TestKind| !kind.is::<UdpPlan>();
    let refused = |s: &&Sample| matches!(s.outcome, Outcome::NothingThrough { .. }) && answered(&s.test.kind);
    cell.measured().next().is_none()
        || (cell.samples.iter().any(refused) && !cell.measured().any(|(s, _)| answered(&s.test.kind)))
}

/// Share of the segments that were sent again.
fn tcp_loss(m: &Measurement, rules: &AttributeRules) -> Option<f64> {
    let counted = || {
        let segments_per_s = m.throughput_bps? / 8.0 / rules.segment_bytes;
        (segments_per_s >= rules.segments_min).then_some(m.retransmits_per_s? / segments_per_s)
    };
    let Some(tx) = m.tx.as_ref().filter(|tx| tx.tcp.is_some()) else { return counted() };
    let tcp = tx.tcp.as_ref()?;
    let segments = tx.bytes as f64 / f64::from(tcp.mss);
    (segments >= rules.segments_min).then_some(tcp.retransmits as f64 / segments)
}

/// Throughput with many streams over that with one.
fn streams_gain(cell: &CellEvidence<'_>) -> Option<f64> {
    let many: Vec<f64> = cell
        .measured()
        .filter(|(s, _)| s.test.kind.get().is_some_and(TcpPlan::is_parallel))
        .filter_map(|(_, m)| m.throughput_bps)
        .collect();
    let single = median(&cell.rates).filter(|r| *r > 0.0)?;
    (many.len() < cell.samples.len()).then_some(median(&many)? / single)
}

fn row_values(
    rules: &AttributeRules,
    shape: &mut Shape,
    cells: &[CellEvidence<'_>],
    rows: &[Row],
    bad_cells: &BTreeSet<usize>,
) {
    let shares: Vec<f64> = rows
        .iter()
        .filter(|r| r.response == Metric::Throughput && bad_cells.contains(&r.cell) && r.expected > 0.0)
        .map(|r| r.measured / r.expected)
        .collect();
    put(shape, "throughput_share", median(&shares));
    if full_at_times(rules, cells, rows, bad_cells) {
        put(shape, "two_state", Some(1.0));
    }
}

/// Whether bad cells run near their full rate for a part of the time and far below it for another part. Tests
/// that are as short as the states do not show two clean levels, but a limit that always holds never lets the
/// full rate through.
fn full_at_times(
    rules: &AttributeRules,
    cells: &[CellEvidence<'_>],
    rows: &[Row],
    bad_cells: &BTreeSet<usize>,
) -> bool {
    let mut shares: Vec<f64> = Vec::new();
    // One cell that is always full is another path, not another time.
    let (mut full, mut all) = (0, 0);
    for row in rows.iter().filter(|r| r.response == Metric::Throughput && bad_cells.contains(&r.cell)) {
        let cell = &cells[row.cell];
        if row.expected > 0.0 && (cell.kind.shared_groups == 0 || row.effect_min < 1.0) {
            let series =
                tests(&[cell]).flat_map(|(_, _, m)| series(m, &cell.rules.evidence)).collect::<Vec<_>>();
            let of_cell: Vec<f64> = series.iter().map(|v| v / row.expected).collect();
            full += usize::from(of_cell.iter().any(|share| *share >= rules.full_share));
            all += 1;
            shares.extend(of_cell);
        }
    }
    let part =
        |test: &dyn Fn(f64) -> bool| shares.iter().filter(|s| test(**s)).count() as f64 / shares.len() as f64;
    shares.len() >= rules.full_intervals_min
        && (full >= rules.full_cells_min || all <= rules.full_cells_min)
        && part(&|s| s >= rules.full_share) >= rules.full_part_min
        && part(&|s| s <= rules.low_share) >= rules.low_part_min
}

/// Single-stream TCP measurements of cells.
fn tests<'c, 'a: 'c>(
    cells: &'c [&'c CellEvidence<'a>],
) -> impl Iterator<Item = (&'c CellEvidence<'a>, &'a Sample, &'a Measurement)> + 'c {
    cells
        .iter()
        .flat_map(|c| c.measured().map(move |(s, m)| (*c, s, m)))
        .filter(|(_, s, _)| s.test.kind.get().is_some_and(TcpPlan::is_single))
}

/// How many of SACK and timestamps a connection goes without.
fn options_off(m: &Measurement) -> Option<f64> {
    let agreed = m.tx.as_ref()?.tcp.as_ref()?.agreed.as_ref()?;
    Some(f64::from(u8::from(!agreed.sack)) + f64::from(u8::from(!agreed.timestamps)))
}

fn tcp_values(all: &Rules, shape: &mut Shape, bad: &[&CellEvidence<'_>], good: &[&CellEvidence<'_>]) {
    let rules = &all.attribute;
    let of = |cells: &[&CellEvidence<'_>], value: &dyn Fn(&Measurement) -> Option<f64>| {
        median(&tests(cells).filter_map(|(_, _, m)| value(m)).collect::<Vec<_>>())
    };
    let limited = |m: &Measurement, part: fn(&linerate_model::load::TcpEnd) -> u64| {
        let tcp = m.tx.as_ref()?.tcp.as_ref()?;
        (tcp.busy_us > 0).then(|| part(tcp) as f64 / tcp.busy_us as f64)
    };
    put(shape, "rwnd_limited_share", of(bad, &|m| limited(m, |t| t.rwnd_limited_us)));
    put(shape, "sndbuf_limited_share", of(bad, &|m| limited(m, |t| t.sndbuf_limited_us)));
    let window =
        |m: &Measurement| Some(m.tx.as_ref()?.tcp.as_ref()?.unacked_bytes_max as f64).filter(|b| *b > 0.0);
    put(shape, "tcp_loss", of(bad, &|m| tcp_loss(m, rules)));
    put(shape, "window_bytes", of(bad, &window));
    put(shape, "window_bytes_ratio", of(bad, &window).zip(of(good, &window)).map(|(b, g)| b / g));
    // What a window of the bytes in flight allows, over what was measured: 1 when the window is the limit.
    put(
        shape,
        "window_over_rtt",
        of(bad, &|m| {
            let allowed = window(m)? * 8.0 / (m.rtt_loaded_us.filter(|r| *r > 0.0)? / 1e6);
            Some(allowed / m.throughput_bps.filter(|t| *t > 0.0)?)
        }),
    );
    put(
        shape,
        "sndbuf_bytes",
        of(bad, &|m| Some(m.tx.as_ref()?.tcp.as_ref()?.sndbuf_bytes as f64).filter(|b| *b > 0.0)),
    );
    put(
        shape,
        "sndbuf_full",
        of(bad, &|m| {
            let buffer = m.tx.as_ref()?.tcp.as_ref()?.sndbuf_bytes as f64;
            (buffer > 0.0).then_some(window(m)? / buffer)
        }),
    );
    let mss = |m: &Measurement| Some(f64::from(m.tx.as_ref()?.tcp.as_ref()?.mss)).filter(|b| *b > 0.0);
    put(shape, "mss_cut", of(bad, &mss).zip(of(good, &mss)).map(|(b, g)| g / b));
    put(
        shape,
        "wscale_off",
        of(bad, &|m| {
            let tcp = m.tx.as_ref()?.tcp.as_ref()?;
            Some(f64::from(u8::from(tcp.wscale == (0, 0))))
        }),
    );
    put(shape, "options_off", of(bad, &options_off));
    put(
        shape,
        "steadiness",
        of(bad, &|m| {
            let values = series(m, &all.evidence);
            let middle = median(&values).filter(|v| *v > 0.0 && values.len() >= rules.steadiness_min)?;
            Some(1.0 - (mad(&values)? / middle).min(1.0))
        }),
    );
    put(
        shape,
        "rtt_growth",
        of(bad, &|m| {
            let rtts: Vec<f64> =
                m.tx.as_ref()?.series.iter().map(|i| i.rtt_us).filter(|r| *r > 0.0).collect();
            let top = rtts.iter().copied().fold(0.0, f64::max);
            Some(top / m.tx.as_ref()?.tcp.as_ref()?.rtt_min_us).filter(|r| r.is_finite())
        }),
    );
}

/// Waiting for a CPU, at the end of the test that is suspected (at both when neither or both are).
fn end_values(shape: &mut Shape, bad: &[&CellEvidence<'_>], suspects: &[&str]) {
    let share = |report: Option<&LoadReport>| {
        let report = report?;
        (report.elapsed_s > 0.0).then(|| report.wait_s / report.elapsed_s)
    };
    let waits: Vec<f64> = tests(bad)
        .filter_map(|(cell, _, m)| {
            let (tx, rx) = (share(m.tx.as_deref()), share(m.rx.as_deref()));
            match (suspects.contains(&cell.from), suspects.contains(&cell.to)) {
                (true, false) => tx,
                (false, true) => rx,
                _ => tx.into_iter().chain(rx).reduce(f64::max),
            }
        })
        .collect();
    put(shape, "wait_share", median(&waits));
}

/// Growth per test of each counter at the suspects, less what it grows by in cells that are fine.
fn counters(
    bad: &[&CellEvidence<'_>],
    good: &[&CellEvidence<'_>],
    suspects: &[&str],
) -> BTreeMap<String, f64> {
    let (at_bad, bad_ends) = sums(bad, suspects);
    let (at_good, good_ends) = sums(good, &[]);
    at_bad
        .into_iter()
        .map(|(key, sum)| {
            let usual = at_good.get(key).map_or(0.0, |g| g / (good_ends.max(1) as f64));
            (key.to_owned(), sum / bad_ends.max(1) as f64 - usual)
        })
        .collect()
}

/// Sums of the counters at the ends of cells, at all of them when no host is named; and how many ends that
/// are.
fn sums<'a>(cells: &[&CellEvidence<'a>], only: &[&str]) -> (BTreeMap<&'a str, f64>, usize) {
    let only: BTreeSet<&str> = only.iter().copied().collect();
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    let mut ends = 0;
    for cell in cells {
        for sample in cell.samples.iter().chain(&cell.worthless) {
            for (host, deltas) in [(cell.from, &sample.tx_counters), (cell.to, &sample.rx_counters)] {
                if only.is_empty() || only.contains(host) {
                    ends += 1;
                    for (key, delta) in deltas {
                        // A counter that went back began anew, with its cgroup or its device.
                        *sums.entry(key.as_str()).or_insert(0.0) += (*delta).max(0) as f64;
                    }
                }
            }
        }
    }
    (sums, ends)
}

/// Adds the shape tests of a cause to its score; `None` when a required one fails. Where the cause left
/// something behind (`stands`), no growth of its counters was measured.
pub(super) fn judge(shape: &Shape, cause: &Cause, stands: bool, scored: &mut Scored<'_>) -> Option<()> {
    let tests = cause.shape.iter().filter(|test| !(stands && features::counter(&test.value).is_some()));
    for test in tests {
        let Some(value) = shape.get(&test.value) else {
            if test.required {
                return None;
            }
            continue;
        };
        let holds = test.at_least.is_none_or(|l| value >= l) && test.at_most.is_none_or(|l| value <= l);
        let clue = || Clue::Measured { name: test.value.clone(), value, says: test.says.clone() };
        if holds {
            scored.score += test.weight;
            scored.is_read |=
                test.weight > 0.0 && test.at_least.is_some() && features::is_specific(&test.value);
            // That something else is absent speaks for the cause, but needs words to be understood.
            if test.weight > 0.0 && (test.at_least.is_some() || !test.says.is_empty()) {
                scored.supports.push(clue());
            }
        } else if test.required {
            return None;
        } else {
            scored.score += test.against;
            if test.against < 0.0 {
                scored.contradicts.push(clue());
            }
        }
    }
    Some(())
}
