//! Pairs that were measured under several conditions, one after the other.
//!
//! In: tests of earlier states, the cells of the last one. Out: symptoms.

use std::collections::BTreeMap;

use linerate_model::imported::Earlier;
use linerate_model::inventory::Layer;
use linerate_model::sample::Outcome;
use linerate_model::symptom::{Sign, Symptom};

use super::signs::{symptom, window};
use crate::evidence::CellEvidence;
use crate::rules::SymptomRules;

/// Layer, sender, receiver.
type Pair<'s> = (Layer, &'s str, &'s str);
/// Conditions, each with its rate.
type States = Vec<(String, f64)>;

/// Pairs that were measured under several conditions.
pub(super) fn conditions(earlier: &[Earlier], cells: &[CellEvidence<'_>]) -> Vec<Symptom> {
    let mut by_pair: BTreeMap<Pair<'_>, States> = BTreeMap::new();
    let mut last: BTreeMap<Pair<'_>, &str> = BTreeMap::new();
    for state in earlier.iter().filter(|state| !state.whole) {
        let Outcome::Measured(m) = &state.sample.outcome else { continue };
        let Some(bps) = m.throughput_bps else { continue };
        let test = &state.sample.test;
        let pair = (test.layer, test.from.as_str(), test.to.as_str());
        by_pair.entry(pair).or_default().push((state.condition.clone(), bps));
        last.insert(pair, &state.last);
    }
    let one = |(pair, mut states): (Pair<'_>, States)| {
        let (layer, from, to) = pair;
        let cell = cells.iter().find(|c| (c.layer, c.from, c.to) == pair)?;
        states.push(((*last.get(&pair)?).to_owned(), cell.throughput_bps?));
        Some(symptom(from, to, layer, Sign::Conditions(states)))
    };
    by_pair.into_iter().filter_map(one).collect()
}

/// Earlier states that a window limited; the RTT is the pair's.
pub(super) fn windows(earlier: &[Earlier], cells: &[CellEvidence<'_>], rules: &SymptomRules) -> Vec<Symptom> {
    let one = |state: &Earlier| {
        let Outcome::Measured(m) = &state.sample.outcome else { return None };
        let test = &state.sample.test;
        let cell = cells.iter().find(|c| (c.layer, c.from, c.to) == (test.layer, &test.from, &test.to))?;
        let rtt_us = m.rtt_idle_us.or(cell.rtt_idle_us);
        let sign = window(m.window_bytes, rtt_us, m.throughput_bps?, rules)?;
        Some(symptom(cell.from, cell.to, cell.layer, sign))
    };
    earlier.iter().filter_map(one).collect()
}
