//! RTTs of simulated hosts: a rise is found with its host, pair or group, and a month of healthy hosts with
//! daily cycles, heavy tails and bursts is left alone.
//!
//! Medians of minutes are simulated, as the watch sees them. Everything is drawn from seeds.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use linerate_model::random::Random;
use linerate_model::slow::{DecidedRtt, DecidingRtt, RttVerdict, SlowOf};
use linerate_model::suspect::Suspect;
use linerate_watch::{
    AlarmIds, DecidingRtts, Member, RttWatch, SeenFigure, SeenMinute, SeenOf, SlowStep, UsualRtt,
    decide_rtts, partners,
};

const DAY: u64 = 24 * 60;

/// A host: how much a busy day makes its RTTs longer, when that is, and until when a burst lasts.
struct Host {
    swing: f64,
    phase: f64,
    burst: (u64, f64),
}

struct Cluster {
    random: Random,
    names: Vec<(String, String)>,
    hosts: Vec<Host>,
    pairs: Vec<(usize, usize)>,
    base_us: Vec<f64>,
    watch: RttWatch,
}

impl Cluster {
    fn new(count: usize, per_group: usize, seed: u64) -> Self {
        let mut random = Random(seed);
        let names: Vec<(String, String)> =
            (0..count).map(|at| (format!("n{at}"), format!("rack{}", at / per_group))).collect();
        let members: Vec<_> = names.iter().map(|(name, group)| Member { name, group: Some(group) }).collect();
        let (pairs, watch) = (partners(&members), RttWatch::new(&members, AlarmIds::default()));
        let hosts = (0..count)
            .map(|_| Host { swing: random.fraction(), phase: random.fraction(), burst: (0, 1.0) })
            .collect();
        let base_us = pairs.iter().map(|_| 80.0 * (3.0 * random.fraction()).exp()).collect();
        Self { random, names, hosts, pairs, base_us, watch }
    }

    /// A value of at least 1 with a heavy tail: one of 1,000 is above 100.
    fn heavy(&mut self) -> f64 {
        (1.0 - self.random.fraction()).powf(-1.0 / 1.5)
    }

    /// Of each pair the median of a minute, and what the watch reports; `slower` by pair.
    fn minute(&mut self, minute: u64, slower: impl Fn(usize, usize) -> f64) -> Vec<SlowStep> {
        let day = minute as f64 / DAY as f64;
        let mut factor = Vec::with_capacity(self.hosts.len());
        for at in 0..self.hosts.len() {
            // Once an hour a burst, of a tenth of a second at least, makes RTTs at least twice as long. One
            // of 15,000 lasts a minute; one that lasts five is a rise.
            if self.random.fraction() < 1.0 / 60.0 {
                let seconds = 0.1 * self.heavy();
                let height = 1.0 + self.heavy();
                // A burst shorter than half a minute does not move a median.
                self.hosts[at].burst = (minute + ((seconds + 30.0) / 60.0) as u64, height);
            }
            let host = &self.hosts[at];
            let cycle = 1.0 + host.swing * (0.5 + 0.5 * (std::f64::consts::TAU * (day + host.phase)).sin());
            factor.push(if minute < host.burst.0 { cycle * host.burst.1 } else { cycle });
        }
        let mut values = Vec::with_capacity(2 * self.pairs.len());
        for at in 0..self.pairs.len() {
            let (a, b) = self.pairs[at];
            let noise = 0.9 + 0.2 * self.random.fraction();
            // Now and then a minute of a path has a heavy tail of its own.
            let spike = if self.random.fraction() < 0.01 { self.heavy() } else { 1.0 };
            let rtt = self.base_us[at] * factor[a] * factor[b] * noise * spike * slower(a, b);
            values.push((SeenOf::Pair(a, b), SeenFigure::Rtt, rtt));
            values.push((SeenOf::Pair(b, a), SeenFigure::Rtt, rtt * 1.02));
        }
        self.watch.learn(&SeenMinute { start_ms: minute * 60_000, values })
    }

    /// What is reported from one minute to another.
    fn run(
        &mut self,
        minutes: std::ops::Range<u64>,
        slower: impl Fn(usize, usize) -> f64,
    ) -> Vec<(u64, SlowStep)> {
        let mut reported = Vec::new();
        for minute in minutes {
            reported.extend(self.minute(minute, &slower).into_iter().map(|step| (minute, step)));
        }
        reported
    }
}

/// Suspects of alarms that were opened or became wider, and when.
fn suspects(reported: &[(u64, SlowStep)]) -> Vec<(u64, Suspect)> {
    let of = |(minute, step): &(u64, SlowStep)| match step {
        SlowStep::Opened(alarm) | SlowStep::Widened(alarm) => match &alarm.of {
            SlowOf::Rtt(suspect) => Some((*minute, suspect.clone())),
            SlowOf::Download(_) => None,
        },
        SlowStep::Closed(_) => None,
    };
    reported.iter().filter_map(of).collect()
}

/// How often what is slower is the first that is named, within 10 minutes, and nothing else is; and how long
/// it took.
fn named(
    seeds: std::ops::Range<u64>,
    rise: f64,
    wanted: impl Fn(&Cluster) -> (Suspect, Box<dyn Fn(usize, usize) -> bool>),
) -> (usize, Vec<u64>) {
    let (all, mut times) = (seeds.clone().count(), Vec::new());
    for seed in seeds {
        let mut cluster = Cluster::new(200, 10, seed);
        let (suspect, is_slow) = wanted(&cluster);
        cluster.run(0..2 * DAY, |_, _| 1.0);
        let begun = 2 * DAY;
        let reported = cluster.run(begun..begun + 10, |a, b| if is_slow(a, b) { rise } else { 1.0 });
        let found = suspects(&reported);
        // A group is reported by one of its members first, and then as the group.
        match found.last() {
            Some((minute, last)) if *last == suspect => times.push(minute - begun),
            _ => println!("{suspect:?}: {found:?}"),
        }
    }
    times.sort_unstable();
    (all, times)
}

#[test]
fn a_host_a_pair_and_a_group_with_longer_rtts_are_named() {
    let host = |cluster: &Cluster| -> (Suspect, Box<dyn Fn(usize, usize) -> bool>) {
        (Suspect::Host(cluster.names[77].0.clone()), Box::new(|a, b| a == 77 || b == 77))
    };
    let pair = |cluster: &Cluster| -> (Suspect, Box<dyn Fn(usize, usize) -> bool>) {
        let pair = cluster.pairs[123];
        let mut names = [cluster.names[pair.0].0.clone(), cluster.names[pair.1].0.clone()];
        names.sort();
        let [a, b] = names;
        (Suspect::Pair(a, b), Box::new(move |a, b| (a, b) == pair))
    };
    let group = |_: &Cluster| -> (Suspect, Box<dyn Fn(usize, usize) -> bool>) {
        let is_in = |host: usize| host / 10 == 5;
        (Suspect::Group("rack5".into()), Box::new(move |a, b| is_in(a) != is_in(b)))
    };
    for (what, (all, times)) in [
        ("host", named(0..10, 4.0, host)),
        ("pair", named(0..10, 4.0, pair)),
        ("group", named(0..10, 4.0, group)),
    ] {
        println!("{what}: {} of {all}, after {times:?} min", times.len());
        assert!(times.len() * 10 >= all * 9, "{what}: {times:?}");
    }
}

#[test]
fn a_group_that_explains_each_late_pair_is_named_where_it_is_a_partner_of_all() {
    // Of three groups each host has partners in every other one: all of them have late pairs.
    let named = |slow: fn(usize) -> bool| {
        let found = (0..10).map(|seed| {
            let mut cluster = Cluster::new(12, 4, seed);
            cluster.run(0..DAY, |_, _| 1.0);
            let reported = cluster.run(DAY..DAY + 10, |a, b| if slow(a) == slow(b) { 1.0 } else { 9.0 });
            suspects(&reported).last().map(|(_, suspect)| suspect.clone())
        });
        found.collect::<Vec<_>>()
    };
    let of_group = named(|host| host / 4 == 1);
    let right = of_group.iter().filter(|found| **found == Some(Suspect::Group("rack1".into()))).count();
    assert!(right >= 9, "{of_group:?}");
    // What hosts of two groups have in common is no group.
    let of_two = named(|host| host % 4 < 2);
    assert!(of_two.iter().all(|found| !matches!(found, Some(Suspect::Group(_)))), "{of_two:?}");
}

#[test]
fn an_alarm_ends_when_rtts_are_as_before_and_minutes_alone_are_none() {
    let mut cluster = Cluster::new(20, 5, 3);
    cluster.run(0..DAY, |_, _| 1.0);
    let is_slow = |a: usize, b: usize| if a == 7 || b == 7 { 10.0 } else { 1.0 };
    // Three minutes are a spike, of any height.
    let spike = cluster.run(DAY..DAY + 3, |a, b| 100.0 * is_slow(a, b));
    assert_eq!(spike, []);
    cluster.run(DAY + 3..DAY + 60, |_, _| 1.0);
    let rise = cluster.run(DAY + 60..DAY + 75, is_slow);
    let [(_, SlowStep::Opened(alarm))] = &rise[..] else { panic!("{rise:?}") };
    assert_eq!(alarm.of, SlowOf::Rtt(Suspect::Host("n7".into())));
    assert!(alarm.times().unwrap() > 4.0 && alarm.seen_with >= 6, "{alarm:?}");
    let end = cluster.run(DAY + 75..DAY + 100, |_, _| 1.0);
    assert!(matches!(&end[..], [(_, SlowStep::Closed(over))] if over.id == alarm.id), "{end:?}");
    assert_eq!(cluster.watch.open().count(), 0);
}

#[test]
fn a_rise_is_measured_beside_a_pair_that_shares_an_end() {
    // Requests of programs take longer than probes by so much, microseconds.
    const METHOD_US: f64 = 60.0;
    let mut cluster = Cluster::new(20, 5, 3);
    cluster.run(0..DAY + 60, |_, _| 1.0);
    let is_slow = |a: usize, b: usize| if a == 7 || b == 7 { 10.0 } else { 1.0 };
    let rise = cluster.run(DAY + 60..DAY + 75, is_slow);
    let [(_, SlowStep::Opened(alarm))] = &rise[..] else { panic!("{rise:?}") };
    let suspect = Suspect::Host("n7".into());
    let usable: Vec<usize> = (0..20).filter(|host| *host != 7).collect();
    let deciding = cluster.watch.deciding(&suspect, &usable);
    let ([pair], [control]) = (&deciding.pairs[..], &deciding.controls[..]) else { panic!("{deciding:?}") };
    assert_eq!((pair.to, control.from), (7, pair.from));
    assert!(control.to != 7 && control.usual_us > 0.0, "{deciding:?}");
    // Without a host beside it there is nothing to measure with.
    assert_eq!(cluster.watch.deciding(&suspect, &[]), DecidingRtts::default());
    let rtt = |of: &UsualRtt, rtt_us: f64| DecidingRtt {
        from: cluster.names[of.from].0.clone(),
        to: cluster.names[of.to].0.clone(),
        usual_us: of.usual_us,
        rtt_us: rtt_us + METHOD_US,
    };
    let now = |of: &UsualRtt| {
        let ends = [(of.from, of.to), (of.to, of.from)];
        cluster.base_us[cluster.pairs.iter().position(|pair| ends.contains(pair)).unwrap()]
    };
    let verdict =
        |of_pair: f64, of_control: f64| decide_rtts(&[rtt(pair, of_pair)], &[rtt(control, of_control)]);
    let risen = now(pair) * is_slow(pair.from, pair.to);
    assert_eq!(verdict(risen, now(control)), RttVerdict::Confirmed);
    assert_eq!(verdict(now(pair), now(control)), RttVerdict::NotSeen);
    let both = 5000.0;
    assert_eq!(verdict(pair.usual_us + both, control.usual_us + both), RttVerdict::ControlRoseToo);
    // What was measured stays with the alarm until its end; then there is nothing to report of it.
    let decided = DecidedRtt::unmeasured("a test".into());
    let measured = cluster.watch.decided(alarm.id, decided.clone()).unwrap();
    assert_eq!((measured.id, measured.decided), (alarm.id, Some(decided.clone())));
    cluster.run(DAY + 75..DAY + 100, |_, _| 1.0);
    assert_eq!(cluster.watch.decided(alarm.id, decided), None);
}

#[test]
fn a_month_of_healthy_hosts_is_left_alone() {
    const DAYS: u64 = 30;
    const HOSTS: usize = 100;
    const SEEDS: std::ops::Range<u64> = 11..13;
    let mut alarms = Vec::new();
    for seed in SEEDS {
        let reported = Cluster::new(HOSTS, 20, seed).run(0..DAYS * DAY, |_, _| 1.0);
        alarms.extend(reported.into_iter().filter(|(_, step)| matches!(step, SlowStep::Opened(_))));
    }
    let host_days = (HOSTS * SEEDS.count()) as f64 * DAYS as f64;
    let per_1000_days = alarms.len() as f64 * 1000.0 / host_days;
    println!("{} alarms in {host_days} host-days: {per_1000_days:.2} per 1,000", alarms.len());
    // Losses have the other half of what is allowed.
    assert!(per_1000_days <= 0.5, "{alarms:?}");
}
