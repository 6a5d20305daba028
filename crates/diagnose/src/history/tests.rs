//! A host that receives badly from some run on is named, and no pair beside it; a pair alone is named alone.

use linerate_model::ceiling::Ceiling;
use linerate_model::finding::{Cell, Direction, Metric, Suspect};
use linerate_model::inventory::Layer;

use super::*;
use crate::rules::{HistoryRules, Rules};
use crate::stats::Rng;

const RULES: &HistoryRules = &Rules::DEFAULT.history;
const DAY_MS: u64 = 86_400_000;

fn cell(from: String, to: String, bps: f64) -> Cell {
    Cell {
        from,
        to,
        layer: Layer::Underlay,
        throughput_bps: Some(bps),
        two_state_bps: None,
        loss: None,
        rtt_idle_us: None,
        rtt_loaded_us: None,
        retransmits_per_s: None,
        cpu_s_per_gb: None,
        ceiling: Ceiling::default(),
        share: None,
    }
}

/// Daily runs over so many hosts; the factor of a pair in a run is given.
fn runs(hosts: usize, days: usize, factor: impl Fn(usize, usize, usize) -> f64) -> Vec<Vec<Cell>> {
    let mut rng = Rng::new(11);
    let mut run = |day: usize| {
        let mut cells = Vec::new();
        for from in 0..hosts {
            for to in (0..hosts).filter(|to| *to != from) {
                let bps = 9.4e9 * factor(day, from, to) * (0.03 * rng.normal()).exp();
                let (from, to) = (format!("arc-{from}"), format!("arc-{to}"));
                cells.push(cell(from, to, bps));
            }
        }
        cells
    };
    (0..days).map(&mut run).collect()
}

fn found(runs: &[Vec<Cell>]) -> Vec<(SeriesHistory, LevelChange)> {
    let runs: Vec<RunCells<'_>> =
        runs.iter().enumerate().map(|(day, cells)| RunCells { at_ms: day as u64 * DAY_MS, cells }).collect();
    let all = series(&runs, RULES);
    moved(&runs, &all, RULES).into_iter().map(|change| (all[change.series].clone(), change)).collect()
}

#[test]
fn a_host_is_named_with_its_direction_and_its_day() {
    for hosts in [3, 4, 8] {
        for (end, direction) in [(0, Direction::Tx), (1, Direction::Rx)] {
            let slow = |day: usize, from: usize, to: usize| {
                if day >= 9 && [from, to][end] == 1 { 0.6 } else { 1.0 }
            };
            let found = found(&runs(hosts, 14, slow));
            assert_eq!(found.len(), 1, "{hosts} hosts, {direction:?}: {found:?}");
            let (series, change) = &found[0];
            assert_eq!((&series.suspect, series.direction), (&Suspect::Host("arc-1".into()), direction));
            assert_eq!((change.last, change.first, change.is_worse), (8, 9, true));
            assert_eq!(series.metric, Metric::Throughput);
            let share = change.after / change.before;
            assert!((0.57..0.63).contains(&share) && (9.0e9..9.8e9).contains(&change.before), "{change:?}");
        }
    }
}

#[test]
fn a_pair_is_named_for_what_no_host_explains() {
    let slow = |day: usize, from: usize, to: usize| {
        if day >= 10 && (from, to) == (2, 3) { 0.5 } else { 1.0 }
    };
    let found = found(&runs(6, 16, slow));
    let named: Vec<&Suspect> = found.iter().map(|(series, _)| &series.suspect).collect();
    assert_eq!(named, [&Suspect::Pair("arc-2".into(), "arc-3".into())]);
}

#[test]
fn what_is_common_to_all_and_ends_again_is_two_changes_of_all() {
    let slow = |day: usize, _, _| if (8..13).contains(&day) { 0.7 } else { 1.0 };
    let found = found(&runs(5, 20, slow));
    let named: Vec<(&Suspect, usize, bool)> =
        found.iter().map(|(series, change)| (&series.suspect, change.first, change.is_worse)).collect();
    assert_eq!(named, [(&Suspect::All, 13, false), (&Suspect::All, 8, true)]);
}

#[test]
fn two_hosts_have_pairs_only_and_few_runs_show_nothing() {
    let slow = |day: usize, from: usize, _| if day >= 6 && from == 0 { 0.3 } else { 1.0 };
    let named: Vec<Suspect> =
        found(&runs(2, 12, slow)).into_iter().map(|(series, _)| series.suspect).collect();
    assert_eq!(named, [Suspect::Pair("arc-0".into(), "arc-1".into())]);
    assert!(found(&runs(4, 5, |day, _, _| if day > 2 { 0.1 } else { 1.0 })).is_empty());
    assert!(found(&[]).is_empty());
}

#[test]
fn what_was_not_measured_is_no_value() {
    let mut all = runs(4, 14, |_, _, _| 1.0);
    for day in [3, 4, 5, 6] {
        all[day].clear();
    }
    let runs: Vec<RunCells<'_>> =
        all.iter().enumerate().map(|(day, cells)| RunCells { at_ms: day as u64, cells }).collect();
    let series = series(&runs, RULES);
    assert!(series.iter().all(|one| one.values[4].is_none() && one.values[7].is_some()));
    assert_eq!(moved(&runs, &series, RULES), []);
}

/// Runs at night are faster than those at day; nothing moved.
#[test]
fn a_daily_cycle_is_no_change() {
    let hours = [2, 6, 10, 14, 18, 22];
    let cells: Vec<Vec<Cell>> = runs(4, 60, |at, _, to| if to == 1 && at % 6 > 2 { 0.7 } else { 1.0 });
    let runs: Vec<RunCells<'_>> = cells
        .iter()
        .enumerate()
        .map(|(at, cells)| RunCells { at_ms: (at / 6) as u64 * DAY_MS + hours[at % 6] * 3_600_000, cells })
        .collect();
    assert_eq!(moved(&runs, &series(&runs, RULES), RULES), []);
}
