//! The two numbers of each map from the strength of the reasoning to a probability, fitted on runs with known
//! truth.
//!
//! In: records of diagnoses without any map. Out: for each kind of statement the temperature and the lapse
//! that make the truth most likely together with a mild prior, and what they are worth on runs that they were
//! not fitted on. It changes nothing: a person writes the numbers into
//! `crates/diagnose/src/rules/calibration.rs`.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use linerate_diagnose::calibrate::ProbabilityMap;

use crate::record::{ClaimedFinding, JudgedRun};
use crate::reliability::ClaimSubject;

/// One statement before any map: all candidates with their raw probabilities, the reported one first, and
/// whether it was true.
#[derive(Debug, Clone, PartialEq)]
struct Raw {
    candidates: Vec<f64>,
    right: bool,
}

/// Causes are dealt to so many hands; each hand is held out once.
const HANDS: usize = 5;
/// Temperatures that are tried, as steps of a tenth of a doubling around 1.
const STEPS: std::ops::RangeInclusive<i32> = -20..=30;
/// Lapses that are tried, in thousandths.
const LAPSES: std::ops::RangeInclusive<u32> = 0..=200;

/// The fitted maps, as text.
pub fn fit(records: &[JudgedRun]) -> String {
    let mut text = String::from(
        "| probability of | statements | right | temperature | lapse | log loss before | after | held out |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for about in [ClaimSubject::Finding, ClaimSubject::Location, ClaimSubject::Cause] {
        let raws: Vec<(usize, Raw)> = records
            .iter()
            .zip(hands(records))
            .flat_map(|(r, hand)| raw(r, about).into_iter().map(move |x| (hand, x)))
            .collect();
        if raws.is_empty() {
            continue;
        }
        let all: Vec<&Raw> = raws.iter().map(|(_, raw)| raw).collect();
        let map = best(about, &all);
        let held = held_out(about, &raws);
        let mean = |map: &ProbabilityMap| {
            all.iter().map(|raw| loss(about, map, raw)).sum::<f64>() / all.len() as f64
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {:.2} | {:.3} | {:.3} | {:.3} | {:.3} |",
            about.words(),
            all.len(),
            all.iter().filter(|raw| raw.right).count(),
            map.temperature,
            map.lapse,
            mean(&ProbabilityMap::NONE),
            mean(&map),
            held
        );
    }
    text
}

/// The hand of each record: all of one cause go to the same, so that whole causes are held out.
fn hands(records: &[JudgedRun]) -> Vec<usize> {
    let cause = |r: &JudgedRun| r.run.broken.first().map(|b| b.truth.cause.clone());
    let causes: BTreeSet<Option<String>> = records.iter().map(cause).collect();
    records.iter().map(|r| causes.range(..cause(r)).count() % HANDS).collect()
}

/// Surprise per statement when each hand meets the map that the others made.
fn held_out(about: ClaimSubject, raws: &[(usize, Raw)]) -> f64 {
    let mut total = 0.0;
    for hand in 0..HANDS {
        let of = |out: bool| raws.iter().filter(move |(of, _)| (*of == hand) == out).map(|(_, raw)| raw);
        let kept: Vec<&Raw> = of(false).collect();
        let map = best(about, &kept);
        total += of(true).map(|raw| loss(about, &map, raw)).sum::<f64>();
    }
    total / raws.len() as f64
}

/// The statements of a record about one thing.
fn raw(record: &JudgedRun, about: ClaimSubject) -> Vec<Raw> {
    let one = |finding: &ClaimedFinding| {
        let real = record.run.broken.iter().any(|b| finding.among(&b.truth));
        let here: Vec<_> = record.run.broken.iter().filter(|b| finding.at(&b.truth)).collect();
        match about {
            ClaimSubject::Finding => Some(Raw { candidates: vec![finding.probability], right: real }),
            ClaimSubject::Location => real.then(|| Raw {
                candidates: finding.locations.iter().map(|p| p.probability).collect(),
                right: !here.is_empty(),
            }),
            // No fact is simulated, so that no cause can be right there.
            _ if record.run.lab == "simulated" => None,
            _ => finding.causes.first().filter(|_| !here.is_empty()).map(|first| Raw {
                candidates: finding.causes.iter().map(|c| c.probability).collect(),
                right: here.iter().any(|b| b.is_cause(&first.id)),
            }),
        }
    };
    record.findings.iter().filter_map(one).collect()
}

fn mapped(about: ClaimSubject, map: &ProbabilityMap, raw: &Raw) -> f64 {
    if about == ClaimSubject::Finding {
        map.chance(raw.candidates[0])
    } else {
        map.shares(&raw.candidates)[0]
    }
}

/// Log loss of a statement.
fn loss(about: ClaimSubject, map: &ProbabilityMap, raw: &Raw) -> f64 {
    let p = mapped(about, map, raw).clamp(1e-6, 1.0 - 1e-6);
    -(if raw.right { p } else { 1.0 - p }).ln()
}

/// Doublings of the temperature that would not surprise before anything was measured: few runs shall not move
/// it far.
const USUAL_DOUBLINGS: f64 = 1.0;

/// The map with the least surprise. So many right verdicts in a row prove no lapse below one in as many and
/// two (Laplace).
fn best(about: ClaimSubject, raws: &[&Raw]) -> ProbabilityMap {
    let least = 1.0 / (raws.len() + 2) as f64;
    let mut best = (f64::INFINITY, ProbabilityMap::NONE);
    for step in STEPS {
        let temperature = (0.1 * f64::from(step)).exp2();
        for lapse in LAPSES.map(|thousandths| f64::from(thousandths) / 1000.0).filter(|lapse| *lapse >= least)
        {
            let map = ProbabilityMap { temperature, lapse };
            let prior = 0.5 * (temperature.log2() / USUAL_DOUBLINGS).powi(2);
            let total = prior + raws.iter().map(|raw| loss(about, &map, raw)).sum::<f64>();
            if total < best.0 {
                best = (total, map);
            }
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use linerate_model::random::Random;

    use super::*;

    /// Statements whose truth is drawn with the probability that a map gives them.
    fn drawn(map: &ProbabilityMap, count: usize) -> Vec<Raw> {
        let mut random = Random(11);
        let one = |_| {
            let first = 0.34 + 0.659 * random.fraction();
            let candidates = vec![first, 1.0 - first];
            let right = random.fraction() < map.shares(&candidates)[0];
            Raw { candidates, right }
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn the_map_that_made_the_truth_is_found_again() {
        let made = ProbabilityMap { temperature: 2.0, lapse: 0.05 };
        let raws = drawn(&made, 4000);
        let found = best(ClaimSubject::Location, &raws.iter().collect::<Vec<_>>());
        // A little more of one number and less of the other give nearly the same map: compare the maps.
        for first in [0.4, 0.6, 0.8, 0.9, 0.99] {
            let share = |map: &ProbabilityMap| map.shares(&[first, 1.0 - first])[0];
            assert!((share(&made) - share(&found)).abs() < 0.03, "{first}: {found:?}");
        }
    }

    #[test]
    fn few_runs_that_were_all_right_prove_no_certainty() {
        let raws = vec![Raw { candidates: vec![0.999], right: true }; 18];
        let found = best(ClaimSubject::Finding, &raws.iter().collect::<Vec<_>>());
        assert!(found.lapse >= 0.05, "{found:?}");
    }
}
