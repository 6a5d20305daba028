//! Rounds of downloads: which of them are an alarm, of what, and how often healthy ones are.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use linerate_model::download::{DownloadPath, DownloadSeen};
use linerate_model::random::Random;
use linerate_model::slow::{DownloadSuspect, SlowAlarm, SlowOf, UsualOf};
use linerate_watch::{AlarmIds, DownloadRound, DownloadWatch, SlowStep};

const ROUND_MS: u64 = 300_000;
/// 100 MB/s and 32 KB/s, as bit/s.
const FAST: f64 = 800e6;
const SLOW: f64 = 256e3;

/// Downloads of one URL by one host, with 5 % of noise; a rate of 0 is a download that fails.
fn round(number: u64, of: &[(&str, &str, f64)]) -> DownloadRound {
    let mut random = Random(number);
    let mut noisy = |rate: f64| rate * (0.975 + 0.05 * random.fraction());
    let seen = of
        .iter()
        .map(|(host, via, rate)| DownloadSeen {
            path: DownloadPath { host: (*host).into(), url: "http://files/f".into(), via: (*via).into() },
            rates_bps: if *rate > 0.0 { (0..3).map(|_| noisy(*rate)).collect() } else { Vec::new() },
            failed: if *rate > 0.0 { 0 } else { 3 },
            failure: (*rate <= 0.0).then(|| "status 503".into()),
        })
        .collect();
    DownloadRound { at_ms: number * ROUND_MS, table: 0, seen }
}

fn watch() -> DownloadWatch {
    DownloadWatch::new(AlarmIds::default())
}

/// The alarms that steps open, with what they are of.
fn opened(steps: &[SlowStep]) -> Vec<(&SlowAlarm, &DownloadSuspect)> {
    let mut all = Vec::new();
    for step in steps {
        if let SlowStep::Opened(alarm) | SlowStep::Widened(alarm) = step {
            let SlowOf::Download(of) = &alarm.of else { panic!("{alarm:?}") };
            all.push((alarm, of));
        }
    }
    all
}

#[test]
fn the_three_slow_front_ends_of_five_are_named_in_the_first_round() {
    let rates = [SLOW, SLOW, FAST, SLOW, FAST];
    let names = ["arc-1", "arc-2", "arc-3", "arc-4", "arc-5"];
    let of: Vec<_> = names.iter().zip(rates).map(|(via, rate)| ("a", *via, rate)).collect();
    let steps = watch().learn(&round(1, &of));
    let named: Vec<_> = opened(&steps).iter().map(|(_, of)| of.via.clone().unwrap()).collect();
    assert_eq!(named, ["arc-1", "arc-2", "arc-4"]);
    let (alarm, _) = opened(&steps)[0];
    assert!(
        alarm.usual_of == UsualOf::Peers && (2900.0..3400.0).contains(&alarm.times().unwrap()),
        "{alarm:?}"
    );
}

#[test]
fn a_front_end_that_is_slow_for_several_hosts_is_one_alarm_and_ends_after_two_rounds() {
    let mut watch = watch();
    let of = |rate| [("a", "x", rate), ("a", "y", FAST), ("b", "x", rate), ("b", "y", FAST)];
    let steps = watch.learn(&round(1, &of(SLOW)));
    let [(alarm, suspect)] = opened(&steps)[..] else { panic!("{steps:?}") };
    let via_only = DownloadSuspect { host: None, url: Some("http://files/f".into()), via: Some("x".into()) };
    assert_eq!((suspect, alarm.seen_with), (&via_only, 2));
    // It lasts, and is not reported again.
    assert_eq!(watch.learn(&round(2, &of(SLOW))), []);
    assert_eq!(watch.learn(&round(3, &of(FAST))), []);
    let end = watch.learn(&round(4, &of(FAST)));
    assert!(matches!(&end[..], [SlowStep::Closed(over)] if over.id == alarm.id), "{end:?}");
    assert_eq!(watch.open().count(), 0);
}

#[test]
fn a_slow_path_becomes_a_slow_front_end_under_its_number() {
    let mut watch = watch();
    let of = |b| [("a", "x", SLOW), ("a", "y", FAST), ("b", "x", b), ("b", "y", FAST)];
    let first = watch.learn(&round(1, &of(FAST)));
    assert_eq!(opened(&first)[0].1.host.as_deref(), Some("a"));
    let wider = watch.learn(&round(2, &of(SLOW)));
    let [SlowStep::Widened(alarm)] = &wider[..] else { panic!("{wider:?}") };
    assert_eq!((alarm.id, alarm.since_ms, alarm.seen_with), (1, ROUND_MS, 2));
    assert_eq!(watch.open().count(), 1);
}

#[test]
fn a_small_difference_has_to_last_and_a_spike_is_none() {
    let mut watch = watch();
    let of = |x| [("a", "x", x), ("a", "y", FAST)];
    let half = FAST / 2.0;
    for (number, rate, is_alarm) in [
        (1, half, false),
        (2, FAST, false),
        (3, half, false),
        (4, half, false),
        (5, half, true),
        (6, half, false),
    ] {
        let steps = watch.learn(&round(number, &of(rate)));
        assert_eq!(!opened(&steps).is_empty(), is_alarm, "round {number}: {steps:?}");
    }
    assert_eq!(watch.open().next().unwrap().since_ms, 3 * ROUND_MS);
}

#[test]
fn what_fails_is_named_with_its_reason_at_once_where_others_do_not_fail() {
    let steps = watch().learn(&round(1, &[("a", "x", 0.0), ("a", "y", FAST)]));
    let (alarm, suspect) = opened(&steps)[0];
    assert_eq!((suspect.via.as_deref(), alarm.failure.as_deref()), (Some("x"), Some("status 503")));
    // All at once may be a restart: it is asked again.
    let mut watch = watch();
    let all = [("a", "x", 0.0), ("a", "y", 0.0)];
    assert_eq!(watch.learn(&round(1, &all)), []);
    let steps = watch.learn(&round(2, &all));
    let (_, suspect) = opened(&steps)[0];
    assert_eq!((suspect.via.as_deref(), suspect.host.as_deref()), (None, Some("a")));
}

#[test]
fn every_front_end_slower_than_it_was_is_a_change_of_all() {
    let mut watch = watch();
    let of = |rate| [("a", "x", rate), ("a", "y", rate), ("b", "x", rate), ("b", "y", rate)];
    // What the history knows counts.
    for (host, via) in [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")] {
        let path = DownloadPath { host: host.into(), url: "http://files/f".into(), via: via.into() };
        watch.remember(path, (0..40).map(|at| (at * ROUND_MS, FAST * (1.0 + 0.02 * (at % 3) as f64))));
    }
    let reported: Vec<SlowStep> =
        (50..53).flat_map(|number| watch.learn(&round(number, &of(FAST / 4.0)))).collect();
    let [(alarm, suspect)] = opened(&reported)[..] else { panic!("{reported:?}") };
    assert_eq!((suspect.via.as_deref(), suspect.host.as_deref()), (None, None));
    assert!(alarm.usual_of == UsualOf::Before && alarm.since_ms == 50 * ROUND_MS, "{alarm:?}");
    assert!((3.5..4.5).contains(&alarm.times().unwrap()), "{alarm:?}");
}

#[test]
fn a_month_of_healthy_downloads_with_a_daily_cycle_and_heavy_tails_is_left_alone() {
    let (mut random, mut watch, mut alarms) = (Random(5), watch(), 0);
    let rounds = 30 * 288;
    for number in 1..=rounds {
        // At noon half of the rate is left for all; one download of 50 meets something else.
        let day = number as f64 / 288.0 * std::f64::consts::TAU;
        let cycle = 0.75 - 0.25 * day.sin();
        let mut seen =
            round(number, &[("a", "x", FAST * cycle), ("a", "y", FAST * cycle), ("a", "z", FAST * cycle)]);
        for rate in seen.seen.iter_mut().flat_map(|seen| &mut seen.rates_bps) {
            let noise = 0.7 + 0.3 * random.fraction();
            let tail = if random.fraction() < 0.02 { (1.0 - random.fraction()).powf(1.0 / 1.5) } else { 1.0 };
            *rate *= noise * tail;
        }
        alarms += opened(&watch.learn(&seen)).len();
    }
    println!("{alarms} alarms in {rounds} rounds of 3 front ends, a month");
    assert!(alarms <= 1, "{alarms}");
}
