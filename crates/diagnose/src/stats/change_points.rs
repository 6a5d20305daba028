//! Where the level of a series changes, over many series at once, with a bound on false discoveries.
//!
//! Each series is split by circular binary segmentation (Olshen 2004): the stretch whose clipped mean differs
//! most from the rest, in standard errors of what is left then. The same search in shuffled remainders gives
//! its probability by chance; a tail fitted to the largest of them carries it beyond their number. Of all
//! series the steps are taken together (Benjamini and Hochberg), and what a step leaves on its sides is
//! searched again. A step stands only where the medians of both sides differ, so that a spike of any height
//! is none. Seeds are fixed: the same series give the same steps.

use super::{Rng, mad, median};
use crate::rules::HistoryRules;

/// A change of level.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangePoint {
    /// First value of the new level.
    pub at: usize,
    /// Median of the level before.
    pub before: f64,
    /// Median of the level from then on.
    pub after: f64,
    /// Probability that chance alone makes such a step in such a series.
    pub chance: f64,
}

/// Values in time order, and the smallest step that counts in them.
#[derive(Debug, Clone, Copy)]
pub struct Steps<'a> {
    /// Values, all finite.
    pub values: &'a [f64],
    /// Smallest difference of two levels.
    pub effect_min: f64,
}

/// The best stretch of one series.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Stretch {
    from: usize,
    to: usize,
    /// Difference to the rest in standard errors.
    errors: f64,
}

/// A part of a series that is searched.
struct Part {
    series: usize,
    from: usize,
    to: usize,
}

/// The change points of each series, in time order.
#[must_use]
pub fn change_points(all: &[Steps<'_>], rules: &HistoryRules) -> Vec<Vec<ChangePoint>> {
    let long = 2 * rules.segment_min;
    let mut found: Vec<Vec<(usize, f64)>> = vec![Vec::new(); all.len()];
    let mut parts: Vec<Part> = all
        .iter()
        .enumerate()
        .map(|(series, steps)| (series, steps.values.len()))
        .map(|(series, to)| Part { series, from: to.saturating_sub(rules.points_max), to })
        .collect();
    while !parts.is_empty() {
        parts.retain(|part| part.to - part.from >= long);
        let tested: Vec<Option<(Vec<usize>, f64)>> =
            parts.iter().map(|part| test(&all[part.series], part, rules)).collect();
        let bound = false_discovery_bound(&tested, rules.false_discoveries);
        let mut next = Vec::new();
        for (part, tested) in parts.iter().zip(tested) {
            let Some((steps, chance)) = tested.filter(|(_, chance)| *chance <= bound) else { continue };
            let ends = steps.iter().copied().chain([part.to]);
            let mut from = part.from;
            for to in ends {
                next.push(Part { series: part.series, from, to });
                from = to;
            }
            found[part.series].extend(steps.into_iter().map(|at| (at, chance)));
        }
        parts = next;
    }
    all.iter().zip(found).map(|(steps, found)| levels(steps, found, rules)).collect()
}

/// The largest probability that is a discovery when so many were tested.
fn false_discovery_bound(tested: &[Option<(Vec<usize>, f64)>], share: f64) -> f64 {
    let mut chances: Vec<f64> = tested.iter().flatten().map(|(_, chance)| *chance).collect();
    chances.sort_by(f64::total_cmp);
    let each = share / tested.len().max(1) as f64;
    let within = |(rank, chance): &(usize, f64)| *chance <= each * (*rank + 1) as f64;
    chances.into_iter().enumerate().rev().find(within).map_or(-1.0, |(_, chance)| chance)
}

/// The steps with the levels on their sides. What is too small after all steps are known goes.
fn levels(steps: &Steps<'_>, mut found: Vec<(usize, f64)>, rules: &HistoryRules) -> Vec<ChangePoint> {
    found.sort_by_key(|(at, _)| *at);
    loop {
        let points: Vec<ChangePoint> = (0..found.len())
            .filter_map(|i| {
                let from = i.checked_sub(1).map_or(0, |i| found[i].0);
                let (at, chance) = found[i];
                let to = found.get(i + 1).map_or(steps.values.len(), |next| next.0);
                let from = from.max(to.saturating_sub(rules.points_max).min(at - 1));
                let (before, after) = (median(&steps.values[from..at])?, median(&steps.values[at..to])?);
                Some(ChangePoint { at, before, after, chance })
            })
            .collect();
        let small = |point: &ChangePoint| (point.after - point.before).abs() < steps.effect_min;
        let Some(least) = points
            .iter()
            .filter(|point| small(point))
            .min_by(|a, b| (a.after - a.before).abs().total_cmp(&(b.after - b.before).abs()))
        else {
            return points;
        };
        found.retain(|(at, _)| *at != least.at);
    }
}

/// The steps at the ends of the best stretch of a part, and their probability by chance; none where they are
/// too small to count.
fn test(steps: &Steps<'_>, part: &Part, rules: &HistoryRules) -> Option<(Vec<usize>, f64)> {
    let values = &steps.values[part.from..part.to];
    let floor = rules.noise_floor * steps.effect_min;
    let noise = noise(values).max(floor);
    let centre = median(values)?;
    let scaled: Vec<f64> =
        values.iter().map(|v| ((v - centre) / noise).clamp(-rules.clip, rules.clip)).collect();
    let mut search = Search { rules, floor: floor / noise, sums: Vec::new() };
    let best = search.best(&scaled)?;
    if best.errors < rules.screen {
        return None;
    }
    let kept = kept_ends(values, best, steps.effect_min, rules.segment_min);
    if kept.is_empty() {
        return None;
    }
    let chance = search.chance(&scaled, best, part.series);
    Some((kept.into_iter().map(|at| part.from + at).collect(), chance))
}

/// The ends of a stretch at which the medians differ enough, moved to where the values cross from one level
/// to the other. None where the stretch, or what is beside it, is too short then.
fn kept_ends(values: &[f64], best: Stretch, effect_min: f64, segment_min: usize) -> Vec<usize> {
    let Some(inside) = median(&values[best.from..best.to]) else { return Vec::new() };
    let outside = |piece: &[f64]| median(piece).filter(|level| (inside - level).abs() >= effect_min);
    let (left, right) = (outside(&values[..best.from]), outside(&values[best.to..]));
    let is_of = |value: f64, level: f64| (value - level).abs() < (value - inside).abs();
    let (mut from, mut to) = (best.from, best.to);
    if let Some(level) = left {
        while from < to && is_of(values[from], level) {
            from += 1;
        }
        while from > 0 && !is_of(values[from - 1], level) {
            from -= 1;
        }
    }
    if let Some(level) = right {
        while to > from && is_of(values[to - 1], level) {
            to -= 1;
        }
        while to < values.len() && !is_of(values[to], level) {
            to += 1;
        }
    }
    let lengths = [(left.is_some(), from), (true, to - from), (right.is_some(), values.len() - to)];
    if lengths.iter().any(|(counts, length)| *counts && *length < segment_min) {
        return Vec::new();
    }
    [left.map(|_| from), right.map(|_| to)].into_iter().flatten().collect()
}

/// Noise of a series whose level may change: of the differences of neighbours, which a step changes once.
fn noise(values: &[f64]) -> f64 {
    let steps: Vec<f64> = values.windows(2).map(|w| w[1] - w[0]).collect();
    // The sign of a difference is arbitrary, so they scatter around zero.
    let both: Vec<f64> = steps.iter().flat_map(|s| [*s, -*s]).collect();
    mad(&both).unwrap_or(0.0) / std::f64::consts::SQRT_2
}

/// The search for the best stretch in scaled values.
struct Search<'r> {
    rules: &'r HistoryRules,
    /// Noise that is there in any case, in units of the scaled values.
    floor: f64,
    sums: Vec<f64>,
}

impl Search<'_> {
    /// The stretch that differs most from the rest. Neither it nor a piece beside it is shorter than a
    /// segment.
    fn best(&mut self, values: &[f64]) -> Option<Stretch> {
        let (n, least) = (values.len(), self.rules.segment_min.max(1));
        self.sums.clear();
        self.sums.push(0.0);
        let mut sum = 0.0;
        for value in values {
            sum += value;
            self.sums.push(sum);
        }
        let mut best = Stretch { from: 0, to: 0, errors: -1.0 };
        // One at the start is the same as the one behind it.
        for from in least..=n.saturating_sub(least) {
            for to in from + least..=n {
                let (inside, rest) = (to - from, n - (to - from));
                if to < n && n - to < least {
                    continue;
                }
                let within = self.sums[to] - self.sums[from];
                let mean = within / inside as f64 - (sum - within) / rest as f64;
                let squared = mean * mean * (inside * rest) as f64 / n as f64;
                if squared > best.errors {
                    best = Stretch { from, to, errors: squared };
                }
            }
        }
        (best.errors >= 0.0).then(|| {
            let spread = self.spread(&remainder(values, best));
            Stretch { errors: best.errors.sqrt() / spread, ..best }
        })
    }

    /// Standard deviation of what is left, wider where neighbours are alike.
    fn spread(&self, left: &[f64]) -> f64 {
        let squares: f64 = left.iter().map(|r| r * r).sum();
        let neighbours: f64 = left.windows(2).map(|w| w[0] * w[1]).sum();
        let alike = (neighbours / squares.max(f64::MIN_POSITIVE)).clamp(0.0, self.rules.autocorrelation_max);
        let variance = squares / (left.len() as f64 - 2.0).max(1.0) + self.floor * self.floor;
        (variance * (1.0 + alike) / (1.0 - alike)).sqrt()
    }

    /// How many neighbours are alike, so that they are shuffled together.
    fn block(&self, left: &[f64]) -> usize {
        let squares: f64 = left.iter().map(|r| r * r).sum();
        let neighbours: f64 = left.windows(2).map(|w| w[0] * w[1]).sum();
        let alike = neighbours / squares.max(f64::MIN_POSITIVE);
        if alike < self.rules.autocorrelation_min {
            return 1;
        }
        let block = 2.0 / (1.0 - alike.min(self.rules.autocorrelation_max));
        (block as usize).clamp(1, (left.len() / 4).max(1))
    }

    /// The probability that shuffled remainders have a stretch that differs as much.
    fn chance(&mut self, values: &[f64], best: Stretch, seed: usize) -> f64 {
        let mut left = remainder(values, best);
        let block = self.block(&left);
        let mut order: Vec<usize> = (0..left.len().div_ceil(block)).collect();
        let mut rng = Rng::new(seed as u64);
        let mut chances: Vec<f64> = Vec::with_capacity(self.rules.permutations);
        let mut noisy = vec![0.0; left.len()];
        for _ in 0..self.rules.permutations {
            for last in (1..order.len()).rev() {
                order.swap(last, rng.below(last + 1));
            }
            let shift = rng.below(block);
            left.rotate_left(shift);
            let shuffled = order.iter().flat_map(|b| left.iter().skip(b * block).take(block));
            for (to, from) in noisy.iter_mut().zip(shuffled) {
                *to = from + self.floor * rng.normal();
            }
            chances.extend(self.best(&noisy).map(|stretch| stretch.errors));
            // Most candidates are chance: that is known before all are shuffled.
            let larger = chances.iter().filter(|chance| **chance >= best.errors).count();
            if larger >= self.rules.chance_enough {
                return larger as f64 / chances.len() as f64;
            }
        }
        chances.sort_by(|a, b| b.total_cmp(a));
        tail(&chances, best.errors, self.rules)
    }
}

/// Values without their level: that of the stretch, and that of the rest.
fn remainder(values: &[f64], best: Stretch) -> Vec<f64> {
    let is_inside = |i: usize| (best.from..best.to).contains(&i);
    let level = |inside: bool| {
        let (sum, count) = values
            .iter()
            .enumerate()
            .filter(|(i, _)| is_inside(*i) == inside)
            .fold((0.0, 0.0_f64), |(sum, count), (_, v)| (sum + v, count + 1.0));
        sum / count.max(1.0)
    };
    let (inside, rest) = (level(true), level(false));
    values.iter().enumerate().map(|(i, v)| v - if is_inside(i) { inside } else { rest }).collect()
}

/// Share of the steps of chance, largest first, that are as large as this one. Beyond them a power law with
/// the exponent of the largest (Hill), which steps of equal height would make too steep.
fn tail(chances: &[f64], step: f64, rules: &HistoryRules) -> f64 {
    let share = rules.tail_share;
    let larger = chances.iter().take_while(|chance| **chance >= step).count();
    let tail = ((chances.len() as f64 * share) as usize).max(1);
    if larger >= tail / 4 || chances.len() <= tail {
        return (larger + 1) as f64 / (chances.len() + 1) as f64;
    }
    let start = chances[tail].max(f64::MIN_POSITIVE);
    let logs: f64 = chances[..tail].iter().map(|chance| (chance / start).ln()).sum();
    let exponent = (tail as f64 / logs.max(f64::MIN_POSITIVE)).min(rules.tail_exponent_max);
    (share * (step / start).powf(-exponent)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Rules;

    const RULES: &HistoryRules = &Rules::DEFAULT.history;

    fn of(series: &[Vec<f64>]) -> Vec<Vec<ChangePoint>> {
        let steps: Vec<Steps<'_>> = series.iter().map(|values| Steps { values, effect_min: 0.1 }).collect();
        change_points(&steps, RULES)
    }

    fn noise_of(seed: u64, length: usize) -> Vec<f64> {
        let mut rng = Rng::new(seed);
        (0..length).map(|_| 0.02 * rng.normal()).collect()
    }

    #[test]
    fn a_step_is_found_where_it_is_among_many_series() {
        let mut series: Vec<Vec<f64>> = (0..200).map(|seed| noise_of(seed, 60)).collect();
        for value in &mut series[7][57..] {
            *value -= 0.3;
        }
        for value in &mut series[9][20..30] {
            *value -= 0.3;
        }
        let found = of(&series);
        let at = |i: usize| found[i].iter().map(|point| point.at).collect::<Vec<_>>();
        assert_eq!((at(7), at(9)), (vec![57], vec![20, 30]));
        assert!((found[7][0].after - found[7][0].before + 0.3).abs() < 0.05, "{:?}", found[7]);
        assert!(found.iter().enumerate().all(|(i, f)| i == 7 || i == 9 || f.is_empty()));
        assert_eq!(found, of(&series));
    }

    #[test]
    fn no_spike_is_a_change_and_two_points_are_none() {
        for height in [1.0, 100.0] {
            for at in [0, 20, 37, 38, 39] {
                let mut series = noise_of(3, 40);
                series[at] -= height;
                assert_eq!(of(&[series]), [vec![]], "{height} at {at}");
            }
            let mut two = noise_of(4, 40);
            two[38..].fill(-height);
            assert_eq!(of(&[two]), [vec![]], "{height}");
        }
    }

    #[test]
    fn short_and_constant_series_are_judged() {
        assert_eq!(of(&[vec![], vec![1.0], vec![1.0; 5], vec![1.0; 50]]), vec![vec![]; 4]);
        let mut short = noise_of(5, 5);
        short.extend(noise_of(6, 5).iter().map(|v| v - 1.0));
        let found = of(&[short]);
        assert_eq!(found[0].len(), 1, "{found:?}");
        assert_eq!(found[0][0].at, 5);
        let constant: Vec<f64> = [vec![0.0; 9], vec![1.0; 3]].concat();
        assert_eq!(of(&[constant])[0].len(), 1);
    }

    #[test]
    fn a_step_below_the_smallest_that_counts_is_none() {
        let mut series: Vec<f64> = noise_of(8, 80).iter().map(|v| v / 10.0).collect();
        for value in &mut series[40..] {
            *value += 0.05;
        }
        assert_eq!(of(&[series]), [vec![]]);
    }
}
