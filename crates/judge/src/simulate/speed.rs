//! How long a verdict takes when every host has thousands of facts: diagnosis of one run, differences between
//! two.
//!
//! In: sizes, a seed. Out: seconds. The facts have the keys that the knowledge asks for, on several devices,
//! and others like them; a few differ on every host, as in any real cluster. Nothing is measured but the
//! reasoning.

use std::sync::Arc;
use std::time::Instant;

use linerate_diagnose::{diagnose, diff};
use linerate_knowledge::Knowledge;
use linerate_model::fact::{FactValue, HostFacts};
use linerate_model::fact_map::FactMap;
use linerate_model::random::Random;
use linerate_model::snapshot::Snapshot;
use serde::Serialize;

use super::{ClusterSize, Nature, draw, ran_s};

/// What took how long, in seconds of one CPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Speed {
    /// Hosts.
    pub hosts: usize,
    /// Facts of each.
    pub facts: usize,
    /// From a run to its diagnosis.
    pub diagnosis_s: f64,
    /// What it found.
    pub findings: usize,
    /// Differences between two runs.
    pub diff_s: f64,
    /// How many.
    pub differences: usize,
}

impl Speed {
    /// A line for people.
    pub fn line(&self) -> String {
        format!(
            "{} hosts with {} facts each: diagnosis {:.2} s ({} findings), differences between two runs {:.2} s ({}), together {:.2} s",
            self.hosts,
            self.facts,
            self.diagnosis_s,
            self.findings,
            self.diff_s,
            self.differences,
            self.diagnosis_s + self.diff_s
        )
    }
}

/// One value in so many differs from the usual for no reason.
const ODD: usize = 400;
/// Devices of a host.
const DEVICES: usize = 8;
/// Bad receivers, and tests that each host sends and receives.
const FAULTS: usize = 5;
const ROUNDS: usize = 4;

/// Draws a run before and one after a repair, and measures.
pub fn speed(hosts: usize, facts: usize, seed: u64, knowledge: &Knowledge) -> Speed {
    let size = |lost| ClusterSize { hosts, faults: FAULTS, rounds: ROUNDS, lost };
    let keys = Arc::new(keys(facts, knowledge));
    let run = |lost| {
        let world = draw(size(lost), &Nature::default(), seed);
        let mut snapshot = world.snapshot;
        // What was repaired differs between the runs; all else is drawn alike.
        let mut random = Random(seed);
        let names: Vec<String> = snapshot.inventory.hosts.iter().map(|h| h.name.clone()).collect();
        for name in names {
            let repaired = lost == 0.0 && world.truth.contains(&name);
            let readings = readings(&keys, &mut random, repaired);
            snapshot.facts.insert(name, HostFacts { readings, ..HostFacts::default() });
        }
        snapshot
    };
    let (before, after): (Snapshot, Snapshot) = (run(0.5), run(0.0));
    let (findings, diagnosis_s) = timed(|| diagnose(&before, knowledge).findings.len());
    let (differences, diff_s) = timed(|| diff::runs(&before, &after).len());
    Speed { hosts, facts: keys.len(), diagnosis_s, findings, diff_s, differences }
}

fn timed(work: impl FnOnce() -> usize) -> (usize, f64) {
    let (begun, ran) = (Instant::now(), ran_s());
    let result = work();
    (result, ran.zip(ran_s()).map_or(begun.elapsed().as_secs_f64(), |(from, to)| to - from))
}

/// The keys that the knowledge asks for on each device, and as many others as are missing; in order.
fn keys(count: usize, knowledge: &Knowledge) -> Vec<String> {
    let mut keys = std::collections::BTreeSet::new();
    for pattern in
        knowledge.causes().flat_map(|c| c.indicators.iter().chain(&c.excludes)).flat_map(|t| &t.keys)
    {
        for device in 0..DEVICES {
            keys.insert(pattern.replace('*', &format!("eth{device}")));
        }
    }
    let mut number = 0;
    while keys.len() < count {
        let device = number % DEVICES;
        keys.insert(match number % 3 {
            0 => format!("sysctl.net.ipv4.setting_{number}"),
            1 => format!("nic.eth{device}.feature.switch-{number}"),
            _ => format!("nic.eth{device}.private.flag-{number}"),
        });
        number += 1;
    }
    keys.into_iter().take(count).collect()
}

fn readings(keys: &Arc<Vec<String>>, random: &mut Random, repaired: bool) -> FactMap {
    let value = |key: &String| {
        let odd = random.below(ODD) == 0;
        let changed = repaired && key.ends_with("_0");
        FactValue::Text(if odd || changed { "odd" } else { "usual" }.to_owned())
    };
    let values: Vec<FactValue> = keys.iter().map(value).collect();
    FactMap::of_lists(Arc::clone(keys), values).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sick_hosts_are_found_and_what_was_repaired_differs() {
        let speed = speed(120, 300, 2, &Knowledge::builtin().unwrap());
        assert_eq!((speed.hosts, speed.facts), (120, 300));
        assert!(speed.findings > 0 && speed.differences > 0, "{speed:?}");
    }
}
