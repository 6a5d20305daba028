//! A longer transfer where a limiter is suspected. A token bucket, a policer with a burst or the credits of a
//! rented machine let the first second through at the full rate: neither "two rates" nor "at its ceiling" is
//! known after transfers that are shorter than what was saved up.
//!
//! In: cells, and what was located. Out: one transfer for each path in doubt, a few at most. A limiter is
//! suspected where a rate jumps, where it falls within a transfer, and where a host, or the machine under it,
//! has a limiter on its device.

use std::collections::BTreeSet;

use linerate_model::finding::Metric;
use linerate_model::kind::TcpPlan;
use linerate_model::plan::Test;

use crate::attribute::Judged;
use crate::context::Context;
use crate::evidence::{CellEvidence, Facts, series};
use crate::rules::{NextRules, Rules};
use crate::stats::median;

/// Facts of a limiter, with words that one of their values has.
const LIMITERS: [(&str, &[&str]); 4] = [
    ("nic.*.qdisc", &["tbf", "htb", "hfsc", "cbq", "cake"]),
    ("nic.*.filter.*", &["police"]),
    ("firewall.*.limits", &["1", "2", "3", "4", "5", "6", "7", "8", "9"]),
    ("nic.*.qdisc_rate_bit", &[]),
];

/// Longer transfers of the paths on which a limiter is suspected, without numbers.
pub(crate) fn tests<'a>(context: &Context<'a>, judged: &[Judged<'a, '_>]) -> Vec<Test> {
    let rules = context.facts.rules;
    let located: BTreeSet<usize> = judged
        .iter()
        .filter(|j| j.responses.contains(&Metric::TwoState))
        .flat_map(|j| j.located.rows.iter().map(|row| context.rows[*row].cell))
        .collect();
    let facts = &context.facts;
    let is_limited = |host: &str| {
        has_limiter(facts, host) || facts.machines_of(host).iter().any(|machine| has_limiter(facts, machine))
    };
    let limited: BTreeSet<&str> = context.measured.iter().copied().filter(|host| is_limited(host)).collect();
    let is_suspected =
        |number: usize, cell: &CellEvidence<'_>| located.contains(&number) || falls(cell, rules);
    let mut ends: BTreeSet<(bool, &str)> = BTreeSet::new();
    // One path from a host with a limiter and one to it show what that does.
    let mut is_new = |cell: &CellEvidence<'a>| {
        let from = limited.contains(cell.from) && ends.insert((true, cell.from));
        let to = limited.contains(cell.to) && ends.insert((false, cell.to));
        from || to
    };
    // Inside a machine there is no device of the network.
    let crossing = context.cells.iter().enumerate().filter(|(_, cell)| cell.kind.shared_groups == 0);
    let wanted = crossing.filter(|(number, cell)| is_suspected(*number, cell) || is_new(cell));
    let unknown = wanted.map(|(_, cell)| cell).filter(|cell| !is_known(cell, &rules.next));
    unknown.take(rules.next.longer_max).map(|cell| longer(cell, &rules.next)).collect()
}

fn longer(cell: &CellEvidence<'_>, rules: &NextRules) -> Test {
    let kind = TcpPlan::single(rules.longer_ms).into();
    let test = Test::new(cell.from.to_owned(), cell.to.to_owned(), cell.layer, kind);
    Test { repeat: FIRST_REPEAT, second_stage: true, ..test }
}

/// Number of the first repetition of the second stage.
const FIRST_REPEAT: u16 = 100;

fn has_limiter(facts: &Facts<'_>, host: &str) -> bool {
    LIMITERS.iter().any(|(pattern, words)| {
        facts.matching(host, pattern).iter().any(|(_, value)| {
            let text = value.to_string();
            words.is_empty() || words.iter().any(|word| text.contains(word))
        })
    })
}

/// Whether a transfer of the cell ran slower at its end than at its beginning.
fn falls(cell: &CellEvidence<'_>, rules: &Rules) -> bool {
    let next = &rules.next;
    cell.measured().filter(|(s, _)| s.test.kind.get().is_some_and(TcpPlan::is_single)).any(|(_, m)| {
        let rates = series(m, &rules.evidence);
        let part = rates.len() / 3;
        let middles = median(&rates[..part]).zip(median(&rates[rates.len() - part..]));
        part >= next.falling_intervals_min && middles.is_some_and(|(first, last)| last < next.falling * first)
    })
}

/// Whether a transfer of the cell was long enough, or one was tried.
fn is_known(cell: &CellEvidence<'_>, rules: &NextRules) -> bool {
    let tried = cell.samples.iter().chain(&cell.worthless);
    tried.filter_map(|s| s.test.kind.get::<TcpPlan>()).any(|tcp| tcp.duration_ms >= rules.longer_ms)
}
