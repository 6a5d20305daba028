//! What the cells of an imported matrix show together.
//!
//! In: cells, tests of earlier states. Out: remarks.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::imported::Earlier;
use linerate_model::remark::Remark;
use linerate_model::sample::Outcome;
use linerate_model::symptom::Sign;

use super::signs::port;
use crate::context::Context;
use crate::evidence::CellEvidence;
use crate::rules::SymptomRules;
use crate::stats::median;

/// The blocks of a matrix without groups: senders from which all of some receivers get little, while each of
/// the two sets is fine within itself and in the opposite direction.
pub(super) fn blocks(context: &Context<'_>, rules: &SymptomRules) -> Option<Remark> {
    if !context.facts.snapshot.inventory.groups.is_empty() {
        return None;
    }
    let rates: Vec<f64> = context.cells.iter().filter_map(|c| c.throughput_bps).collect();
    let bad_below = rules.block_bad * median(&rates)?;
    let of = |c: &CellEvidence<'_>| c.throughput_bps.map(|bps| bps < bad_below);
    let mut senders: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for cell in context.cells.iter().filter(|c| of(c) == Some(true)) {
        senders.entry(cell.from).or_default().insert(cell.to);
    }
    let to = senders.values().next()?.clone();
    let from: Vec<&str> = senders.keys().copied().collect();
    let is_plain = from.len() >= rules.block_hosts_min
        && to.len() >= rules.block_hosts_min
        && senders.values().all(|receivers| *receivers == to)
        && from.iter().all(|sender| !to.contains(sender));
    is_plain.then(|| Remark::Blocks {
        from: from.iter().map(|host| (*host).to_owned()).collect(),
        to: to.iter().map(|host| (*host).to_owned()).collect(),
    })
}

/// Pairs without a common end that all reach the same, and less than one of them did alone: what several
/// links carry together.
pub(super) fn shared(context: &Context<'_>, rules: &SymptomRules) -> Option<Remark> {
    let least = |c: &CellEvidence<'_>| c.rates.iter().copied().filter(|bps| *bps > 0.0).reduce(f64::min);
    let each: Vec<f64> = context.cells.iter().filter_map(least).collect();
    let each_bps = median(&each)?;
    let ends: BTreeSet<&str> = context.cells.iter().flat_map(|c| [c.from, c.to]).collect();
    let is_alike = |bps: &f64| (bps / each_bps - 1.0).abs() <= rules.shared_alike;
    if each.len() < rules.shared_pairs_min || ends.len() != 2 * each.len() || !each.iter().all(is_alike) {
        return None;
    }
    let before = |earlier: &Earlier| match &earlier.sample.outcome {
        Outcome::Measured(m) => m.throughput_bps,
        _ => None,
    };
    let earlier = context.facts.snapshot.imported.iter().flat_map(|i| &i.earlier).filter_map(before);
    let measured = context.cells.iter().flat_map(|c| &c.rates).copied();
    let alone_bps =
        measured.chain(earlier).reduce(f64::max).filter(|bps| *bps >= rules.apart_min * each_bps)?;
    let port_bps = match port(alone_bps, None, rules, &context.facts.rules.ceilings) {
        Some(Sign::FullPort { link_bps, .. }) => Some(link_bps),
        _ => None,
    };
    let count = (each.len() as f64 * each_bps / alone_bps).round() as usize;
    Some(Remark::Shared { pairs: each.len(), each_bps, alone_bps, ports: port_bps.map(|bps| (count, bps)) })
}
