//! Tests of one pair under different conditions: a before and an after in the order of time, or variants of
//! a command. They are no repetitions, so no mean of them is formed: the last state counts, the earlier ones
//! are kept beside it.
//!
//! In: tests with their conditions. Out: those of the last state, and the earlier ones.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::inventory::Layer;
use linerate_model::sample::Outcome;

use crate::condition::Condition;
use crate::sink::{Raw, Run};

/// Variants whose rates are closer than this factor do not differ.
const SAME: f64 = 1.15;

/// A test of an earlier state: its condition and that of the last one.
pub(crate) struct Superseded {
    /// The test.
    pub raw: Raw,
    /// Its condition in words.
    pub condition: String,
    /// The last one in words.
    pub last: String,
    /// The whole table came again.
    pub whole: bool,
}

/// Parts the tests of the last state from the earlier ones.
pub(crate) fn part(runs: Vec<Run>, host: impl Fn(&str) -> String) -> (Vec<Raw>, Vec<Superseded>) {
    let mut by_pair: BTreeMap<(String, String, Layer, &'static str), Vec<usize>> = BTreeMap::new();
    for (at, run) in runs.iter().enumerate() {
        let raw = &run.raw;
        by_pair.entry((host(&raw.from), host(&raw.to), raw.layer, raw.kind.name())).or_default().push(at);
    }
    let mut last_of: BTreeMap<usize, usize> = BTreeMap::new();
    for runs_of_pair in by_pair.values() {
        let Some(last) = last_state(&runs, runs_of_pair) else { continue };
        let is_last = |at: &usize| runs[*at].condition == runs[last].condition;
        last_of.extend(runs_of_pair.iter().filter(|at| !is_last(at)).map(|at| (*at, last)));
    }
    let conditions: Vec<Condition> = runs.iter().map(|run| run.condition.clone()).collect();
    let (mut kept, mut earlier) = (Vec::new(), Vec::new());
    for (at, run) in runs.into_iter().enumerate() {
        match last_of.get(&at) {
            None => kept.push(run.raw),
            Some(last) => earlier.push(Superseded {
                raw: run.raw,
                condition: run.condition.label(),
                last: conditions[*last].label(),
                whole: run.condition.table > 0,
            }),
        }
    }
    (kept, earlier)
}

/// The test that stands for the last state of a pair; `None` where its tests are repetitions.
fn last_state(runs: &[Run], tests: &[usize]) -> Option<usize> {
    let streams =
        |at: &usize| runs[*at].raw.kind.get().is_some_and(linerate_model::kind::TcpPlan::is_parallel);
    let newest = tests.iter().map(|at| runs[*at].condition.position()).max()?;
    let of_newest: Vec<usize> =
        tests.iter().copied().filter(|at| runs[*at].condition.position() == newest).collect();
    // A library in front of the command is an experiment; a window that was set is one too, but the last
    // choice of it stays.
    let last = of_newest.iter().copied().min_by_key(|at| {
        let condition = &runs[*at].condition;
        (condition.environment.len(), std::cmp::Reverse(*at))
    })?;
    let conditions: BTreeSet<String> = tests.iter().map(|at| runs[*at].condition.label()).collect();
    if conditions.len() < 2 {
        return None;
    }
    let is_table = runs[last].condition.table > 0;
    // One stream beside several is compared elsewhere.
    let alike: Vec<f64> = tests
        .iter()
        .filter(|at| streams(at) == streams(&last))
        .filter_map(|at| rate(&runs[*at].raw))
        .collect();
    let (most, least) =
        alike.iter().fold((0.0_f64, f64::INFINITY), |(most, least), bps| (most.max(*bps), least.min(*bps)));
    // The same table twice is no change; what the text calls another state is one, however little it did.
    let is_named = tests.iter().any(|at| is_stated(&runs[*at].condition, &runs[last].condition));
    let same = if is_table || is_named { 1.0 } else { SAME };
    (alike.len() > 1 && most > same * least).then_some(last)
}

/// Whether the text itself sets two conditions of the hosts apart, the load being the same.
fn is_stated(one: &Condition, other: &Condition) -> bool {
    let load = |c: &Condition| (c.environment.clone(), c.options.clone());
    one.epoch != other.epoch && (one.is_stated || other.is_stated) && load(one) == load(other)
}

fn rate(raw: &Raw) -> Option<f64> {
    match &raw.outcome {
        Outcome::Measured(m) => m.throughput_bps,
        Outcome::NothingThrough { .. } => Some(0.0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::kind::TcpPlan;
    use linerate_model::sample::Measurement;

    use super::*;

    fn run(bps: f64, condition: Condition) -> Run {
        let measured = Measurement { throughput_bps: Some(bps), ..Measurement::default() };
        let raw = Raw {
            from: "a".to_owned(),
            to: "b".to_owned(),
            layer: Layer::Underlay,
            kind: TcpPlan::single(1).into(),
            outcome: Outcome::Measured(Box::new(measured)),
            flow: None,
            start_ms: 0,
            variant: None,
        };
        Run { raw, condition }
    }

    fn kept(runs: Vec<Run>) -> Vec<f64> {
        part(runs, str::to_owned).0.iter().filter_map(rate).collect()
    }

    #[test]
    fn the_last_state_counts() {
        let state =
            |epoch, change: &str| Condition { epoch, change: change.to_owned(), ..Condition::default() };
        assert_eq!(kept(vec![run(1e9, state(0, "")), run(1.02e9, state(0, ""))]), [1e9, 1.02e9]);
        assert_eq!(kept(vec![run(1e9, state(0, "")), run(9e9, state(1, "ethtool -K em1 gro off"))]), [9e9]);
        assert_eq!(kept(vec![run(9e9, state(0, "")), run(1e9, state(1, "Before:"))]), [9e9]);
        // A change that changed nothing makes no second state, unless the text calls it one.
        assert_eq!(kept(vec![run(1e9, state(0, "")), run(1.1e9, state(1, "x"))]).len(), 2);
        let stated = |epoch, name: &str| Condition { is_stated: true, ..state(epoch, name) };
        assert_eq!(kept(vec![run(1e9, stated(1, "Before:")), run(1.1e9, stated(2, "After:"))]), [1.1e9]);
    }

    #[test]
    fn a_library_in_front_is_a_variant_and_a_window_the_last_choice() {
        let with = |environment: &str, options: &str| Condition {
            environment: environment.to_owned(),
            options: options.to_owned(),
            ..Condition::default()
        };
        assert_eq!(kept(vec![run(4e9, with("", "")), run(14e9, with("LD_PRELOAD=x", ""))]), [4e9]);
        assert_eq!(kept(vec![run(2e9, with("", "-w 8k")), run(9e9, with("", "-w 128k"))]), [9e9]);
    }
}
