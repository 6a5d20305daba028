//! Differences between two hosts of a run or between two runs. Snapshots come in, differences go out; a fix
//! is called proven only with an interval that excludes no change while the untouched pairs stayed.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use linerate_model::difference::{Difference, FixProof};
use linerate_model::fact_map::FactMap;
use linerate_model::inventory::Layer;
use linerate_model::kind::TcpPlan;
use linerate_model::path_methods::MethodPair;
use linerate_model::sample::{Measurement, Outcome, Sample};
use linerate_model::snapshot::Snapshot;

use crate::evidence::{CellEvidence, collect, peer_rates, series};
use crate::rules::{Rules, TrialRules};
use crate::stats::{Rng, median};

const RULES: &TrialRules = &Rules::DEFAULT.trials;

/// Facts of two hosts that differ, in the order of their keys.
pub fn hosts(snapshot: &Snapshot, a: &str, b: &str) -> Vec<Difference> {
    let empty = FactMap::default();
    facts(of(snapshot, a, &empty), of(snapshot, b, &empty), None)
}

fn facts(a: &FactMap, b: &FactMap, host: Option<&str>) -> Vec<Difference> {
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
            let (host, key) = (host.map(str::to_owned), key.clone());
            found.push(Difference::Fact { host, key, before: old.cloned(), after: new.cloned() });
        }
    }
}

/// What changed between two runs: effects on sets of pairs first, then cells, then facts.
pub fn runs(before: &Snapshot, after: &Snapshot) -> Vec<Difference> {
    let mut all = effects(before, after);
    all.extend(cells(before, after));
    let empty = FactMap::default();
    let hosts: BTreeSet<&String> = before.facts.keys().chain(after.facts.keys()).collect();
    for host in hosts {
        let changed = facts(of(before, host, &empty), of(after, host, &empty), Some(host));
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
        .filter_map(|c| Some(((c.layer, c.from.to_owned(), c.to.to_owned()), level(c)?)))
        .chain(downloads(snapshot))
        .collect()
}

/// The level of a cell: of two its lower one, for their mean never occurs; else that of its transfers without
/// their slow start, where intervals show it.
fn level(cell: &CellEvidence<'_>) -> Option<f64> {
    if let Some(two) = cell.two {
        return Some(two.low);
    }
    let of_series = |m: &Measurement| {
        let series = series(m, &Rules::DEFAULT.evidence);
        // The first interval of a short series is a large part of it.
        median(series.get(1..).filter(|rest| rest.len() >= RULES.level_intervals_min)?)
    };
    let levels: Option<Vec<f64>> = cell
        .measured()
        .filter(|(s, _)| s.test.kind.get().is_some_and(TcpPlan::is_single))
        .map(|(_, m)| of_series(m))
        .collect();
    levels.and_then(|levels| median(&levels)).or(cell.throughput_bps)
}

/// Downloads through each front end, from it to the host that fetches.
fn downloads(snapshot: &Snapshot) -> BTreeMap<CellKey, f64> {
    let mut rates: BTreeMap<CellKey, Vec<f64>> = BTreeMap::new();
    for sample in &snapshot.samples {
        let Outcome::Measured(m) = &sample.outcome else { continue };
        for fetch in m.tx.iter().flat_map(|end| &end.http) {
            let bps = fetch.bytes as f64 * 8000.0 / fetch.total_ms;
            if fetch.error.is_none() && bps.is_finite() {
                let key = (sample.test.layer, fetch.via.clone(), sample.test.from.clone());
                rates.entry(key).or_default().push(bps);
            }
        }
    }
    rates.into_iter().filter_map(|(key, rates)| Some((key, median(&rates)?))).collect()
}

/// The single measurements of each cell.
fn measured(snapshot: &Snapshot) -> BTreeMap<CellKey, Vec<f64>> {
    collect(snapshot, &Rules::DEFAULT)
        .iter()
        .map(|c| ((c.layer, c.from.to_owned(), c.to.to_owned()), c.rates.clone()))
        .collect()
}

/// By which methods the single-stream transfers of each cell were made, where the reports have it.
fn methods(snapshot: &Snapshot) -> BTreeMap<CellKey, MethodPair> {
    let samples = snapshot.samples.iter();
    let single = samples.filter(|sample| sample.test.kind.get().is_some_and(TcpPlan::is_single));
    let of = |sample: &Sample| {
        let test = &sample.test;
        Some(((test.layer, test.from.clone(), test.to.clone()), sample.methods()?))
    };
    single.filter_map(of).collect()
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

fn cells(before: &Snapshot, after: &Snapshot) -> Vec<Difference> {
    let (old, new) = (rates(before), rates(after));
    let (tests_before, tests_after) = (measured(before), measured(after));
    let (methods_before, methods_after) = (methods(before), methods(after));
    old.iter()
        .filter_map(|(key, a)| {
            let b = new.get(key)?;
            let ratio = b.max(RULES.nothing_bps) / a.max(RULES.nothing_bps);
            let large = !(1.0 / RULES.cell_ratio..=RULES.cell_ratio).contains(&ratio);
            let tests = tests_before.get(key).zip(tests_after.get(key));
            let small = !large && tests.is_some_and(|(b, a)| small_but_real(b, a, ratio));
            (large || small).then(|| {
                let methods = methods_before.get(key).cloned().zip(methods_after.get(key).cloned());
                let methods = methods.filter(|(before, after)| before != after);
                let (layer, from, to) = key.clone();
                Difference::Cell { from, to, layer, bps: (*a, *b), ratio, is_small: small, methods }
            })
        })
        .collect()
}

/// The pairs that were slow before, as one set, beside the pairs that were not.
fn effects(before: &Snapshot, after: &Snapshot) -> Vec<Difference> {
    let collected = collect(before, &Rules::DEFAULT);
    let peers = peer_rates(&collected, &Rules::DEFAULT.evidence);
    let new = rates(after);
    let (methods_before, methods_after) = (methods(before), methods(after));
    // A change of methods is no effect of a fix.
    let is_alike = |key: &CellKey| {
        methods_before.get(key).zip(methods_after.get(key)).is_none_or(|(before, after)| before == after)
    };
    let mut slow: Vec<(f64, f64)> = Vec::new();
    let mut fine: Vec<(f64, f64)> = Vec::new();
    for cell in &collected {
        let key = (cell.layer, cell.from.to_owned(), cell.to.to_owned());
        if !is_alike(&key) {
            continue;
        }
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
    let is_proven = still && (interval.0 > RULES.proven_min || interval.1 < RULES.proven_max);
    let proof = match (is_proven, ratio > 1.0) {
        (true, true) => FixProof::Faster,
        (true, false) => FixProof::Slower,
        _ => FixProof::Open,
    };
    vec![Difference::Effect {
        pairs: slow.len(),
        bps: (middle(|p| p.0), middle(|p| p.1)),
        ratio,
        interval,
        others: control.map(|ratio| (fine.len(), ratio)),
        proof,
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
    use linerate_model::fact::{FactValue, HostFacts};
    use linerate_model::inventory::{Host, Inventory, TransportSpec};
    use linerate_model::load::{LoadReport, TransferMethod};
    use linerate_model::plan::Test;

    #[test]
    fn small_changes_count_where_all_tests_agree() {
        assert!(small_but_real(&[23.4, 24.5], &[26.4, 27.7], 1.13));
        assert!(small_but_real(&[10.0, 10.1], &[9.0, 9.1], 0.9));
        assert!(!small_but_real(&[23.4, 26.5], &[26.4, 27.7], 1.08), "they overlap");
        assert!(!small_but_real(&[23.4], &[26.4], 1.13), "one test is no evidence");
        assert!(!small_but_real(&[23.4, 23.5], &[23.9, 24.0], 1.02), "too small to matter");
    }

    /// A run in which each pair has a transfer of this rate, made by this send method.
    fn run(rates: &[(&str, f64, &str)]) -> Snapshot {
        let end = |name: &str| {
            let method = Some(TransferMethod { name: name.to_owned(), ..TransferMethod::default() });
            Some(Box::new(LoadReport { way: method, ..LoadReport::default() }))
        };
        let sample = |(from, bps, send): &(&str, f64, &str)| {
            let test = Test::new((*from).into(), "z".into(), Layer::Underlay, TcpPlan::single(1000).into());
            let throughput_bps = Some(*bps);
            let (tx, rx) = (end(send), end("truncate"));
            let measured = Measurement { throughput_bps, tx, rx, ..Measurement::default() };
            Sample::new(test, 0, Outcome::Measured(Box::new(measured)))
        };
        let host = |name: &str| Host {
            name: name.into(),
            transport: TransportSpec::Local,
            groups: vec![],
            endpoints: vec![],
            state_dir: None,
            etc_dir: None,
            cache_dir: None,
        };
        let hosts = rates.iter().map(|(from, ..)| host(from)).chain([host("z")]).collect();
        Snapshot {
            inventory: Inventory { hosts, ..Inventory::default() },
            samples: rates.iter().map(sample).collect(),
            ..Snapshot::default()
        }
    }

    #[test]
    fn a_rate_by_other_methods_is_named_so_and_proves_no_fix() {
        let before = run(&[
            ("a", 2e9, "write"),
            ("b", 2e9, "write"),
            ("c", 2e9, "write"),
            ("d", 9e9, "write"),
            ("e", 9e9, "write"),
            ("f", 9e9, "write"),
            ("g", 9e9, "write"),
        ]);
        let faster = |send| {
            run(&[
                ("a", 8e9, send),
                ("b", 8e9, send),
                ("c", 8e9, send),
                ("d", 9e9, send),
                ("e", 9e9, send),
                ("f", 9e9, send),
                ("g", 9e9, send),
            ])
        };
        let named = |after: &Snapshot| -> Vec<bool> {
            let all = runs(&before, after);
            let cells = all
                .iter()
                .filter_map(|d| if let Difference::Cell { methods, .. } = d { Some(methods) } else { None });
            cells.map(Option::is_some).collect()
        };
        let is_effect = |d: &Difference| matches!(d, Difference::Effect { .. });
        assert_eq!(named(&faster("write")), [false; 3]);
        assert!(runs(&before, &faster("write")).iter().any(is_effect), "the same methods: an effect");
        assert_eq!(named(&faster("zerocopy")), [true; 3]);
        assert!(!runs(&before, &faster("zerocopy")).iter().any(is_effect));
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
        let key = |d: &Difference| match d {
            Difference::Fact { key, .. } => key.clone(),
            _ => String::new(),
        };
        assert_eq!(found.iter().map(key).collect::<Vec<_>>(), ["y", "z"]);
        assert!(hosts(&snapshot, "a", "nobody").len() == 2);
        assert!(runs(&snapshot, &snapshot).is_empty());
    }
}
