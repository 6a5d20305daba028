//! Series of hosts and pairs from the cells of runs. Each pair is compared with its own median over all runs;
//! what is common to all pairs of a run, to what a host sends and to what it receives is fitted by medians,
//! so that a slow pair is not taken for a slow host.

use std::collections::BTreeMap;

use linerate_model::finding::{Cell, Direction, Metric, Suspect};
use linerate_model::inventory::{HostName, Layer};
use linerate_model::units::MetricUnit;
use schemars::JsonSchema;
use serde::Serialize;

use crate::rules::{HistoryRules, MetricRules, Rules};
use crate::stats::{median, quantile};

/// The metrics that are followed.
const METRICS: [Metric; 5] =
    [Metric::Throughput, Metric::Loss, Metric::RttIdle, Metric::RttLoaded, Metric::Retransmits];

/// The cells of a run.
#[derive(Debug, Clone, Copy)]
pub struct RunCells<'a> {
    /// Start of the run, Unix milliseconds.
    pub at_ms: u64,
    /// What it measured.
    pub cells: &'a [Cell],
}

/// One metric of a host or pair over all runs.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SeriesHistory {
    /// Host, pair or all.
    pub suspect: Suspect,
    /// Direction of the traffic.
    pub direction: Direction,
    /// Layer.
    pub layer: Layer,
    /// What was measured.
    pub metric: Metric,
    /// Unit of the values.
    pub unit: MetricUnit,
    /// Its value in each run, in the unit of the metric; null where it was not measured. Of a host: the
    /// median of its pairs, moved by what they have in common.
    pub values: Vec<Option<f64>>,
}

/// What is added to a metric before its logarithm is taken, and its smallest move that counts (doublings).
pub(super) fn scale(metric: Metric) -> (f64, f64) {
    const METRICS: &MetricRules = &Rules::DEFAULT.metrics;
    const HISTORY: &HistoryRules = &Rules::DEFAULT.history;
    match metric {
        Metric::Loss => (METRICS.loss_floor, METRICS.loss_effect_min),
        Metric::RttIdle => (METRICS.rtt_idle_floor, METRICS.rtt_idle_effect_min),
        Metric::RttLoaded => (METRICS.rtt_loaded_floor, METRICS.rtt_loaded_effect_min),
        Metric::Retransmits => (METRICS.retransmits_floor, METRICS.retransmits_effect_min),
        _ => (HISTORY.throughput_floor, HISTORY.throughput_min),
    }
}

/// A value of a series in doublings, above the floor of its metric.
#[must_use]
pub fn doublings(value: f64, metric: Metric) -> f64 {
    (value.max(0.0) + scale(metric).0).log2()
}

/// The value of so many doublings.
#[must_use]
pub fn undoubled(doublings: f64, metric: Metric) -> f64 {
    (doublings.exp2() - scale(metric).0).max(0.0)
}

/// What a value of a series loses against the better ones of it, 0 (nothing) to 1 (all).
#[must_use]
pub fn share_lost(series: &SeriesHistory, value: f64) -> Option<f64> {
    let better = Rules::DEFAULT.metrics.healthy_quantile;
    let more = series.metric.more_is_better();
    let usual = quantile(&present(&series.values), if more { better } else { 1.0 - better })?;
    let worse = doublings(usual, series.metric) - doublings(value, series.metric);
    Some(1.0 - (if more { -worse } else { worse }).min(0.0).exp2())
}

fn value_of(cell: &Cell, metric: Metric) -> Option<f64> {
    let value = match metric {
        Metric::Throughput => cell.throughput_bps,
        Metric::Loss => cell.loss,
        Metric::RttIdle => cell.rtt_idle_us,
        Metric::RttLoaded => cell.rtt_loaded_us,
        Metric::Retransmits => cell.retransmits_per_s,
        _ => None,
    };
    value.filter(|v| v.is_finite())
}

/// All series: of each layer and metric those of hosts, then those of pairs. Runs in time order.
#[must_use]
pub fn series(runs: &[RunCells<'_>], rules: &HistoryRules) -> Vec<SeriesHistory> {
    let mut layers: Vec<Layer> = runs.iter().flat_map(|run| run.cells).map(|cell| cell.layer).collect();
    layers.sort_unstable();
    layers.dedup();
    let mut all = Vec::new();
    for layer in layers {
        for metric in METRICS {
            Pairs::of(runs, layer, metric).add_series(&mut all, runs.len(), rules);
        }
    }
    all
}

/// One layer and metric: ordered pairs of hosts with their values by run, in doublings.
struct Pairs<'a> {
    layer: Layer,
    metric: Metric,
    hosts: Vec<&'a HostName>,
    values: BTreeMap<(usize, usize), Vec<Option<f64>>>,
}

/// What explains the pairs of one run, in doublings.
struct Effects {
    all: f64,
    /// What each host sends and receives; none where it was seen with one partner at most.
    ends: Vec<[Option<f64>; 2]>,
}

impl<'a> Pairs<'a> {
    fn of(runs: &[RunCells<'a>], layer: Layer, metric: Metric) -> Self {
        let cells = |run: &RunCells<'a>| run.cells.iter().filter(|cell| cell.layer == layer);
        let mut hosts: Vec<&HostName> =
            runs.iter().flat_map(cells).flat_map(|cell| [&cell.from, &cell.to]).collect();
        hosts.sort_unstable();
        hosts.dedup();
        let number = |host: &HostName| hosts.binary_search(&host).unwrap_or_default();
        let mut values: BTreeMap<(usize, usize), Vec<Option<f64>>> = BTreeMap::new();
        for (at, run) in runs.iter().enumerate() {
            for cell in cells(run) {
                let Some(value) = value_of(cell, metric) else { continue };
                let pair = (number(&cell.from), number(&cell.to));
                values.entry(pair).or_insert_with(|| vec![None; runs.len()])[at] =
                    Some(doublings(value, metric));
            }
        }
        Self { layer, metric, hosts, values }
    }

    fn add_series(&self, all: &mut Vec<SeriesHistory>, runs: usize, rules: &HistoryRules) {
        if self.values.is_empty() {
            return;
        }
        let usual: BTreeMap<(usize, usize), f64> = self
            .values
            .iter()
            .filter_map(|(pair, values)| Some((*pair, median(&present(values))?)))
            .collect();
        let mut rest = self.values.clone();
        if self.hosts.len() >= rules.hosts_min {
            let effects: Vec<Effects> = (0..runs).map(|at| self.effects(at, &usual, rules)).collect();
            self.add_hosts(all, &effects, &usual);
            for ((from, to), values) in &mut rest {
                for (value, effects) in values.iter_mut().zip(&effects) {
                    let ends = effects.ends[*from][0].unwrap_or(0.0) + effects.ends[*to][1].unwrap_or(0.0);
                    *value = value.map(|v| v - effects.all - ends);
                }
            }
        }
        for ((from, to), values) in &rest {
            let suspect = Suspect::Pair(self.hosts[*from].clone(), self.hosts[*to].clone());
            all.push(self.one(suspect, Direction::Tx, values.iter().copied()));
        }
    }

    /// The series of all pairs together, and of both directions of each host.
    fn add_hosts(
        &self,
        all: &mut Vec<SeriesHistory>,
        effects: &[Effects],
        usual: &BTreeMap<(usize, usize), f64>,
    ) {
        let level = |is_of: &dyn Fn(&(usize, usize)) -> bool| {
            median(&usual.iter().filter(|(pair, _)| is_of(pair)).map(|(_, v)| *v).collect::<Vec<_>>())
        };
        let seen = |at: usize| self.values.values().any(|values| values[at].is_some());
        if let Some(level) = level(&|_| true) {
            let values = effects.iter().enumerate().map(|(at, e)| seen(at).then_some(level + e.all));
            all.push(self.one(Suspect::All, Direction::Both, values));
        }
        for (host, name) in self.hosts.iter().enumerate() {
            for (end, direction) in [Direction::Tx, Direction::Rx].into_iter().enumerate() {
                let is_of = |(from, to): &(usize, usize)| [*from, *to][end] == host;
                let Some(level) = level(&is_of) else { continue };
                let values = effects.iter().map(|e| e.ends[host][end].map(|effect| level + effect));
                all.push(self.one(Suspect::Host((*name).clone()), direction, values));
            }
        }
    }

    fn one(
        &self,
        suspect: Suspect,
        direction: Direction,
        values: impl Iterator<Item = Option<f64>>,
    ) -> SeriesHistory {
        let values = values.map(|value| value.map(|v| undoubled(v, self.metric))).collect();
        let metric = self.metric;
        SeriesHistory { suspect, direction, layer: self.layer, metric, unit: metric.unit(), values }
    }

    /// Fits one run: alternating medians of what remains at receivers and senders.
    fn effects(&self, at: usize, usual: &BTreeMap<(usize, usize), f64>, rules: &HistoryRules) -> Effects {
        let cells: Vec<([usize; 2], f64)> = self
            .values
            .iter()
            .filter_map(|(pair, values)| Some(([pair.0, pair.1], values[at]? - usual[pair])))
            .collect();
        let mut by_end = vec![[const { Vec::new() }; 2]; self.hosts.len()];
        for (number, (ends, _)) in cells.iter().enumerate() {
            by_end[ends[0]][0].push(number);
            by_end[ends[1]][1].push(number);
        }
        let all = median(&cells.iter().map(|(_, d)| *d).collect::<Vec<_>>()).unwrap_or(0.0);
        let mut effects = Effects { all, ends: vec![[None, None]; self.hosts.len()] };
        for _ in 0..rules.polish_rounds {
            let mut moved: f64 = 0.0;
            for end in [1, 0] {
                for (host, mine) in by_end.iter().map(|ends| &ends[end]).enumerate() {
                    let other = |number: &usize| {
                        let (ends, d) = &cells[*number];
                        d - effects.all - effects.ends[ends[1 - end]][1 - end].unwrap_or(0.0)
                    };
                    if mine.len() < rules.partners_min {
                        continue;
                    }
                    let fitted = median(&mine.iter().map(other).collect::<Vec<_>>());
                    let before = effects.ends[host][end].unwrap_or(0.0);
                    moved = moved.max((fitted.unwrap_or(0.0) - before).abs());
                    effects.ends[host][end] = fitted;
                }
                effects.centre(end);
            }
            if moved < rules.polish_done {
                break;
            }
        }
        effects
    }
}

impl Effects {
    /// What all hosts have in common is no effect of a host.
    fn centre(&mut self, end: usize) {
        let common = median(&self.ends.iter().filter_map(|ends| ends[end]).collect::<Vec<_>>());
        let common = common.unwrap_or(0.0);
        self.all += common;
        for effect in self.ends.iter_mut().filter_map(|ends| ends[end].as_mut()) {
            *effect -= common;
        }
    }
}

/// The values that were measured.
pub(super) fn present(values: &[Option<f64>]) -> Vec<f64> {
    values.iter().copied().flatten().collect()
}
