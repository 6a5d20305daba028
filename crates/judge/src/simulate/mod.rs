//! `linerate-judge simulate`: simulated clusters, to measure how well and how fast a fault is located among
//! thousands of hosts, beside other methods on the same samples.
//!
//! In: sizes, a seed. Out: recall, precision, time, memory, as a table, as JSON, as a picture. Nothing is
//! measured and no namespace is made; `linerate`'s own reasoning gets a snapshot as from a survey and no
//! hint.

pub mod command;
pub mod noise;
mod plot;
pub mod speed;
mod world;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Instant;

use linerate_diagnose::rules::Rules;
use linerate_diagnose::stats::median;
use linerate_diagnose::{diagnose, diagnose_with};
use linerate_knowledge::Knowledge;
use linerate_lab::faults::fault::Truth;
use linerate_model::finding::{Diagnosis, Direction, Finding, LossLocation, Suspect};
use serde::Serialize;

use crate::methods;
use crate::record::{self, Broken, JudgedRun};
use crate::reliability::{ClaimSubject, ProbabilityClaim};

pub use plot::picture;
pub use world::{ClusterSize, Nature, SimulatedCluster, draw};

/// More would need more memory than the machines that this runs on have.
pub const HOSTS_MAX: usize = 200_000;

/// How well a method found the bad receivers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Score {
    /// Name of the method; `linerate` is ours.
    pub method: String,
    /// Share of the bad receivers that it named.
    pub recall: f64,
    /// Share of what it named that is bad.
    pub precision: f64,
}

/// One simulated cluster.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SimulatedRun {
    /// Hosts.
    pub hosts: usize,
    /// Bad receivers.
    pub faults: usize,
    /// Share of the throughput that is lost there.
    pub lost: f64,
    /// Tests that each host sends, and receives.
    pub rounds: usize,
    /// Seed.
    pub seed: u64,
    /// Tests.
    pub tests: usize,
    /// From the snapshot to the diagnosis: seconds of one CPU, which other work on the machine does not
    /// change much. Wall time where the kernel does not report it.
    pub seconds: f64,
    /// Most memory of the process so far, megabytes; 0 where the kernel does not report it.
    pub memory_mb: u64,
    /// Ours first.
    pub scores: Vec<Score>,
    /// Bad receivers that `linerate` did not name.
    pub missed: Vec<String>,
    /// What `linerate` named and is not bad.
    pub wrong: Vec<String>,
    /// How sure it was of each, and whether it was right.
    #[serde(skip)]
    pub claims: Vec<ProbabilityClaim>,
}

/// Draws a cluster and diagnoses it; with `compare` also by the other methods.
pub fn run(size: ClusterSize, seed: u64, knowledge: &Knowledge, compare: bool) -> SimulatedRun {
    let world = draw(size, &Nature::default(), seed);
    let (begun, ran) = (Instant::now(), ran_s());
    let diagnosis = diagnose(&world.snapshot, knowledge);
    let seconds = ran.zip(ran_s()).map_or(begun.elapsed().as_secs_f64(), |(from, to)| to - from);
    let named = named(&diagnosis);
    let mut scores = vec![score("linerate", named.len(), right(&named, &world.truth), world.truth.len())];
    if compare {
        let shares = methods::shares(&world.snapshot);
        for method in &methods::METHODS {
            let suspects = method.receivers(&world.snapshot, &shares, world.truth.len());
            let right = suspects.iter().filter(|name| world.truth.contains(**name)).count();
            scores.push(score(method.name, suspects.len(), right, world.truth.len()));
        }
    }
    SimulatedRun {
        hosts: size.hosts,
        faults: size.faults,
        lost: size.lost,
        rounds: size.rounds,
        seed,
        tests: world.snapshot.samples.len(),
        seconds,
        memory_mb: memory_mb(),
        scores,
        missed: world
            .truth
            .iter()
            .filter(|host| !named.contains(&(&Suspect::Host((*host).clone()), Direction::Rx)))
            .cloned()
            .collect(),
        wrong: named
            .iter()
            .filter(|one| !is_right(one, &world.truth))
            .map(|(suspect, direction)| suspect.label(*direction))
            .collect(),
        claims: claims(&diagnosis, &world.truth),
    }
}

/// The probabilities in a diagnosis: that something is wrong at one of its locations, and that it is the
/// first of them if so.
fn claims(diagnosis: &Diagnosis, truth: &BTreeSet<String>) -> Vec<ProbabilityClaim> {
    let of = |finding: &Finding| {
        let is = |at: &LossLocation| is_right(&(&at.suspect, at.direction), truth);
        let real = finding.places.iter().any(is);
        let first = finding.places.first().filter(|_| real);
        let location = first.map(|p| ProbabilityClaim {
            about: ClaimSubject::Location,
            probability: p.probability,
            right: is(p),
        });
        [
            Some(ProbabilityClaim {
                about: ClaimSubject::Finding,
                probability: finding.probability,
                right: real,
            }),
            location,
        ]
    };
    diagnosis.findings.iter().flat_map(of).flatten().collect()
}

/// Sizes, losses in percent and rounds of the clusters that probabilities are fitted on.
const SIZES: [usize; 4] = [8, 12, 24, 48];
const LOST: [u8; 3] = [20, 30, 50];
const ROUNDS: [usize; 2] = [3, 4];

/// Records of simulated clusters with one bad receiver each, as the judge writes them: locations only, for no
/// fact is simulated.
pub fn records(count: usize, knowledge: &Knowledge, rules: &Rules) -> Vec<JudgedRun> {
    let one = |number: usize| {
        let size = ClusterSize {
            hosts: SIZES[number % SIZES.len()],
            faults: 1,
            rounds: ROUNDS[number / SIZES.len() % ROUNDS.len()],
            lost: f64::from(LOST[number / (SIZES.len() * ROUNDS.len()) % LOST.len()]) / 100.0,
        };
        let world = draw(size, &Nature::default(), number as u64);
        let broken = |host: &String| Broken {
            fault: "simulated".into(),
            target: host.clone(),
            truth: Truth::at(Suspect::Host(host.clone()), Direction::Rx, "simulated"),
            also: Vec::new(),
            signs: Vec::new(),
        };
        let run = record::LabeledRun {
            index: number,
            seed: number as u64,
            lab: "simulated".into(),
            hosts: size.hosts,
            broken: world.truth.iter().map(broken).collect(),
            ..record::LabeledRun::default()
        };
        let diagnosis = diagnose_with(&world.snapshot, knowledge, rules);
        JudgedRun::new(run, Ok(&diagnosis), None, 0.0)
    };
    (0..count).map(one).collect()
}

fn score(method: &str, named: usize, right: usize, truth: usize) -> Score {
    let share = |part: usize, whole: usize| if whole == 0 { 1.0 } else { part as f64 / whole as f64 };
    Score { method: method.to_owned(), recall: share(right, truth), precision: share(right, named) }
}

/// What a diagnosis names: the first location of each finding.
fn named(diagnosis: &Diagnosis) -> BTreeSet<(&Suspect, Direction)> {
    diagnosis
        .findings
        .iter()
        .filter_map(|finding| finding.places.first())
        .map(|at| (&at.suspect, at.direction))
        .collect()
}

/// Only the host itself, in the right direction, is right.
fn right(named: &BTreeSet<(&Suspect, Direction)>, truth: &BTreeSet<String>) -> usize {
    named.iter().filter(|one| is_right(one, truth)).count()
}

fn is_right((suspect, direction): &(&Suspect, Direction), truth: &BTreeSet<String>) -> bool {
    *direction == Direction::Rx && matches!(suspect, Suspect::Host(host) if truth.contains(host))
}

/// Time that this thread was on a CPU.
fn ran_s() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse::<f64>().ok().map(|ns| ns / 1e9)
}

/// Peak resident memory of this process.
fn memory_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) / 1024
}

/// What the methods of a table are, a line each.
pub fn legend() -> String {
    let lines = methods::METHODS.iter().map(|method| format!("{}: {}\n", method.name, method.source));
    format!("{}All but linerate get the number of bad receivers.\n", lines.collect::<String>())
}

/// The runs of one size as a row of a Markdown table each: means of recall and precision over the seeds,
/// median of the time.
pub fn table(runs: &[SimulatedRun]) -> String {
    let mut text = String::from(
        "| hosts | bad | lost | rounds | tests | method | recall | precision | CPU seconds | peak memory |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    let mut sizes: Vec<(usize, usize, u64, usize)> = Vec::new();
    let key = |r: &SimulatedRun| (r.hosts, r.faults, r.lost.to_bits(), r.rounds);
    for run in runs.iter().filter(|r| !r.scores.is_empty()) {
        if !sizes.contains(&key(run)) {
            sizes.push(key(run));
        }
    }
    for size in sizes {
        let same: Vec<&SimulatedRun> = runs.iter().filter(|r| key(r) == size).collect();
        let seconds: Vec<f64> = same.iter().map(|r| r.seconds).collect();
        let seconds = median(&seconds).unwrap_or(0.0);
        let memory = same.iter().map(|r| r.memory_mb).max().unwrap_or(0);
        for (number, one) in same[0].scores.iter().enumerate() {
            let of = |pick: fn(&Score) -> f64| {
                same.iter().filter_map(|r| r.scores.get(number)).map(pick).sum::<f64>() / same.len() as f64
            };
            let cost = if number == 0 { format!("{seconds:.2} | {memory} MB") } else { "| ".to_owned() };
            let _ = writeln!(
                text,
                "| {} | {} | {:.0} % | {} | {} | {} | {:.3} | {:.3} | {cost} |",
                size.0,
                size.1,
                100.0 * f64::from_bits(size.2),
                size.3,
                same[0].tests,
                one.method,
                of(|s| s.recall),
                of(|s| s.precision),
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_receivers_are_found_among_healthy_ones_and_none_among_none() {
        let knowledge = Knowledge::builtin().unwrap();
        let run_of =
            |faults| run(ClusterSize { hosts: 300, faults, rounds: 6, lost: 0.5 }, 4, &knowledge, faults > 0);
        let sick = run_of(3);
        assert!(sick.missed.is_empty() && sick.wrong.is_empty(), "{sick:?}");
        assert_eq!(sick.scores.len(), 1 + methods::METHODS.len());
        assert!(sick.scores.iter().all(|s| (0.0..=1.0).contains(&s.recall)));
        let healthy = run_of(0);
        assert!(healthy.wrong.is_empty(), "{healthy:?}");
        let text = table(&[sick, healthy]);
        assert_eq!(text.lines().count(), 2 + 5 + 1, "{text}");
    }
}
