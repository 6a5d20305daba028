//! A watch over simulated hosts: what it finds, how soon, and what it reports of healthy ones.
//!
//! Only losses are simulated one by one; what arrives is counted. Everything is drawn from seeds.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use linerate_model::random::Random;
use linerate_model::suspect::{Direction, Suspect};
use linerate_model::watch::LossAlarm;
use linerate_watch::rules::{FASTER, FASTER_MS, PROBES_PER_S};
use linerate_watch::{AlarmIds, AlarmStep, LossWatch, Member, PairLoss, partners};

/// Datagrams a second from one partner to the other: its own probes, and answers.
const PER_S: f64 = 2.0 * PROBES_PER_S;
const MINUTE_MS: u64 = 60_000;
const DAY_MS: u64 = 24 * 60 * MINUTE_MS;

/// One direction between two partners.
#[derive(Default, Clone)]
struct Path {
    from: usize,
    to: usize,
    /// Share of datagrams that is lost, 0 to 1.
    share: f64,
    /// Until when what was sent has been reported.
    reported_ms: u64,
    /// What of a datagram was left over.
    rest: f64,
    /// When more were sent last.
    faster: (u64, u64),
}

/// Hosts, their paths, and losses to come.
struct Hosts {
    random: Random,
    watch: LossWatch,
    paths: Vec<Path>,
    /// Paths of each host.
    of_host: Vec<Vec<usize>>,
    losses: BinaryHeap<Reverse<(u64, usize)>>,
    faster_until: Vec<u64>,
}

impl Hosts {
    fn new(count: usize, per_group: usize, seed: u64) -> Self {
        let names: Vec<(String, String)> =
            (0..count).map(|at| (format!("n{at}"), format!("rack{}", at / per_group))).collect();
        let members: Vec<_> = names.iter().map(|(name, group)| Member { name, group: Some(group) }).collect();
        let mut paths = Vec::new();
        let mut of_host = vec![Vec::new(); count];
        for (a, b) in partners(&members) {
            for (from, to) in [(a, b), (b, a)] {
                of_host[a].push(paths.len());
                of_host[b].push(paths.len());
                paths.push(Path { from, to, ..Path::default() });
            }
        }
        Self {
            random: Random(seed),
            watch: LossWatch::new(&members, AlarmIds::default()),
            paths,
            of_host,
            losses: BinaryHeap::new(),
            faster_until: vec![0; count],
        }
    }

    /// A waiting time with this rate, milliseconds.
    fn wait_ms(&mut self, per_ms: f64) -> u64 {
        if per_ms <= 0.0 {
            return u64::MAX / 4;
        }
        (-(1.0 - self.random.fraction()).ln() / per_ms) as u64
    }

    /// Losses of one path within a time, for so many datagrams a second.
    fn draw(&mut self, path: usize, from_ms: u64, until_ms: u64, per_s: f64) {
        let per_ms = self.paths[path].share * per_s / 1000.0;
        let mut at = from_ms;
        loop {
            at += 1 + self.wait_ms(per_ms);
            if at >= until_ms {
                return;
            }
            self.losses.push(Reverse((at, path)));
        }
    }

    /// Everything that is sent to a host is lost half for some time.
    fn burst(&mut self, host: usize, at_ms: u64, ms: u64) {
        for path in self.of_host[host].clone() {
            if self.paths[path].to == host {
                let share = std::mem::replace(&mut self.paths[path].share, 0.5);
                self.draw(path, at_ms, at_ms + ms, PER_S);
                self.paths[path].share = share;
            }
        }
    }

    /// Its program stands still: two datagrams are missed by each partner.
    fn stand_still(&mut self, host: usize, at_ms: u64) {
        for path in self.of_host[host].clone() {
            if self.paths[path].from == host {
                self.losses.extend([0, 500].map(|ms| Reverse((at_ms + ms, path))));
            }
        }
    }

    /// Reports to the watch what a path has sent.
    fn report(&mut self, path: usize, at_ms: u64, lost: u64) -> Vec<AlarmStep> {
        let path = &mut self.paths[path];
        let faster_ms = path.faster.1.min(at_ms).saturating_sub(path.faster.0.max(path.reported_ms));
        let ms = (at_ms - path.reported_ms) as f64 + faster_ms as f64 * (FASTER - 1.0);
        let sent = ms * PER_S / 1000.0 + path.rest;
        (path.reported_ms, path.rest) = (at_ms, sent.fract());
        let sent = (sent as u64).max(lost);
        self.watch.learn(PairLoss { at_ms, from: path.from, to: path.to, sent, lost })
    }

    /// Runs until the end, or until `done`; gives what was reported and when.
    fn run(&mut self, until_ms: u64, done: impl Fn(&AlarmStep) -> bool) -> Vec<(u64, AlarmStep)> {
        let mut reported = Vec::new();
        let mut next_all = 0;
        while let Some(Reverse((at, path))) = self.losses.pop() {
            if at >= until_ms {
                break;
            }
            let (from, to) = (self.paths[path].from, self.paths[path].to);
            let mut steps = Vec::new();
            if at >= next_all {
                next_all = at + 5 * MINUTE_MS;
                steps.extend((0..self.paths.len()).flat_map(|other| self.report(other, at, 0)));
            }
            let touched: Vec<usize> =
                self.of_host[from].iter().chain(&self.of_host[to]).copied().filter(|p| *p != path).collect();
            steps.extend(touched.into_iter().flat_map(|other| self.report(other, at, 0)));
            steps.extend(self.report(path, at, 1));
            for step in steps {
                let is_done = done(&step);
                match step {
                    AlarmStep::Faster(host) => self.faster(host, at),
                    other => reported.push((at, other)),
                }
                if is_done {
                    return reported;
                }
            }
        }
        reported
    }

    fn faster(&mut self, host: usize, at: u64) {
        let from = self.faster_until[host].max(at);
        let until = at + FASTER_MS;
        self.faster_until[host] = until;
        for path in self.of_host[host].clone() {
            let since = self.paths[path].faster.1.max(from);
            if since < until {
                self.draw(path, since, until, PER_S * (FASTER - 1.0));
                let begins = if since == at { at } else { self.paths[path].faster.0 };
                self.paths[path].faster = (begins, until);
            }
        }
    }
}

fn opened(step: &AlarmStep) -> Option<&LossAlarm> {
    match step {
        AlarmStep::Opened(alarm) | AlarmStep::Widened(alarm) => Some(alarm),
        _ => None,
    }
}

/// Normal loss of each path: a share whose logarithm is normally distributed.
fn normal(hosts: &mut Hosts, median: f64, until_ms: u64) {
    for path in 0..hosts.paths.len() {
        let bell: f64 = (0..12).map(|_| hosts.random.fraction()).sum::<f64>() - 6.0;
        hosts.paths[path].share = median * bell.exp();
        hosts.draw(path, 0, until_ms, PER_S);
    }
}

/// Seconds until a host that loses so much is named with its direction, and how often it was.
fn named(share: f64, direction: Direction, within_ms: u64, seeds: std::ops::Range<u64>) -> (usize, Vec<u64>) {
    let mut times = Vec::new();
    let all = seeds.clone().count();
    for seed in seeds {
        let mut hosts = Hosts::new(1000, 20, seed);
        normal(&mut hosts, 3e-6, within_ms);
        let ill = hosts.random.below(1000);
        for path in hosts.of_host[ill].clone() {
            let is_ill =
                if direction == Direction::Tx { hosts.paths[path].from } else { hosts.paths[path].to };
            if is_ill == ill {
                hosts.paths[path].share += share;
                hosts.draw(path, 0, within_ms, PER_S);
            }
        }
        let reported = hosts.run(within_ms, |step| opened(step).is_some());
        let suspect = Suspect::Host(format!("n{ill}"));
        if let Some((at, alarm)) = reported.iter().find_map(|(at, step)| Some((at, opened(step)?)))
            && alarm.suspect == suspect
            && alarm.direction == direction
        {
            times.push(*at / 1000);
        } else {
            println!("not so: n{ill}, {direction:?}: {reported:?}");
        }
    }
    times.sort_unstable();
    (all, times)
}

#[test]
fn one_percent_at_one_of_a_thousand_hosts_is_named_within_half_a_minute() {
    for direction in [Direction::Tx, Direction::Rx] {
        let (all, times) = named(0.01, direction, 30_000, 0..40);
        println!(
            "1 %, {direction:?}: {} of {all} within 30 s, half of them within {} s",
            times.len(),
            times[times.len() / 2]
        );
        assert!(times.len() * 100 >= all * 90, "{times:?}");
    }
}

#[test]
fn a_tenth_of_a_percent_is_named_within_five_minutes() {
    for direction in [Direction::Tx, Direction::Rx] {
        let (all, times) = named(0.001, direction, 300_000, 100..140);
        println!(
            "0.1 %, {direction:?}: {} of {all} within 300 s, half of them within {} s",
            times.len(),
            times[times.len() / 2]
        );
        assert!(times.len() * 100 >= all * 80, "{times:?}");
    }
}

/// On an overloaded machine programs stand still for seconds, each now and then.
#[test]
fn a_host_is_named_beside_others_that_stand_still() {
    const HOSTS: usize = 12;
    const WITHIN_MS: u64 = 2 * MINUTE_MS;
    let seeds = 1_000..1_100;
    let is_named = |seed: &u64| {
        let mut hosts = Hosts::new(HOSTS, 3, *seed);
        let ill = hosts.random.below(HOSTS);
        for path in hosts.of_host[ill].clone() {
            if hosts.paths[path].to == ill {
                hosts.paths[path].share = 0.015;
                hosts.draw(path, 0, WITHIN_MS, PER_S);
            }
        }
        for still in (0..HOSTS).filter(|host| *host != ill) {
            let at = (hosts.random.fraction() * WITHIN_MS as f64) as u64;
            hosts.stand_still(still, at);
        }
        let reported = hosts.run(WITHIN_MS, |step| opened(step).is_some());
        let alarm = reported.iter().find_map(|(_, step)| opened(step)).unwrap();
        let is_right = alarm.suspect == Suspect::Host(format!("n{ill}")) && alarm.direction == Direction::Rx;
        if !is_right {
            println!("n{ill}: {:?} {:?}", alarm.suspect, alarm.direction);
        }
        is_right
    };
    let named = seeds.filter(is_named).count();
    println!("{named} of 100 named");
    assert!(named >= 90, "{named} of 100");
}

#[test]
fn healthy_hosts_with_bursts_are_left_alone_for_a_month() {
    const DAYS: u64 = 30;
    const HOSTS: usize = 1000;
    let mut hosts = Hosts::new(HOSTS, 20, 7);
    normal(&mut hosts, 3e-6, DAYS * DAY_MS);
    // 24 bursts a day at each host, of 10 ms at least, with a heavy tail: one of 11,000 lasts 5 s.
    for host in 0..HOSTS {
        for _ in 0..24 * DAYS {
            let at = (hosts.random.fraction() * (DAYS * DAY_MS) as f64) as u64;
            let ms = 10.0 / (1.0 - hosts.random.fraction()).powf(1.0 / 1.5);
            hosts.burst(host, at, (ms as u64).min(MINUTE_MS));
        }
    }
    let reported = hosts.run(DAYS * DAY_MS, |_| false);
    let alarms: Vec<_> = reported.iter().filter(|(_, step)| matches!(step, AlarmStep::Opened(_))).collect();
    let per_1000_days = alarms.len() as f64 * 1000.0 / (HOSTS as f64 * DAYS as f64);
    println!("{} alarms in {HOSTS} x {DAYS} host-days: {per_1000_days:.2} per 1,000", alarms.len());
    assert!(per_1000_days <= 1.0, "{alarms:?}");
}
