//! What the connections of the tests agreed on: options that a path takes out, and marks of congestion.
//!
//! In: cells with the state of their connections. Out: remarks. An option counts as lost where both hosts
//! have it switched on and a transfer between them went without it.

use linerate_model::remark::Remark;

use crate::context::Context;
use crate::evidence::{CellEvidence, Facts};
use crate::metrics::{SWITCHES, Switch, ends};

/// Options that paths take out, and pairs whose segments are marked.
pub(crate) fn remarks(context: &Context<'_>) -> Vec<Remark> {
    let mut remarks: Vec<Remark> = SWITCHES.iter().filter_map(|switch| lost(context, switch)).collect();
    remarks.extend(context.cells.iter().filter_map(|cell| marked(&context.facts, cell)));
    remarks
}

fn lost(context: &Context<'_>, switch: &Switch) -> Option<Remark> {
    let facts = &context.facts;
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    let mut kept: Vec<(&str, &str)> = Vec::new();
    for cell in &context.cells {
        let Some(is_out) = switch.is_taken_out(facts, cell) else { continue };
        let list = if is_out { &mut pairs } else { &mut kept };
        if !list.contains(&(cell.from, cell.to)) {
            list.push((cell.from, cell.to));
        }
    }
    kept.retain(|pair| !pairs.contains(pair));
    let named = pairs.iter().take(facts.rules.notes.option_pairs_max);
    let named = named.map(|(from, to)| ((*from).to_owned(), (*to).to_owned())).collect();
    (!pairs.is_empty()).then_some(Remark::OptionLost {
        option: switch.option,
        pairs: named,
        lost: pairs.len(),
        kept: kept.len(),
    })
}

fn marked(facts: &Facts<'_>, cell: &CellEvidence<'_>) -> Option<Remark> {
    let rules = &facts.rules.notes;
    let (delivered, marks) = ends(cell).fold((0_u64, 0_u64), |(all, ce), end| {
        (all.saturating_add(end.delivered), ce.saturating_add(end.delivered_ce))
    });
    let share = marks as f64 / delivered as f64;
    (delivered as f64 >= rules.marked_segments_min && share >= rules.marked_min).then(|| Remark::Marked {
        from: cell.from.to_owned(),
        to: cell.to.to_owned(),
        layer: cell.layer,
        share: share.min(1.0),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use linerate_knowledge::Knowledge;
    use linerate_model::fact::{FactValue, HostFacts};
    use linerate_model::finding::{Diagnosis, Metric};
    use linerate_model::inventory::{Host, Layer, TransportSpec};
    use linerate_model::kind::TcpPlan;
    use linerate_model::load::{AgreedOptions, LoadReport, TcpEnd};
    use linerate_model::plan::Test;
    use linerate_model::remark::TcpOption;
    use linerate_model::sample::{Measurement, Outcome, Sample};
    use linerate_model::snapshot::Snapshot;

    use super::*;

    fn transfer(from: &str, to: &str, end: TcpEnd) -> Sample {
        let test = Test::new(from.into(), to.into(), Layer::Underlay, TcpPlan::single(500).into());
        let tx = LoadReport { tcp: Some(end), ..LoadReport::default() };
        let measured =
            Measurement { throughput_bps: Some(1e9), tx: Some(Box::new(tx)), ..Measurement::default() };
        let (tx_counters, rx_counters) = (BTreeMap::new(), BTreeMap::new());
        Sample { test, start_ms: 0, outcome: Outcome::Measured(Box::new(measured)), tx_counters, rx_counters }
    }

    /// Three hosts, whose connections go without SACK where `is_out` holds for sender and receiver;
    /// `sack` is what the second one has set.
    fn diagnosed(sack: i64, marks: u64, is_out: fn(&str, &str) -> bool) -> Diagnosis {
        let mut snapshot = Snapshot::default();
        for name in ["a", "b", "c"] {
            snapshot.inventory.hosts.push(Host {
                name: name.into(),
                transport: TransportSpec::Local,
                groups: Vec::new(),
                endpoints: Vec::new(),
                state_dir: None,
                etc_dir: None,
                cache_dir: None,
            });
            let mut facts = HostFacts::default();
            let value = if name == "b" { sack } else { 1 };
            facts.readings.insert("sysctl.net.ipv4.tcp_sack".into(), FactValue::Int(value));
            facts.readings.insert("sysctl.net.ipv4.tcp_ecn".into(), FactValue::Int(2));
            snapshot.facts.insert(name.into(), facts);
        }
        for (from, to) in [("a", "b"), ("b", "a"), ("a", "c"), ("c", "a"), ("b", "c"), ("c", "b")] {
            let options = AgreedOptions { sack: !is_out(from, to), ..AgreedOptions::default() };
            let delivered_ce = if (from, to) == ("a", "c") { marks } else { 0 };
            let end = TcpEnd { agreed: Some(options), delivered: 50_000, delivered_ce, ..TcpEnd::default() };
            snapshot.samples.push(transfer(from, to, end));
        }
        crate::diagnose(&snapshot, &Knowledge::default())
    }

    /// The same with the connections between the first two.
    fn seen(sack: i64, marks: u64) -> Vec<Remark> {
        diagnosed(sack, marks, |from, to| from != "c" && to != "c").remarks
    }

    #[test]
    fn a_host_whose_connections_all_lose_an_option_is_a_finding() {
        let lost = |from: &str, to: &str| from == "b" || to == "b";
        let found = diagnosed(1, 0, lost).findings;
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert!(
            finding.affected.len() == 4 && finding.affected.iter().all(|(a, b)| lost(a, b)),
            "{finding:?}"
        );
        assert_eq!(finding.responses, [Metric::TcpOptions]);
        // Switched off there it is a setting; and all of them have it.
        assert_eq!(diagnosed(0, 0, lost).findings, []);
        assert_eq!(diagnosed(1, 0, |_, _| false).findings, []);
    }

    #[test]
    fn an_option_that_both_hosts_have_on_and_their_path_takes_out_is_a_remark() {
        let wanted = Remark::OptionLost {
            option: TcpOption::Sack,
            pairs: vec![("a".into(), "b".into()), ("b".into(), "a".into())],
            lost: 2,
            kept: 4,
        };
        assert_eq!(seen(1, 0), [wanted]);
        // Switched off at one end it is a setting, and no device of the path. ECN was not asked for.
        assert_eq!(seen(0, 0), []);
    }

    #[test]
    fn marks_of_congestion_are_a_remark_and_single_ones_are_none() {
        assert_eq!(seen(0, 10), []);
        let [Remark::Marked { from, to, share, .. }] = &seen(0, 500)[..] else {
            panic!("{:?}", seen(0, 500))
        };
        assert_eq!((from.as_str(), to.as_str(), *share), ("a", "c", 0.01));
    }
}
