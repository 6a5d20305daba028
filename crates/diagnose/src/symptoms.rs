//! What imported transfers show by themselves, where no ceiling and no peers are known to compare them with:
//! two levels, a full CPU, one slow direction, a rate that no port has. The stages cover surveys.
//!
//! In: cells with their ceilings, tests of earlier states. Out: symptoms, the clearest first.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::finding::Cell;
use linerate_model::inventory::Layer;
use linerate_model::kind::TcpPlan;
use linerate_model::remark::Remark;
use linerate_model::sample::{Measurement, Outcome, Sample};
use linerate_model::symptom::{Sign, Symptom};

use crate::context::Context;
use crate::evidence::CellEvidence;
use crate::rules::{CeilingRules, SymptomRules};
use crate::stats::median;

/// All symptoms as remarks.
pub(crate) fn remarks(context: &Context<'_>, report: &[Cell]) -> Vec<Remark> {
    let Some(imported) = &context.facts.snapshot.imported else { return Vec::new() };
    let rules = &context.facts.rules.symptoms;
    let mut all: Vec<Symptom> = Vec::new();
    for (cell, reported) in context.cells.iter().zip(report) {
        let of_cell = signs(cell, reported, &context.cells, rules, &context.facts.rules.ceilings);
        all.extend(of_cell.into_iter().map(|sign| symptom(cell.from, cell.to, cell.layer, sign)));
    }
    all.extend(conditions(&imported.earlier, &context.cells));
    all.sort_by_key(|symptom| symptom.sign.rank());
    // A matrix shows its own pattern.
    let most = if context.cells.len() > rules.cells_max { 0 } else { rules.named_max };
    let mut remarks: Vec<Remark> = all.into_iter().take(most).map(Remark::Symptom).collect();
    remarks.extend(blocks(context, rules));
    remarks.extend(replicas(context));
    remarks
}

fn symptom(from: &str, to: &str, layer: Layer, sign: Sign) -> Symptom {
    Symptom { from: from.to_owned(), to: to.to_owned(), layer, sign }
}

fn signs(
    cell: &CellEvidence<'_>,
    reported: &Cell,
    all: &[CellEvidence<'_>],
    rules: &SymptomRules,
    ports: &CeilingRules,
) -> Vec<Sign> {
    let mut signs = Vec::new();
    let Some(bps) = cell.throughput_bps else { return signs };
    let ends = [(cell.to, cell.core_busy_rx), (cell.from, cell.core_busy_tx)];
    let full =
        ends.into_iter().find_map(|(host, busy)| Some((host, busy.filter(|b| *b >= rules.core_full)?)));
    signs.extend(full.map(|(host, busy)| Sign::CoreFull { host: host.to_owned(), busy, bps }));
    signs.extend(cell.two.map(|two| Sign::TwoLevels { high: two.high, low: two.low }));
    let stands = standstill(cell, rules);
    signs.extend(stands.map(|share| Sign::Standstill { share }));
    let back = all.iter().find(|o| (o.from, o.to, o.layer) == (cell.to, cell.from, cell.layer));
    if let Some(back_bps) = back.and_then(|o| o.throughput_bps).filter(|b| *b >= rules.apart_min * bps) {
        signs.push(Sign::OneDirection { bps, back_bps });
    }
    let rates = |several: bool| {
        let of = |s: &&Sample| s.test.kind.get().is_some_and(|t: &TcpPlan| t.is_parallel() == several);
        let rates: Vec<f64> = cell
            .measured()
            .filter(|(s, _)| of(s))
            .filter_map(|(_, m): (_, &Measurement)| m.throughput_bps)
            .collect();
        median(&rates)
    };
    if let Some((one, several_bps)) = rates(false).zip(rates(true)).filter(|(a, b)| *b >= rules.apart_min * a)
    {
        signs.push(Sign::OneStream { bps: one, several_bps });
    }
    let link_bps = reported.ceiling.known_bps();
    match link_bps {
        Some(link_bps) if bps < rules.below_link * link_bps => signs.push(Sign::BelowLink { bps, link_bps }),
        // With several pairs the peers are the standard, on any hardware.
        _ if signs.is_empty() => {
            let is_alone = reported.ceiling.bps.is_none();
            signs.extend(port(bps, rules, ports).filter(|sign| is_alone || !sign.is_fault()));
        }
        _ => {}
    }
    signs
}

/// Whether a rate is that of a full port, or of none.
fn port(bps: f64, rules: &SymptomRules, ports: &CeilingRules) -> Option<Sign> {
    // Up to three bonds and PCIe lanes make too many rates to distinguish.
    let share_of = |link: &f64| bps / link;
    let usual = rules.full_usual_min..=rules.full_usual_max;
    let jumbo = rules.full_jumbo_min..=rules.full_jumbo_max;
    let is_full = |link: &f64| usual.contains(&share_of(link)) || jumbo.contains(&share_of(link));
    if let Some(link_bps) = ports.link_speeds_bps.into_iter().find(is_full) {
        return Some(Sign::FullPort { bps, link_bps });
    }
    let is_near = |link: &f64| (rules.near_port_min..=1.0).contains(&share_of(link));
    let is_near = ports.link_speeds_bps.iter().any(is_near);
    (bps > ports.link_speeds_bps[0] && !is_near).then_some(Sign::NoPort { bps })
}

/// Share of the intervals of a transfer in which nothing got through.
fn standstill(cell: &CellEvidence<'_>, rules: &SymptomRules) -> Option<f64> {
    let series = cell.measured().filter(|(s, _)| s.test.kind.is::<TcpPlan>()).filter_map(|(_, m)| {
        let ends = [&m.rx, &m.tx].into_iter().flatten();
        ends.map(|end| &end.series).find(|series| series.len() >= rules.intervals_min)
    });
    let shares: Vec<f64> = series
        .map(|series| series.iter().filter(|i| i.throughput_bps <= 0.0).count() as f64 / series.len() as f64)
        .collect();
    median(&shares).filter(|share| *share >= rules.standstill_min)
}

/// Layer, sender, receiver.
type Pair<'s> = (Layer, &'s str, &'s str);
/// Conditions, each with its rate.
type States = Vec<(String, f64)>;

/// Pairs that were measured under several conditions.
fn conditions(earlier: &[linerate_model::imported::Earlier], cells: &[CellEvidence<'_>]) -> Vec<Symptom> {
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

/// The blocks of a matrix without groups: senders from which all of some receivers get little, while each of
/// the two sets is fine within itself and in the opposite direction.
fn blocks(context: &Context<'_>, rules: &SymptomRules) -> Option<Remark> {
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

/// Replicas with a known connection.
fn replicas(context: &Context<'_>) -> Vec<Remark> {
    let snapshot = context.facts.snapshot;
    let mut remarks = Vec::new();
    for (host, facts) in &snapshot.facts {
        for (key, value) in &facts.readings {
            let Some(minor) = key.strip_prefix("drbd.").and_then(|k| k.strip_suffix(".connection")) else {
                continue;
            };
            let disks = facts.readings.get(&format!("drbd.{minor}.disks"));
            let resync = snapshot.storage.iter().rev().find(|figure| {
                figure.what == linerate_model::snapshot::StorageSubject::Resync
                    && (figure.host.is_empty() || figure.host == *host)
            });
            remarks.push(Remark::Replica {
                host: host.clone(),
                device: format!("drbd{minor}"),
                connection: value.to_string(),
                disks: disks.map_or(String::new(), ToString::to_string),
                bytes_per_s: resync.map(|figure| figure.bytes_per_s),
            });
        }
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Rules;

    #[test]
    fn ports_by_their_full_rate() {
        let of = |bps: f64| port(bps, &Rules::DEFAULT.symptoms, &Rules::DEFAULT.ceilings);
        let full = |bps: f64| match of(bps) {
            Some(Sign::FullPort { link_bps, .. }) => Some(link_bps / 1e9),
            _ => None,
        };
        for (gbit, port) in
            [(0.942, 1.0), (9.36, 10.0), (9.89, 10.0), (23.5, 25.0), (39.6, 40.0), (94.2, 100.0)]
        {
            assert_eq!(full(gbit * 1e9), Some(port), "{gbit}");
        }
        for gbit in [1.5, 1.91, 7.0, 30.0] {
            assert!(matches!(of(gbit * 1e9), Some(Sign::NoPort { .. })), "{gbit}");
        }
        // Neither a full port nor far enough from one; and a radio link may have any rate.
        for gbit in [24.5, 2.4, 0.3] {
            assert_eq!(of(gbit * 1e9), None, "{gbit}");
        }
    }
}
