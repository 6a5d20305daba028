//! Differences between two hosts of a run or between two runs, in words and with figures. Snapshots come in,
//! differences go out; a fix is called proven only with an interval that excludes no change while the
//! untouched pairs stayed.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use linerate_model::fact::FactValue;
use linerate_model::fact_map::FactMap;
use linerate_model::inventory::Layer;
use linerate_model::snapshot::Snapshot;
use linerate_model::units;
use serde::{Deserialize, Serialize};

use crate::evidence::{collect, peer_rates};
use crate::rules::{Rules, TrialRules};
use crate::stats::{Rng, median};

/// What differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiffKind {
    /// A setting or property.
    Fact,
    /// Throughput of one ordered pair.
    Cell,
    /// The effect on a whole set of pairs: what a fix achieved.
    Effect,
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunDifference {
    /// Sort of thing.
    pub kind: DiffKind,
    /// What: a key (`host key` between runs), a pair with its layer, or a set of pairs.
    pub subject: String,
    /// First value in words; empty when it is absent there.
    pub before: String,
    /// Second value.
    pub after: String,
    /// Second over first, for figures.
    pub ratio: Option<f64>,
    /// 95 % interval of the ratio, for effects.
    pub interval: Option<(f64, f64)>,
    /// Whether the interval excludes no change.
    pub proven: bool,
    /// All of it as a sentence.
    pub sentence: String,
}

const RULES: &TrialRules = &Rules::DEFAULT.trials;

/// Facts of two hosts that differ, in the order of their keys.
pub fn hosts(snapshot: &Snapshot, a: &str, b: &str) -> Vec<RunDifference> {
    let empty = FactMap::default();
    facts(of(snapshot, a, &empty), of(snapshot, b, &empty), "")
}

fn facts(a: &FactMap, b: &FactMap, prefix: &str) -> Vec<RunDifference> {
    let mut found = Vec::new();
    // Both are in the order of their keys: one walk over them, for there may be thousands of facts on each of
    // thousands of hosts.
    let (mut left, mut right) = (a.iter().peekable(), b.iter().peekable());
    loop {
        let order = match (left.peek(), right.peek()) {
            (Some((a, _)), Some((b, _))) => a.cmp(b),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return found,
        };
        let before = if order == Ordering::Greater { None } else { left.next() };
        let after = if order == Ordering::Less { None } else { right.next() };
        let (old, new) = (before.map(|(_, v)| v), after.map(|(_, v)| v));
        if let Some((key, _)) = before.or(after).filter(|_| old != new) {
            found.push(fact(prefix, key, old, new));
        }
    }
}

fn fact(prefix: &str, key: &str, before: Option<&FactValue>, after: Option<&FactValue>) -> RunDifference {
    let say = |value: Option<&FactValue>| value.map_or(String::new(), ToString::to_string);
    let (before, after) = (say(before), say(after));
    let shown = |text: &str| if text.is_empty() { "absent".to_owned() } else { text.to_owned() };
    RunDifference {
        kind: DiffKind::Fact,
        subject: format!("{prefix}{key}"),
        sentence: format!("{prefix}{key}: {} and {}", shown(&before), shown(&after)),
        before,
        after,
        ratio: None,
        interval: None,
        proven: false,
    }
}

/// What changed between two runs: effects on sets of pairs first, then cells, then facts.
pub fn runs(before: &Snapshot, after: &Snapshot) -> Vec<RunDifference> {
    let mut all = effects(before, after);
    all.extend(cells(before, after));
    let empty = FactMap::default();
    let hosts: BTreeSet<&String> = before.facts.keys().chain(after.facts.keys()).collect();
    for host in hosts {
        let changed = facts(of(before, host, &empty), of(after, host, &empty), &format!("{host} "));
        // A host that was read in only one of the runs did not change.
        if before.facts.contains_key(host) && after.facts.contains_key(host) {
            all.extend(changed);
        }
    }
    all
}

fn of<'s>(snapshot: &'s Snapshot, host: &str, nothing: &'s FactMap) -> &'s FactMap {
    snapshot.facts.get(host).map_or(nothing, |f| &f.readings)
}

type CellKey = (Layer, String, String);

fn rates(snapshot: &Snapshot) -> BTreeMap<CellKey, f64> {
    collect(snapshot, &Rules::DEFAULT)
        .iter()
        .filter_map(|c| Some(((c.layer, c.from.to_owned(), c.to.to_owned()), c.throughput_bps?)))
        .collect()
}

/// The single measurements of each cell.
fn measured(snapshot: &Snapshot) -> BTreeMap<CellKey, Vec<f64>> {
    collect(snapshot, &Rules::DEFAULT)
        .iter()
        .map(|c| ((c.layer, c.from.to_owned(), c.to.to_owned()), c.rates.clone()))
        .collect()
}

/// A change that is small and yet no noise: at least two tests each, and every test after lies beyond every
/// test before.
fn small_but_real(before: &[f64], after: &[f64], ratio: f64) -> bool {
    let least = |v: &[f64]| v.iter().copied().fold(f64::INFINITY, f64::min);
    let most = |v: &[f64]| v.iter().copied().fold(0.0, f64::max);
    before.len().min(after.len()) >= RULES.cell_tests_min
        && ((ratio >= RULES.small_ratio && least(after) > most(before))
            || (ratio <= 1.0 / RULES.small_ratio && most(after) < least(before)))
}

fn cells(before: &Snapshot, after: &Snapshot) -> Vec<RunDifference> {
    let (old, new) = (rates(before), rates(after));
    let (tests_before, tests_after) = (measured(before), measured(after));
    old.iter()
        .filter_map(|(key, a)| {
            let b = new.get(key)?;
            let ratio = b.max(RULES.nothing_bps) / a.max(RULES.nothing_bps);
            let large = !(1.0 / RULES.cell_ratio..=RULES.cell_ratio).contains(&ratio);
            let tests = tests_before.get(key).zip(tests_after.get(key));
            let small = !large && tests.is_some_and(|(b, a)| small_but_real(b, a, ratio));
            (large || small).then(|| {
                let subject = format!("{} to {} ({})", key.1, key.2, key.0);
                let change = units::percent((ratio - 1.0).abs());
                let said = match (small, ratio > 1.0) {
                    (true, true) => format!(
                        ", a real but small gain: {change} more, every test after above every test before"
                    ),
                    (true, false) => format!(
                        ", a real but small loss: {change} less, every test after below every test before"
                    ),
                    (false, _) => format!(", {}", units::ratio(ratio)),
                };
                RunDifference {
                    kind: DiffKind::Cell,
                    sentence: format!(
                        "{subject}: {} before, {} after{said}",
                        units::rate(*a),
                        units::rate(*b)
                    ),
                    subject,
                    before: units::rate(*a),
                    after: units::rate(*b),
                    ratio: Some(ratio),
                    interval: None,
                    proven: false,
                }
            })
        })
        .collect()
}

/// The pairs that were slow before, as one set, beside the pairs that were not.
fn effects(before: &Snapshot, after: &Snapshot) -> Vec<RunDifference> {
    let collected = collect(before, &Rules::DEFAULT);
    let peers = peer_rates(&collected, &Rules::DEFAULT.evidence);
    let new = rates(after);
    let mut slow: Vec<(f64, f64)> = Vec::new();
    let mut fine: Vec<(f64, f64)> = Vec::new();
    for cell in &collected {
        let key = (cell.layer, cell.from.to_owned(), cell.to.to_owned());
        if let (Some(a), Some(b), Some(peer)) = (cell.throughput_bps, new.get(&key), peers.get(&cell.kind)) {
            let pair = (a.max(RULES.nothing_bps), b.max(RULES.nothing_bps));
            if a < RULES.slow_share * peer { slow.push(pair) } else { fine.push(pair) }
        }
    }
    if slow.len() < RULES.cells_min {
        return Vec::new();
    }
    let (ratio, interval) = paired(&slow, 1);
    let control = (fine.len() >= RULES.cells_min).then(|| paired(&fine, 2).0);
    let still = control.is_none_or(|c| c.ln().abs() < RULES.control_share * ratio.ln().abs());
    let middle =
        |pick: fn(&(f64, f64)) -> f64| median(&slow.iter().map(pick).collect::<Vec<_>>()).unwrap_or(0.0);
    let (a, b) = (units::rate(middle(|p| p.0)), units::rate(middle(|p| p.1)));
    let proven = still && (interval.0 > RULES.proven_min || interval.1 < RULES.proven_max);
    let verdict = match (proven, ratio > 1.0) {
        (true, true) => "fix proven",
        (true, false) => "it became worse, proven",
        _ => "no change proven",
    };
    let subject = format!("{} pairs that were slow before", slow.len());
    let control = control.map_or(String::new(), |c| {
        format!("; the {} other pairs changed by {}", fine.len(), units::ratio(c))
    });
    vec![RunDifference {
        kind: DiffKind::Effect,
        sentence: format!(
            "{verdict}: the {subject} went from {a} to {b}, {} (95 % interval {} to {}){control}",
            units::ratio(ratio),
            units::ratio(interval.0),
            units::ratio(interval.1)
        ),
        subject,
        before: a,
        after: b,
        ratio: Some(ratio),
        interval: Some(interval),
        proven,
    }]
}

/// Median of the ratios of pairs, with its bootstrap interval.
fn paired(pairs: &[(f64, f64)], seed: u64) -> (f64, (f64, f64)) {
    let ratios: Vec<f64> = pairs.iter().map(|(a, b)| b / a).collect();
    let centre = median(&ratios).unwrap_or(1.0);
    let mut rng = Rng::new(seed);
    let mut drawn: Vec<f64> = (0..RULES.resamples)
        .filter_map(|_| median(&ratios.iter().map(|_| ratios[rng.below(ratios.len())]).collect::<Vec<_>>()))
        .collect();
    drawn.sort_by(f64::total_cmp);
    let at = |q: f64| drawn.get((drawn.len() as f64 * q) as usize).copied().unwrap_or(centre);
    let outside = (1.0 - RULES.confidence) / 2.0;
    (centre, (at(outside), at(1.0 - outside)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::fact::HostFacts;

    #[test]
    fn small_changes_count_where_all_tests_agree() {
        assert!(small_but_real(&[23.4, 24.5], &[26.4, 27.7], 1.13));
        assert!(small_but_real(&[10.0, 10.1], &[9.0, 9.1], 0.9));
        assert!(!small_but_real(&[23.4, 26.5], &[26.4, 27.7], 1.08), "they overlap");
        assert!(!small_but_real(&[23.4], &[26.4], 1.13), "one test is no evidence");
        assert!(!small_but_real(&[23.4, 23.5], &[23.9, 24.0], 1.02), "too small to matter");
    }

    #[test]
    fn facts_that_differ_or_are_missing() {
        let facts = |pairs: &[(&str, i64)]| HostFacts {
            readings: pairs.iter().map(|(k, v)| ((*k).to_owned(), FactValue::Int(*v))).collect(),
            ..HostFacts::default()
        };
        let snapshot = Snapshot {
            facts: [
                ("a".to_owned(), facts(&[("x", 1), ("y", 2)])),
                ("b".to_owned(), facts(&[("x", 1), ("y", 3), ("z", 4)])),
            ]
            .into(),
            ..Snapshot::default()
        };
        let found = hosts(&snapshot, "a", "b");
        assert_eq!(found.iter().map(|d| d.subject.as_str()).collect::<Vec<_>>(), ["y", "z"]);
        assert!(hosts(&snapshot, "a", "nobody").len() == 2);
        assert!(runs(&snapshot, &snapshot).is_empty());
    }
}
