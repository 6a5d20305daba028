//! A drive that is slow for a part of a long watch, one that fails, and how much of it all is kept.

use linerate_model::disk::{DiskInterval, DiskRates, DiskTraffic, DiskTrouble};
use linerate_model::fact::{FactValue, HostFacts};

use super::{DriveHistory, IntervalChange, RULES};
use crate::disks::{Layout, layout};

fn array(drives: usize, failed: &[&str]) -> Layout {
    let list = |names: Vec<String>| FactValue::List(names);
    let names: Vec<String> = (0..drives).map(|n| format!("sd{n}")).collect();
    let mut facts = HostFacts::default();
    facts.readings.extend(names.iter().map(|n| (format!("disk.{n}.size_bytes"), FactValue::Int(1 << 30))));
    facts.readings.extend([("disk.md0.on".to_owned(), list(names))]);
    if !failed.is_empty() {
        let failed = failed.iter().map(|name| (*name).to_owned()).collect();
        facts.readings.extend([("disk.md0.failed_legs".to_owned(), list(failed))]);
    }
    layout(&facts)
}

/// Interval number `n`, two seconds long; writes take 4 ms, those of the slow drive 90 ms.
fn interval(n: u64, drives: usize, slow: Option<&str>) -> DiskInterval {
    let disk = |number: usize| {
        let device = format!("sd{number}");
        let wait = if slow == Some(device.as_str()) { 90.0 } else { 4.0 };
        let write = DiskTraffic { requests_per_s: 30.0, wait_ms: Some(wait), ..DiskTraffic::default() };
        DiskRates { device, write, ..DiskRates::default() }
    };
    let disks = (0..drives).map(disk).collect();
    DiskInterval { host: "store".into(), at_ms: (n + 1) * 2000, seconds: 2.0, disks, times_missing: None }
}

/// Intervals with their changes; `slow` says which drive is slow in which.
fn watch<'a>(
    history: &mut DriveHistory,
    count: u64,
    slow: impl Fn(u64) -> Option<&'a str>,
) -> Vec<(u64, IntervalChange)> {
    let layout = array(8, &[]);
    let one = |n: u64| {
        let changes = history.push(&layout, &interval(n, 8, slow(n)), false);
        changes.into_iter().map(move |change| (n, change)).collect::<Vec<_>>()
    };
    (0..count).flat_map(one).collect()
}

#[test]
fn a_drive_that_was_slow_long_before_the_end_is_a_finding_of_the_watch() {
    let mut history = DriveHistory::default();
    let changes = watch(&mut history, 1000, |n| (100..200).contains(&n).then_some("sd3"));
    let [(began, IntervalChange::Began(first)), (ended, IntervalChange::Ended(last))] = &changes[..] else {
        panic!("{changes:?}")
    };
    // Half of the window, and as many quiet ones at the end as end it.
    assert_eq!((*began, *ended), (104, 205));
    assert_eq!((first.finding.device.as_str(), first.finding.what), ("sd3", DiskTrouble::SlowAmongEquals));
    assert_eq!((first.since_ms, first.seconds), (200_000, 10.0));
    assert_eq!((last.since_ms, last.last_ms, last.open), (200_000, 400_000, false));
    assert!((last.seconds - 200.0).abs() < 1e-9, "{last:?}");
    assert_eq!(history.all(), std::slice::from_ref(last));
    assert_eq!(history.window.len(), RULES.window, "nothing else is kept of 1000 intervals");
}

#[test]
fn what_comes_and_goes_is_one_episode_and_what_comes_again_counts_twice() {
    let mut history = DriveHistory::default();
    let changes = watch(&mut history, 60, |n| n.is_multiple_of(2).then_some("sd3"));
    assert!(matches!(&changes[..], [(4, IntervalChange::Began(_))]), "{changes:?}");
    let mut history = DriveHistory::default();
    let changes = watch(&mut history, 90, |n| ((n / 30) != 1).then_some("sd3"));
    assert_eq!(changes.len(), 3, "{changes:?}");
    let all = history.all();
    assert_eq!((all[0].times, all[0].open, all[0].since_ms), (2, true, 0));
    assert!((all[0].seconds - 120.0).abs() < 1e-9, "{all:?}");
}

#[test]
fn two_odd_intervals_are_no_finding_of_a_long_watch_but_of_one_that_has_no_more() {
    let mut history = DriveHistory::default();
    assert_eq!(watch(&mut history, 30, |n| (10..12).contains(&n).then_some("sd3")), []);
    assert_eq!(history.finish(&array(8, &[])), []);
    let mut short = DriveHistory::default();
    assert_eq!(watch(&mut short, 3, |_| Some("sd3")), []);
    let at_the_end = short.finish(&array(8, &[]));
    assert!(
        matches!(&at_the_end[..], [IntervalChange::Began(all)] if all.seconds > 5.9 && all.open),
        "{at_the_end:?}"
    );
}

#[test]
fn a_failed_leg_is_found_at_once_and_ends_at_once() {
    let (whole, failed) = (array(8, &[]), array(8, &["sd5"]));
    let mut history = DriveHistory::default();
    assert_eq!(history.push(&whole, &interval(0, 8, None), false), []);
    let began = history.push(&failed, &interval(1, 8, None), false);
    let [IntervalChange::Began(all)] = &began[..] else { panic!("{began:?}") };
    assert_eq!((all.finding.what, all.since_ms), (DiskTrouble::Degraded, 2000));
    let ended = history.push(&whole, &interval(2, 8, None), false);
    assert!(matches!(&ended[..], [IntervalChange::Ended(all)] if all.last_ms == 4000), "{ended:?}");
}

#[test]
fn a_pause_keeps_findings_and_forgets_figures() {
    let mut history = DriveHistory::default();
    watch(&mut history, 8, |_| Some("sd3"));
    assert_eq!(history.pause(&array(8, &[])), []);
    assert!(history.last().is_none());
    let changes = watch(&mut history, 8, |_| None);
    assert!(matches!(&changes[..], [(4, IntervalChange::Ended(_))]), "{changes:?}");
}

#[test]
fn findings_are_bounded() {
    let mut history = DriveHistory::default();
    for n in 0..2000 {
        // An array of another name each time, and none of it ever comes back.
        let mut facts = HostFacts::default();
        let list = |name: &str| FactValue::List(vec![name.to_owned()]);
        facts.readings.extend([
            (format!("disk.md{n}.on"), list("sda")),
            (format!("disk.md{n}.failed_legs"), list("1")),
        ]);
        history.push(&layout(&facts), &interval(n, 1, None), false);
    }
    assert_eq!(history.all().len(), RULES.history_max);
    assert!(history.has_overflowed());
}
