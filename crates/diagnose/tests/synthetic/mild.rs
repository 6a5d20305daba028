//! Faults that are mild: jitter and detours that double nothing, and a loss in one direction of paths that
//! jump in the other.

use linerate_knowledge::Knowledge;
use linerate_model::finding::{Diagnosis, Direction, Suspect};

use crate::cluster::{Cluster, Path, SIX};
use crate::diagnose;

/// What is found where every path of the group `vs-3` to the others is harmed so.
fn at_group(seed: u64, harm: impl Fn(&mut Path)) -> Diagnosis {
    let cluster = Cluster::new(SIX);
    let snapshot = cluster.measure(seed, &|from, to, _, path| {
        let ends = [from, to].map(|host| cluster.group_of(host) == "vs-3");
        if ends[0] != ends[1] {
            harm(path);
        }
    });
    diagnose(&snapshot, &Knowledge::builtin().expect("the built-in one"))
}

/// Whether a group of one host, or that host, comes first, and the id of the cause.
fn first(diagnosis: &Diagnosis) -> Option<(bool, Direction, &str)> {
    let finding = diagnosis.findings.first()?;
    let at = &finding.places[0];
    let is_there = [Suspect::Group("vs-3".to_owned()), Suspect::Host("arc-3".to_owned())];
    Some((is_there.contains(&at.suspect), at.direction, finding.causes.first()?.id.as_str()))
}

#[test]
fn an_rtt_that_scatters_needs_less_than_a_longer_path() {
    let late = |seed: u64, factor: f64, spread: f64| {
        at_group(seed, |path| {
            path.rtt_us *= factor;
            path.loaded_us *= factor;
            path.rtt_spread = spread;
        })
    };
    let mut named = 0;
    for seed in 0..20 {
        let jitter = late(seed, 1.6, 0.3);
        named += usize::from(matches!(first(&jitter), Some((true, _, "delay-jitters"))));
        let detour = late(seed, 1.9, 0.02);
        assert!(matches!(first(&detour), Some((true, _, "path-longer"))), "{seed}: {}", detour.headline);
        let near = late(seed, 1.3, 0.02);
        assert!(near.findings.is_empty(), "{seed}: {}", near.headline);
    }
    assert!(named >= 18, "{named} of 20");
}

#[test]
fn what_only_jumps_in_the_other_direction_does_not_make_it_both() {
    let cluster = Cluster::new(SIX);
    for seed in 0..10 {
        let snapshot = cluster.measure(seed, &|from, to, _, path| {
            if from == "arc-3" {
                path.rate_bps *= 0.1;
            } else if to == "arc-3" && cluster.group_of(from) == "vs-4" {
                path.low_bps = Some(0.8 * path.rate_bps);
            }
        });
        let found = diagnose(&snapshot, &Knowledge::builtin().unwrap());
        let (is_there, direction, _) = first(&found).unwrap();
        assert!(is_there && direction == Direction::Tx, "{seed}: {}", found.headline);
    }
}
