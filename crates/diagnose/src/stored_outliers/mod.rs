//! Hosts that stand out among their equals in what a database stored of them: since when, and by how much.
//!
//! In: series of counters, the same intervals for all hosts. Out: remarks. A figure of a host is compared
//! with the median of its equals in the same interval, so that what all of them have, such as the load of a
//! day, is of no host. When it began is the change point of that comparison, searched over all series at
//! once. Counters without a load on purpose name a host and no cause. A host of a survey:
//! `locate/search.rs`.

mod figures;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use linerate_model::inventory::Inventory;
use linerate_model::outlier::{HostOutlier, StoredSeries};
use linerate_model::remark::Remark;

use self::figures::{FIGURES, Figure, Whole};
use crate::disks::equals;
use crate::evidence::Facts;
use crate::rules::Rules;
use crate::stats::{Steps, change_points, mad, median};

/// Kinds of groups that make hosts equals; those of other kinds cross them.
const EQUALS: [&str; 2] = ["job", "role"];

/// Most intervals that are compared: the first ones.
const INTERVALS_MAX: usize = 4096;
/// Most intervals of all figures together, of some 50 bytes each: two figures of a hundred thousand devices
/// over what Prometheus is asked for have twice as many.
const CELLS_MAX: usize = 10_000_000;
/// Drives are compared where the sizes of their requests differ by less than this factor.
const SIZES_MAX: f64 = 2.0;
/// Most equals that a line over loads is drawn through: all pairs of them are compared.
const LINE_MAX: usize = 64;

/// A figure of one host or device over all intervals.
struct Track<'a> {
    host: &'a str,
    /// The series of its counter.
    series: &'a StoredSeries,
    values: Vec<Option<f64>>,
    /// Events per second of what it is divided by; empty where equals are not compared at their load.
    load: Vec<Option<f64>>,
    /// Sectors of a request, where that is known.
    size: Option<f64>,
    /// Doublings over the median of its equals.
    beyond: Vec<Option<f64>>,
    /// That median.
    usual: Vec<Option<f64>>,
}

/// The tracks of equals.
struct Group<'a> {
    figure: &'static Figure,
    device: &'a str,
    tracks: Vec<Track<'a>>,
}

/// The hosts that stand out, the furthest off first.
pub(crate) fn remarks(facts: &Facts<'_>) -> Vec<Remark> {
    let snapshot = facts.snapshot;
    if snapshot.stored.is_empty() {
        return Vec::new();
    }
    let groups = groups(&snapshot.stored, &snapshot.inventory, facts.rules);
    let mut found: Vec<(f64, HostOutlier)> = Vec::new();
    for (group, candidates) in groups.iter().zip(with_begins(&groups, facts.rules)) {
        let mut of_group: Vec<(f64, HostOutlier)> = candidates
            .into_iter()
            .filter_map(|(number, steps)| group.judge(number, &steps, facts.rules))
            .collect();
        if of_group.len() as f64 <= facts.rules.stored_outliers.share_max * group.tracks.len() as f64 {
            found.append(&mut of_group);
        }
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.key.cmp(&b.1.key)));
    found.truncate(facts.rules.stored_outliers.named_max);
    found.into_iter().map(|(_, outlier)| Remark::Outlier(Box::new(outlier))).collect()
}

/// All figures of all groups of equals that are large enough.
fn groups<'a>(stored: &'a [StoredSeries], inventory: &'a Inventory, rules: &Rules) -> Vec<Group<'a>> {
    let by_key: BTreeMap<(&str, &str), &StoredSeries> =
        stored.iter().map(|series| ((series.key.as_str(), series.host.as_str()), series)).collect();
    let mut class_of: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for host in &inventory.hosts {
        let groups = inventory.groups_of(&host.name).into_iter();
        let mut own: Vec<&str> =
            groups.filter(|g| EQUALS.contains(&g.kind.as_str())).map(|g| g.name.as_str()).collect();
        own.sort_unstable();
        class_of.insert(&host.name, own);
    }
    let most = intervals_max(stored);
    let mut all = Vec::new();
    for figure in FIGURES {
        let mut tracks: BTreeMap<(Vec<&str>, &str), BTreeMap<&str, Track<'a>>> = BTreeMap::new();
        for series in stored {
            let Some(device) = device_of(figure.key, &series.key) else { continue };
            let Some(track) = track(figure, series, device, &by_key, most) else { continue };
            let class = class_of.get(series.host.as_str()).cloned().unwrap_or_default();
            let is_of_host = matches!(figure.of, Whole::Time | Whole::Each(..));
            let tracks = tracks.entry((class, if is_of_host { "" } else { device })).or_default();
            match tracks.get_mut(series.host.as_str()) {
                Some(known) if is_of_host => known.take(&track, matches!(figure.of, Whole::Each(..))),
                Some(_) => {}
                None => drop(tracks.insert(&series.host, track)),
            }
        }
        let enough =
            tracks.into_iter().filter(|(_, tracks)| tracks.len() >= rules.stored_outliers.equals_min);
        let group = |((_, device), tracks): (_, BTreeMap<&str, Track<'a>>)| {
            Group::new(figure, device, tracks.into_values().collect())
        };
        all.extend(enough.map(group));
    }
    all
}

/// How many intervals of each series are compared, for a bound on all of them.
fn intervals_max(stored: &[StoredSeries]) -> usize {
    let of = |series: &StoredSeries| {
        FIGURES.iter().filter(|figure| device_of(figure.key, &series.key).is_some()).count()
    };
    (CELLS_MAX / stored.iter().map(of).sum::<usize>().max(1)).min(INTERVALS_MAX)
}

/// What stands for `*` in a key; empty where the pattern has none.
fn device_of<'k>(pattern: &str, key: &'k str) -> Option<&'k str> {
    match pattern.split_once('*') {
        None => (pattern == key).then_some(""),
        Some((head, tail)) => {
            let device = key.strip_prefix(head)?.strip_suffix(tail)?;
            (!device.is_empty() && !device.contains('.')).then_some(device)
        }
    }
}

/// What a counter grew by; a growth below 0, or beyond what a counter of 64 bits holds, is none.
fn grown(series: &StoredSeries, interval: usize) -> Option<f64> {
    series.at(interval).filter(|growth| (0.0..=u64::MAX as f64).contains(growth))
}

fn track<'a>(
    figure: &Figure,
    series: &'a StoredSeries,
    device: &str,
    by_key: &BTreeMap<(&str, &str), &'a StoredSeries>,
    intervals_max: usize,
) -> Option<Track<'a>> {
    let intervals = 0..series.intervals.min(intervals_max);
    let seconds = series.every_s.max(f64::MIN_POSITIVE);
    let other = |key: &str| by_key.get(&(key, series.host.as_str())).copied();
    let (mut load, mut size) = (Vec::new(), None);
    let values: Vec<Option<f64>> = match figure.of {
        Whole::Counter(of, least) | Whole::Load(of, least) | Whole::Each(of, least) => {
            let whole = other(&of.replace('*', device))?;
            let enough = |t| grown(whole, t).filter(|whole| *whole > 0.0 && *whole >= least * seconds);
            if matches!(figure.of, Whole::Load(..)) {
                load = intervals.clone().map(|t| Some(enough(t)? / seconds)).collect();
                let sectors = other(&series.key.replace("_ms", "_sectors"));
                size = sectors.and_then(|sectors| mean_ratio(sectors, whole, intervals.clone()));
            }
            let unit = if matches!(figure.of, Whole::Each(..)) { 1e-3 } else { 1.0 };
            intervals.map(|t| Some(grown(series, t)? * unit / enough(t)?)).collect()
        }
        Whole::Hours => intervals.map(|t| Some(grown(series, t)? / seconds * 3600.0)).collect(),
        Whole::Time => intervals.map(|t| Some(grown(series, t)? / seconds / 1e6)).collect(),
    };
    let none = vec![None; values.len()];
    Some(Track { host: &series.host, series, values, load, size, beyond: none.clone(), usual: none })
}

/// What one counter grew by for each growth of another, over all intervals.
fn mean_ratio(part: &StoredSeries, whole: &StoredSeries, intervals: Range<usize>) -> Option<f64> {
    let sum = |series: &StoredSeries| intervals.clone().filter_map(|t| grown(series, t)).sum::<f64>();
    Some(sum(part) / sum(whole)).filter(|ratio| ratio.is_finite() && *ratio > 0.0)
}

impl Track<'_> {
    /// Takes another device of the host: the larger value, or both together.
    fn take(&mut self, other: &Self, adds_up: bool) {
        for (mine, theirs) in self.values.iter_mut().zip(&other.values) {
            *mine = match (*mine, *theirs) {
                (Some(a), Some(b)) => Some(if adds_up { a + b } else { a.max(b) }),
                (one, other) => one.or(other),
            };
        }
    }

    /// Whether there were too few events in an interval for any trouble.
    fn is_small(&self, figure: &Figure, interval: usize) -> bool {
        let least = figure.least_per_s * self.series.every_s;
        least > 0.0 && grown(self.series, interval).is_none_or(|events| events < least)
    }

    /// The intervals in which it is compared, with its doublings over the others.
    fn compared(&self) -> (Vec<usize>, Vec<f64>) {
        let finite = |(t, beyond): (usize, &Option<f64>)| Some((t, beyond.filter(|b| b.is_finite())?));
        self.beyond.iter().enumerate().filter_map(finite).unzip()
    }
}

impl<'a> Group<'a> {
    fn new(figure: &'static Figure, device: &'a str, mut tracks: Vec<Track<'a>>) -> Self {
        let intervals = tracks.iter().map(|track| track.values.len()).max().unwrap_or(0);
        for t in 0..intervals {
            let mut sorted: Vec<(f64, usize)> = tracks
                .iter()
                .enumerate()
                .filter_map(|(number, track)| Some((track.values.get(t).copied()??, number)))
                .collect();
            sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
            // Two others have no middle.
            if sorted.len() < 4 {
                continue;
            }
            for (rank, (value, number)) in sorted.iter().enumerate() {
                let without = |at: usize| sorted[if at < rank { at } else { at + 1 }].0;
                let others = sorted.len() - 1;
                let usual = f64::midpoint(without((others - 1) / 2), without(others / 2));
                let track = &mut tracks[*number];
                let beyond = ((value + figure.floor) / (usual + figure.floor)).log2();
                track.usual[t] = Some(usual);
                track.beyond[t] = Some(if track.is_small(figure, t) { beyond.min(0.0) } else { beyond });
            }
        }
        Self { figure, device, tracks }
    }

    /// Tracks that may stand out, for those that do not need no search.
    fn candidates(&self, rules: &Rules) -> Vec<usize> {
        let far = rules.stored_outliers.ratio.log2();
        let is_far = |track: &Track<'_>| {
            track.beyond.iter().flatten().filter(|beyond| **beyond >= far).count()
                >= rules.stored_outliers.intervals_min
        };
        (0..self.tracks.len()).filter(|number| is_far(&self.tracks[*number])).collect()
    }

    /// Whether a track stands out on one of its levels; `steps` are the begins of levels among the intervals
    /// in which it is compared.
    fn judge(&self, number: usize, steps: &[usize], rules: &Rules) -> Option<(f64, HostOutlier)> {
        let track = &self.tracks[number];
        let (at, beyond) = track.compared();
        let bounds: Vec<usize> =
            std::iter::once(0).chain(steps.iter().copied()).chain([beyond.len()]).collect();
        let is_high = |range: &&[usize]| {
            let level = beyond.get(range[0]..range[1]).unwrap_or_default();
            median(level).is_some_and(|level| level >= rules.stored_outliers.ratio.log2())
        };
        // The last time that it stood out, which may have several levels.
        let levels: Vec<&[usize]> = bounds.windows(2).collect();
        let last = levels.iter().rposition(&is_high)?;
        let first = levels[..last].iter().rposition(|level| !is_high(level)).map_or(0, |low| low + 1);
        let (from, to) = (levels[first][0], levels[last][1]);
        if to - from < rules.stored_outliers.intervals_min {
            return None;
        }
        let during = &at[from..to];
        let value = median_of(&track.values, during)?;
        let usual = self.usual(number, during, rules)?;
        let floor = self.figure.floor;
        let far = ((value + floor) / (usual + floor)).log2();
        let others = self.deviations(number, during, rules);
        let is_beyond = far >= rules.stored_outliers.ratio.log2()
            && far >= rules.stored_outliers.spread * mad(&others)?
            && others.len() + 1 >= rules.stored_outliers.equals_min;
        let before: Vec<f64> = at[..from].iter().filter_map(|t| track.values[*t]).collect();
        is_beyond.then(|| {
            let outlier = HostOutlier {
                host: track.host.to_owned(),
                device: self.device.replace('/', "."),
                key: track.series.key.clone(),
                figure: self.figure.words.to_owned(),
                unit: self.figure.unit,
                value,
                usual,
                others: others.len(),
                since_ms: (from > 0).then(|| track.series.begin_ms(at[from])),
                until_ms: (to < at.len()).then(|| track.series.begin_ms(at[to])),
                before: median(&before),
            };
            (far, outlier)
        })
    }

    /// How far its equals are from what is usual for them, in doublings.
    fn deviations(&self, number: usize, during: &[usize], rules: &Rules) -> Vec<f64> {
        if matches!(self.figure.of, Whole::Load(..)) {
            let (others, floor) = (self.at_loads(number, during), self.figure.floor);
            let deviation = |(load, value): &(f64, f64)| {
                let expected = equals::expected(&others, *load, &rules.disks)?;
                Some(((value + floor) / (expected + floor)).log2())
            };
            return others.iter().filter_map(deviation).collect();
        }
        let others = self.tracks.iter().enumerate().filter(|(other, _)| *other != number);
        others.filter_map(|(_, track)| median_of(&track.beyond, during)).collect()
    }

    /// What is usual for a track in these intervals: the median of its equals, or what they do at its load.
    fn usual(&self, number: usize, during: &[usize], rules: &Rules) -> Option<f64> {
        let own = &self.tracks[number];
        if !matches!(self.figure.of, Whole::Load(..)) {
            return median_of(&own.usual, during);
        }
        equals::expected(&self.at_loads(number, during), median_of(&own.load, during)?, &rules.disks)
    }

    /// Loads and values of equals with requests of a like size: a large one takes longer than a small one.
    fn at_loads(&self, number: usize, during: &[usize]) -> Vec<(f64, f64)> {
        let is_alike = |other: &Track<'_>| match (self.tracks[number].size, other.size) {
            (Some(own), Some(theirs)) => (1.0 / SIZES_MAX..=SIZES_MAX).contains(&(own / theirs)),
            _ => true,
        };
        let others = self.tracks.iter().enumerate();
        let others = others.filter(|(other, track)| *other != number && is_alike(track));
        let every = self.tracks.len().div_ceil(LINE_MAX).max(1);
        others
            .step_by(every)
            .filter_map(|(_, track)| median_of(&track.load, during).zip(median_of(&track.values, during)))
            .collect()
    }
}

/// The median of what is known in these intervals.
fn median_of(values: &[Option<f64>], during: &[usize]) -> Option<f64> {
    median(&during.iter().filter_map(|t| values.get(*t).copied()?).collect::<Vec<_>>())
}

/// The candidates of each group with the steps of their levels, searched over all of them at once.
fn with_begins(groups: &[Group<'_>], rules: &Rules) -> Vec<Vec<(usize, Vec<usize>)>> {
    let candidates: Vec<Vec<usize>> = groups.iter().map(|group| group.candidates(rules)).collect();
    let values: Vec<Vec<f64>> = groups
        .iter()
        .zip(&candidates)
        .flat_map(|(group, numbers)| numbers.iter().map(|number| group.tracks[*number].compared().1))
        .collect();
    let steps: Vec<Steps<'_>> = values.iter().map(|values| Steps { values, effect_min: 1.0 }).collect();
    let mut found = change_points(&steps, &rules.history).into_iter();
    let mut begins = |number: usize| {
        let points: BTreeSet<usize> = found.next().unwrap_or_default().iter().map(|point| point.at).collect();
        (number, points.into_iter().collect())
    };
    candidates.into_iter().map(|numbers| numbers.into_iter().map(&mut begins).collect()).collect()
}

#[cfg(test)]
mod tests;
