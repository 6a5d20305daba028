//! How other methods would find the bad hosts from the same tests. Each gets the number of bad hosts, which
//! favours it; ours does not.
//!
//! In: tests as shares of what they could reach. Out: a score of each host as a sender and as a receiver.
//! Each method is written from its description in the literature, reduced to what this problem has: hosts
//! that send, hosts that receive.

use std::collections::HashMap;

use linerate_diagnose::stats::{median, quantile};
use linerate_model::finding::{Cell, Direction};
use linerate_model::inventory::{Inventory, Layer};
use linerate_model::sample::Outcome;
use linerate_model::snapshot::Snapshot;

/// One test, or all tests of one pair: sender, receiver, share of the ceiling that was reached.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share {
    from: usize,
    to: usize,
    reached: f64,
}

/// Effect of each host, higher is worse; 0 where nothing is wrong.
pub(crate) struct Scores {
    /// In what it sends.
    sends: Vec<f64>,
    /// In what it receives.
    receives: Vec<f64>,
}

/// A method: its name for tables, and how it scores.
pub(crate) struct Method {
    /// Name.
    pub(crate) name: &'static str,
    /// Where it is from.
    pub(crate) source: &'static str,
    /// Score from which its users would raise an alarm.
    alarm: f64,
    score: fn(&[Share], usize) -> Scores,
}

/// All of them.
pub(crate) const METHODS: [Method; 4] = [
    Method {
        name: "worst cell",
        source: "what people do by eye: the receiver of the slowest test",
        alarm: 1.0 - BAD,
        score: worst,
    },
    Method {
        name: "row and column medians",
        source: "median of what each host sends and receives",
        alarm: 1.0 - BAD,
        score: medians,
    },
    Method {
        name: "votes",
        source: "after 007 (NSDI 2018): each bad test votes for what it passed, half a vote each",
        alarm: 1.0,
        score: votes,
    },
    Method {
        name: "least squares",
        source: "after NetBouncer (NSDI 2019): success of each suspect, with its regulariser",
        alarm: 1.0 - BAD,
        score: least_squares,
    },
];

impl Method {
    /// The `count` hosts that it suspects most as receivers.
    pub(crate) fn receivers<'a>(
        &self,
        snapshot: &'a Snapshot,
        shares: &[Share],
        count: usize,
    ) -> Vec<&'a str> {
        let hosts = &snapshot.inventory.hosts;
        let scores = (self.score)(shares, hosts.len()).receives;
        let mut order: Vec<usize> = (0..hosts.len()).collect();
        order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
        order.into_iter().take(count).map(|i| hosts[i].name.as_str()).collect()
    }

    /// The `count` hosts with a direction that it suspects most, and whether the first is bad enough to be an
    /// alarm.
    pub(crate) fn suspects<'a>(
        &self,
        inventory: &'a Inventory,
        shares: &[Share],
        count: usize,
    ) -> (Vec<(&'a str, Direction)>, bool) {
        let scores = (self.score)(shares, inventory.hosts.len());
        let list = |scores: Vec<f64>, direction| {
            scores.into_iter().enumerate().map(move |(host, score)| (host, direction, score))
        };
        let mut all: Vec<(usize, Direction, f64)> =
            list(scores.receives, Direction::Rx).chain(list(scores.sends, Direction::Tx)).collect();
        all.sort_by(|a, b| b.2.total_cmp(&a.2));
        let alarm = all.first().is_some_and(|(_, _, score)| *score >= self.alarm);
        let named = all.into_iter().take(count);
        (named.map(|(host, direction, _)| (inventory.hosts[host].name.as_str(), direction)).collect(), alarm)
    }
}

/// The measured tests of a snapshot, as shares of what the links allow.
pub(crate) fn shares(snapshot: &Snapshot) -> Vec<Share> {
    let numbers = numbers(&snapshot.inventory);
    let link = |host: &str| snapshot.inventory.endpoint(host, Layer::Underlay).and_then(|e| e.link_bps);
    snapshot
        .samples
        .iter()
        .filter_map(|sample| {
            let Outcome::Measured(measured) = &sample.outcome else { return None };
            let (from, to) = (sample.test.from.as_str(), sample.test.to.as_str());
            let ceiling = link(from)?.min(link(to)?);
            Some(Share {
                from: *numbers.get(from)?,
                to: *numbers.get(to)?,
                reached: (measured.throughput_bps? / ceiling).clamp(1e-6, 1.0),
            })
        })
        .collect()
}

/// The cells of a diagnosis whose ceiling is known, as shares of it; of two levels the lower one.
pub(crate) fn shares_of_cells(inventory: &Inventory, cells: &[Cell]) -> Vec<Share> {
    let numbers = numbers(inventory);
    cells
        .iter()
        .filter(|cell| !cell.ceiling.is_guess())
        .filter_map(|cell| {
            let rate = cell.two_state_bps.map(|(_, low)| low).or(cell.throughput_bps)?;
            Some(Share {
                from: *numbers.get(cell.from.as_str())?,
                to: *numbers.get(cell.to.as_str())?,
                reached: (rate / cell.ceiling.bps.filter(|bps| *bps > 0.0)?).clamp(1e-6, 1.0),
            })
        })
        .collect()
}

fn numbers(inventory: &Inventory) -> HashMap<&str, usize> {
    inventory.hosts.iter().enumerate().map(|(i, h)| (h.name.as_str(), i)).collect()
}

fn worst(shares: &[Share], hosts: usize) -> Scores {
    let mut receives = vec![0.0_f64; hosts];
    for test in shares {
        receives[test.to] = receives[test.to].max(1.0 - test.reached);
    }
    Scores { sends: vec![0.0; hosts], receives }
}

fn medians(shares: &[Share], hosts: usize) -> Scores {
    let of = |end: fn(&Share) -> usize| {
        let mut lines = vec![Vec::new(); hosts];
        for test in shares {
            lines[end(test)].push(test.reached);
        }
        // Of an even number the better one of the middle: a single contended test shall not count.
        lines.iter().map(|line| quantile(line, 0.5).map_or(0.0, |middle| 1.0 - middle)).collect()
    };
    Scores { sends: of(|t| t.from), receives: of(|t| t.to) }
}

/// A test below this share of the median is bad.
const BAD: f64 = 0.88;

fn votes(shares: &[Share], hosts: usize) -> Scores {
    let all: Vec<f64> = shares.iter().map(|t| t.reached).collect();
    let limit = BAD * median(&all).unwrap_or(0.0);
    let mut scores = Scores { sends: vec![0.0; hosts], receives: vec![0.0; hosts] };
    for test in shares.iter().filter(|t| t.reached < limit) {
        scores.receives[test.to] += 0.5;
        scores.sends[test.from] += 0.5;
    }
    scores
}

/// Weight of the regulariser that pulls each success to 0 or 1, and passes over all suspects.
const LAMBDA: f64 = 0.5;
const PASSES: usize = 30;

fn least_squares(shares: &[Share], hosts: usize) -> Scores {
    let all: Vec<f64> = shares.iter().map(|t| t.reached).collect();
    let healthy = quantile(&all, 0.8).unwrap_or(1.0);
    let (mut sends, mut receives) = (vec![Vec::new(); hosts], vec![Vec::new(); hosts]);
    for test in shares {
        let share = (test.reached / healthy).min(1.0);
        sends[test.from].push((test.to, share));
        receives[test.to].push((test.from, share));
    }
    let (mut tx, mut rx) = (vec![1.0_f64; hosts], vec![1.0_f64; hosts]);
    let step = |tests: &[(usize, f64)], others: &[f64]| {
        let up: f64 = tests.iter().map(|(other, share)| share * others[*other]).sum();
        let down: f64 = tests.iter().map(|(other, _)| others[*other].powi(2)).sum();
        // The minimum of the sum of squares and of LAMBDA x (1 - x) in one variable.
        let bottom = 2.0 * (down - LAMBDA);
        if tests.is_empty() || bottom <= 0.0 { 1.0 } else { ((2.0 * up - LAMBDA) / bottom).clamp(0.0, 1.0) }
    };
    for _ in 0..PASSES {
        for host in 0..hosts {
            rx[host] = step(&receives[host], &tx);
        }
        for host in 0..hosts {
            tx[host] = step(&sends[host], &rx);
        }
    }
    let effect = |success: Vec<f64>| success.into_iter().map(|x| 1.0 - x).collect();
    Scores { sends: effect(tx), receives: effect(rx) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::inventory::Host;

    #[test]
    fn each_method_but_the_eye_finds_a_bad_sender_among_many_tests() {
        let hosts: Vec<Host> = (0..6)
            .map(|i| {
                serde_json::from_value(serde_json::json!({"name": format!("h{i}"), "transport": "local"}))
                    .unwrap()
            })
            .collect();
        let inventory = Inventory { hosts, ..Inventory::default() };
        let pairs = (0..6).flat_map(|a| (0..6).filter(move |b| *b != a).map(move |b| (a, b)));
        let test = |(from, to)| Share { from, to, reached: if from == 2 { 0.4 } else { 0.96 } };
        let shares: Vec<Share> = pairs.map(test).collect();
        for method in METHODS.iter().filter(|m| m.name != "worst cell") {
            let (named, alarm) = method.suspects(&inventory, &shares, 1);
            assert_eq!(named, [("h2", Direction::Tx)], "{}", method.name);
            assert!(alarm, "{}", method.name);
        }
        let healthy: Vec<Share> = shares.iter().map(|s| Share { reached: 0.95, ..*s }).collect();
        assert!(METHODS.iter().all(|m| !m.suspects(&inventory, &healthy, 1).1));
    }
}
