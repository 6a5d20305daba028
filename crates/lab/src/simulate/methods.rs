//! How other methods would find the bad receivers from the same samples. Each is told how many there are, which favours it; ours
//! is not.
//!
//! In: samples with the ceilings of their pairs. Out: suspects with a score. Each method is written from its description
//! in the literature, reduced to what this problem has: hosts that send, hosts that receive.

use std::collections::HashMap;

use linerate_model::inventory::Layer;
use linerate_model::sample::Outcome;
use linerate_model::snapshot::Snapshot;

/// One test: sender, receiver, share of the ceiling that it reached.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    from: usize,
    to: usize,
    reached: f64,
}

/// A method: its name for tables, and the score of each host as a receiver, higher is worse.
pub(super) struct Method {
    /// Name.
    pub(super) name: &'static str,
    /// Where it is from.
    pub(super) source: &'static str,
    score: fn(&[Share], usize) -> Vec<f64>,
}

/// All of them.
pub(super) const METHODS: [Method; 4] = [
    Method {
        name: "worst cell",
        source: "what people do by eye: the receiver of the slowest test",
        score: worst,
    },
    Method { name: "column median", source: "median of what each host receives", score: median_column },
    Method {
        name: "votes",
        source: "after 007 (NSDI 2018): each bad test votes for what it passed",
        score: votes,
    },
    Method {
        name: "least squares",
        source: "after NetBouncer (NSDI 2019): success of each element, with its regulariser",
        score: least_squares,
    },
];

impl Method {
    /// The `count` hosts that it suspects most.
    pub(super) fn suspects<'a>(
        &self,
        snapshot: &'a Snapshot,
        shares: &[Share],
        count: usize,
    ) -> Vec<&'a str> {
        let hosts = &snapshot.inventory.hosts;
        let scores = (self.score)(shares, hosts.len());
        let mut order: Vec<usize> = (0..hosts.len()).collect();
        order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
        order.into_iter().take(count).map(|i| hosts[i].name.as_str()).collect()
    }
}

/// The measured tests of a snapshot, as shares of what the links allow.
pub(super) fn shares(snapshot: &Snapshot) -> Vec<Share> {
    let numbers: HashMap<&str, usize> =
        snapshot.inventory.hosts.iter().enumerate().map(|(i, h)| (h.name.as_str(), i)).collect();
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

fn worst(shares: &[Share], hosts: usize) -> Vec<f64> {
    let mut scores = vec![0.0_f64; hosts];
    for test in shares {
        scores[test.to] = scores[test.to].max(1.0 - test.reached);
    }
    scores
}

fn median_column(shares: &[Share], hosts: usize) -> Vec<f64> {
    let mut columns = vec![Vec::new(); hosts];
    for test in shares {
        columns[test.to].push(1.0 - test.reached);
    }
    columns
        .into_iter()
        .map(|mut column| {
            column.sort_by(f64::total_cmp);
            // Of an even number the better one of the middle: a single disturbed test shall not count.
            column.get(column.len().saturating_sub(1) / 2).copied().unwrap_or(0.0)
        })
        .collect()
}

/// A test below this share of the median is bad.
const BAD: f64 = 0.88;

fn votes(shares: &[Share], hosts: usize) -> Vec<f64> {
    let mut all: Vec<f64> = shares.iter().map(|t| t.reached).collect();
    all.sort_by(f64::total_cmp);
    let limit = BAD * all.get(all.len() / 2).copied().unwrap_or(0.0);
    let mut scores = vec![0.0; hosts];
    for test in shares.iter().filter(|t| t.reached < limit) {
        // Half of the vote is the sender's.
        scores[test.to] += 0.5;
    }
    scores
}

/// Weight of the regulariser that pulls each success to 0 or 1, and passes over all elements.
const LAMBDA: f64 = 0.5;
const PASSES: usize = 30;

fn least_squares(shares: &[Share], hosts: usize) -> Vec<f64> {
    let mut all: Vec<f64> = shares.iter().map(|t| t.reached).collect();
    all.sort_by(f64::total_cmp);
    let healthy = all.get(all.len() * 4 / 5).copied().unwrap_or(1.0);
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
    rx.into_iter().map(|x| 1.0 - x).collect()
}
