//! What is taken of series: facts, counts since boot, growth over the range. Series come in, of each metric
//! the newest first; the sink of all imports, and stored series, come out. Of two values of one thing the
//! first counts: a device whose labels changed has its present ones.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::fact::{FactValue, check_key};
use linerate_model::outlier::StoredSeries;

use super::answer::Series;
use super::metric::{Metric, Use};
use super::range::StoredRange;
use crate::sink::Sink;

/// Most series that are kept.
const SERIES_MAX: usize = 200_000;
/// Most numbers of a setting.
const PARTS_MAX: usize = 16;

/// Everything that was taken.
#[derive(Default)]
pub(super) struct Kept {
    pub(super) sink: Sink,
    /// By host and key.
    pub(super) series: BTreeMap<(String, String), StoredSeries>,
    /// Settings of several numbers: by host and key, then by number.
    parts: BTreeMap<(String, String), BTreeMap<usize, f64>>,
    /// Last values of metrics that are facts only together: by host and key.
    pub(super) levels: BTreeMap<(String, String), f64>,
    /// Facts that are known: host and key.
    known: BTreeSet<(String, String)>,
    /// Values that were taken.
    pub(super) readings: usize,
}

/// For values of one host.
pub(super) struct Taken<'a> {
    pub(super) kept: &'a mut Kept,
    pub(super) host: &'a str,
    pub(super) range: &'a StoredRange,
}

/// A key with the values of its labels; `None` where one is missing.
fn key(pattern: &str, series: &Series) -> Option<String> {
    let mut key = String::new();
    let mut rest = pattern;
    while let Some((head, tail)) = rest.split_once('{') {
        let (label, after) = tail.split_once('}')?;
        let value = series.label(label);
        if value.is_empty() {
            return None;
        }
        // A dot would end the name in a key.
        key.extend([head, &value.replace('.', "/")]);
        rest = after;
    }
    key.push_str(rest);
    check_key(&key).then_some(key)
}

impl Taken<'_> {
    /// Takes a series by the table of its family; whether that was possible.
    pub(super) fn series(&mut self, metric: &Metric, series: &Series) -> bool {
        let Some(key) = key(&metric.key, series) else { return false };
        match metric.what {
            Use::Counter => self.counter(key, series, metric.factor),
            Use::Fact => {
                // Of a link that is down the kernel returns -1.
                if let Some(value) = series.last().map(|value| value * metric.factor).filter(|v| *v >= 0.0) {
                    self.fact(&key, FactValue::Int(value.round() as i64));
                }
            }
            Use::Own => {}
        }
        true
    }

    fn counter(&mut self, key: String, series: &Series, factor: f64) {
        let growth = growth(series, self.range, factor);
        if growth.iter().all(Option::is_none) {
            return;
        }
        let of = (self.host.to_owned(), key);
        if let Some(newer) = self.kept.series.get_mut(&of) {
            // Where its labels changed, the older series has what was before.
            for (newer, older) in newer.growth.iter_mut().zip(growth) {
                *newer = newer.or(older);
            }
            return;
        }
        if !self.kept.sink.has_capacity("stored series", self.kept.series.len(), SERIES_MAX) {
            return;
        }
        let never_grew = growth.iter().all(|growth| *growth == Some(0.0));
        // What did not grow in the range has no part in it, whatever it came to before.
        if let Some(last) = series.last().filter(|_| growth.iter().flatten().any(|growth| *growth > 0.0)) {
            self.kept.sink.of_host(self.host);
            self.kept.sink.counter(of.1.clone(), (last * factor).round() as i64);
        }
        self.kept.readings += 1;
        let stored = StoredSeries {
            host: of.0.clone(),
            key: of.1.clone(),
            start_ms: self.range.start_s * 1000,
            every_s: self.range.step_s as f64,
            intervals: self.range.intervals,
            growth: if never_grew { Vec::new() } else { growth },
        };
        self.kept.series.insert(of, stored);
    }

    pub(super) fn fact(&mut self, key: &str, value: FactValue) {
        self.kept.fact(self.host, key, value);
    }

    /// The last value of a metric that is a fact only together with others.
    pub(super) fn level(&mut self, key: String, series: &Series) {
        if let Some(value) = series.last() {
            self.kept.levels.entry((self.host.to_owned(), key)).or_insert(value);
        }
    }

    pub(super) fn text(&mut self, key: &str, value: &str) {
        if !value.is_empty() {
            self.fact(key, FactValue::Text(value.to_owned()));
        }
    }

    /// One number of a setting that has several.
    pub(super) fn part(&mut self, key: &str, index: usize, value: f64) {
        if index < PARTS_MAX {
            self.kept
                .parts
                .entry((self.host.to_owned(), key.to_owned()))
                .or_default()
                .entry(index)
                .or_insert(value);
        }
    }
}

impl Kept {
    pub(super) fn fact(&mut self, host: &str, key: &str, value: FactValue) {
        if self.known.insert((host.to_owned(), key.to_owned())) {
            self.sink.of_host(host);
            self.sink.fact(key, value);
            self.readings += 1;
        }
    }

    /// Settings of several numbers become facts.
    pub(super) fn join_parts(&mut self) {
        for ((host, key), parts) in std::mem::take(&mut self.parts) {
            let is_whole = parts.keys().copied().eq(0..parts.len());
            if is_whole {
                let words: Vec<String> = parts.values().map(|value| (*value as i64).to_string()).collect();
                self.sink.of_host(&host);
                self.sink.text(key, &words.join(" "));
            }
        }
    }
}

/// Growth in each interval. A counter that is smaller than before began anew.
fn growth(series: &Series, range: &StoredRange, factor: f64) -> Vec<Option<f64>> {
    let mut at: Vec<Option<f64>> = vec![None; range.intervals + 1];
    for (time, value) in series.points() {
        if let Some(bound) = range.bound(time) {
            at[bound] = Some(value);
        }
    }
    let grew = |pair: &[Option<f64>]| {
        let (before, now) = (pair[0]?, pair[1]?);
        let growth = (if now < before { now } else { now - before }) * factor;
        Some((growth.max(0.0) * 1e3).round() / 1e3).filter(|growth| growth.is_finite())
    };
    at.windows(2).map(grew).collect()
}
