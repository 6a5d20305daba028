//! Counters of several hosts that move together count the same events: packets that reach all of them, and
//! that only these do not want. A snapshot with watched counters comes in, remarks go out.

use std::collections::BTreeMap;

use linerate_model::finding::{AtRest, Cell, Finding, Metric, Suspect};
use linerate_model::inventory::HostName;
use linerate_model::remark::{Remark, Together};
use linerate_model::snapshot::CounterWatch;

use crate::alike::{self, correlation};
use crate::evidence::Facts;
use crate::stats::median;

/// What the watched counters say.
pub(crate) fn remarks(facts: &Facts<'_>) -> Vec<Remark> {
    let mut by_key: BTreeMap<&str, Vec<&CounterWatch>> = BTreeMap::new();
    for watched in facts.snapshot.watched.iter().filter(|w| w.growth.len() >= facts.rules.notes.intervals_min)
    {
        by_key.entry(&watched.key).or_default().push(watched);
    }
    by_key.into_iter().filter_map(|(key, series)| remark(facts, key, &series)).collect()
}

fn remark(facts: &Facts<'_>, key: &str, series: &[&CounterWatch]) -> Option<Remark> {
    let rules = &facts.rules.notes;
    let correlation = |a: &[f64], b: &[f64]| correlation(a, b, rules.intervals_min);
    // The busiest one, and those that move with it.
    let leader = series.iter().max_by(|a, b| total(a).total_cmp(&total(b)))?;
    let same: Vec<&&CounterWatch> = series
        .iter()
        .filter(|w| {
            w.host == leader.host
                || correlation(&leader.growth, &w.growth).is_some_and(|r| r >= rules.correlated)
        })
        .filter(|w| total(w) >= rules.quiet * total(leader))
        .collect();
    let quiet: Vec<&&CounterWatch> =
        series.iter().filter(|w| total(w) < rules.quiet * total(leader)).collect();
    if same.len() < 2 || total(leader) == 0.0 {
        return None;
    }
    let least = same
        .iter()
        .filter(|w| w.host != leader.host)
        .filter_map(|w| correlation(&leader.growth, &w.growth))
        .fold(1.0, f64::min);
    let names = |list: &[&&CounterWatch]| -> Vec<HostName> { list.iter().map(|w| w.host.clone()).collect() };
    let per_minute = median(&leader.growth)? / leader.every_s.max(f64::MIN_POSITIVE) * 60.0;
    Some(Remark::Together(Box::new(Together {
        key: key.to_owned(),
        hosts: names(&same),
        correlation: least,
        quiet: names(&quiet),
        shared: shared(facts, &same, &quiet),
        most: (leader.host.clone(), per_minute),
    })))
}

fn total(watched: &CounterWatch) -> f64 {
    watched.growth.iter().filter(|g| g.is_finite()).sum()
}

/// Facts that all of some hosts have alike and none of the others; and keys that only the others have.
fn shared(facts: &Facts<'_>, mine: &[&&CounterWatch], others: &[&&CounterWatch]) -> Vec<String> {
    let mine: Option<Vec<_>> = mine.iter().map(|w| facts.of(&w.host)).collect();
    let others: Vec<_> = others.iter().filter_map(|w| facts.of(&w.host)).collect();
    let shared = alike::shared(&mine.unwrap_or_default(), &others);
    let alike = shared.facts.into_iter().map(|(key, value)| format!("{key} is {value}"));
    let lacking = shared.lacking.into_iter().map(|key| format!("no {key}"));
    alike.chain(lacking).take(facts.rules.notes.shared_max).collect()
}

/// Counter of the segments that a host sends again.
const RETRANSMITTED: &str = "snmp.Tcp.RetransSegs";

/// Retransmits of a host at rest, where they show only under load and its counter was watched over a time.
pub(crate) fn at_rest(facts: &Facts<'_>, finding: &Finding) -> Option<AtRest> {
    match finding.places.first().map(|p| &p.suspect) {
        Some(Suspect::Host(host)) if finding.responses.first() == Some(&Metric::Retransmits) => {
            only_under_load(facts, host, finding.measured)
        }
        _ => None,
    }
}

fn only_under_load(facts: &Facts<'_>, host: &str, under_load: f64) -> Option<AtRest> {
    let mut watched = facts.snapshot.watched.iter().filter(|w| w.host == host && w.key == RETRANSMITTED);
    let watched = watched.next().filter(|w| w.every_s > 0.0 && !w.growth.is_empty())?;
    let a_second = watched.growth.iter().sum::<f64>() / (watched.every_s * watched.growth.len() as f64);
    (a_second < facts.rules.notes.at_rest * under_load)
        .then(|| AtRest { host: host.to_owned(), per_day: a_second * 86400.0 })
}

/// The one host to which everybody sends again, where that is too little for a finding: its throughput does
/// not suffer.
pub(crate) fn sent_again(facts: &Facts<'_>, report: &[Cell], findings: &[Finding]) -> Option<Remark> {
    let rules = &facts.rules.notes;
    if findings.iter().any(|f| f.responses.contains(&Metric::Retransmits)) {
        return None;
    }
    let rates = || report.iter().filter_map(|c| Some((c.to.as_str(), c.retransmits_per_s?)));
    let most = rates().max_by(|a, b| a.1.total_cmp(&b.1))?.0;
    let (there, others): (Vec<_>, Vec<_>) = rates().partition(|(to, _)| *to == most);
    let alone = there.len().min(others.len()) >= rules.concentrated_cells_min;
    if !alone
        || there.iter().any(|r| r.1 < rules.concentrated)
        || others.iter().any(|r| r.1 >= rules.elsewhere)
    {
        return None;
    }
    let per_s = median(&there.iter().map(|(_, rate)| *rate).collect::<Vec<_>>())?;
    let at_rest = only_under_load(facts, most, per_s);
    Some(Remark::SentAgain { host: most.to_owned(), per_s, at_rest })
}
