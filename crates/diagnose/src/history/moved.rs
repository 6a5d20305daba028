//! Changes of levels over all series at once.

use schemars::JsonSchema;
use serde::Serialize;

use super::series::{RunCells, SeriesHistory, doublings, present, scale};
use crate::rules::HistoryRules;
use crate::stats::{Steps, change_points, median};

const DAY_MS: u64 = 86_400_000;

/// A change of the level of a series.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LevelChange {
    /// Index of the series in the list.
    pub series: usize,
    /// Index of the last run of the old level.
    pub last: usize,
    /// Index of the first run of the new level.
    pub first: usize,
    /// Median of the old level, in the unit of the metric.
    pub before: f64,
    /// Median of the new level.
    pub after: f64,
    /// Whether the new level is worse.
    pub is_worse: bool,
    /// Probability that chance alone makes such a step in such a series. Of all changes that are listed at
    /// most one in twenty is expected to be chance.
    pub chance: f64,
}

/// The changes in all series, newest first. Runs are those of the series.
#[must_use]
pub fn moved(runs: &[RunCells<'_>], series: &[SeriesHistory], rules: &HistoryRules) -> Vec<LevelChange> {
    let prepared: Vec<(Vec<usize>, Vec<f64>)> = series.iter().map(|one| prepare(runs, one, rules)).collect();
    let steps: Vec<Steps<'_>> = series
        .iter()
        .zip(&prepared)
        .map(|(one, (_, values))| Steps { values, effect_min: scale(one.metric).1 })
        .collect();
    let mut all = Vec::new();
    for (number, points) in change_points(&steps, rules).into_iter().enumerate() {
        let (one, at) = (&series[number], &prepared[number].0);
        for (i, point) in points.iter().enumerate() {
            let start = i.checked_sub(1).map_or(0, |i| points[i].at);
            let end = points.get(i + 1).map_or(at.len(), |next| next.at);
            let level = |indices: &[usize]| {
                median(&present(&indices.iter().map(|p| one.values[*p]).collect::<Vec<_>>()))
            };
            let (Some(before), Some(after)) = (level(&at[start..point.at]), level(&at[point.at..end])) else {
                continue;
            };
            all.push(LevelChange {
                series: number,
                last: at[point.at - 1],
                first: at[point.at],
                before,
                after,
                is_worse: (after < before) == one.metric.more_is_better(),
                chance: point.chance,
            });
        }
    }
    all.sort_by(|a, b| b.first.cmp(&a.first).then(a.series.cmp(&b.series)));
    all
}

/// Indices and values that were measured, in doublings, without what returns every day.
fn prepare(runs: &[RunCells<'_>], one: &SeriesHistory, rules: &HistoryRules) -> (Vec<usize>, Vec<f64>) {
    let measured = |(index, value): (usize, &Option<f64>)| Some((index, doublings((*value)?, one.metric)));
    let (indices, mut values): (Vec<usize>, Vec<f64>) =
        one.values.iter().enumerate().filter_map(measured).unzip();
    let times: Vec<u64> = indices.iter().map(|index| runs[*index].at_ms).collect();
    without_days(&times, &mut values, rules);
    (indices, values)
}

/// Subtracts the level of each part of the day, where there are enough days to know it.
fn without_days(times: &[u64], values: &mut [f64], rules: &HistoryRules) {
    let (Some(first), Some(last)) = (times.first(), times.last()) else { return };
    if last - first < rules.cycle_days_min as u64 * DAY_MS {
        return;
    }
    let bin = |ms: u64| (ms % DAY_MS * rules.cycle_bins as u64 / DAY_MS) as usize;
    let mut bins = vec![Vec::new(); rules.cycle_bins];
    for (ms, value) in times.iter().zip(&*values) {
        bins[bin(*ms)].push(*value);
    }
    bins.iter_mut().filter(|bin| bin.len() < rules.cycle_bin_min).for_each(Vec::clear);
    if bins.iter().filter(|bin| !bin.is_empty()).count() < 2 {
        return;
    }
    let whole = median(values).unwrap_or(0.0);
    let levels: Vec<f64> = bins.iter().map(|bin| median(bin).map_or(0.0, |level| level - whole)).collect();
    for (ms, value) in times.iter().zip(values) {
        *value -= levels[bin(*ms)];
    }
}
