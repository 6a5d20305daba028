//! A longer transfer where a limiter is suspected. A token bucket, a policer with a burst or the credits of a
//! rented machine let the first second through at the full rate: neither "two rates" nor "at its ceiling" is
//! known after transfers that are shorter than what was saved up.
//!
//! In: cells, and what was located. Out: one transfer for each path in doubt, a few at most. A limiter is
//! suspected where a rate jumps, where it falls within a transfer, and where a host, or the machine under it,
//! has a limiter on its device. Of the paths of such a host the one that lost most is measured.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use linerate_knowledge::keys::pattern_fits;
use linerate_model::fact::HostFacts;
use linerate_model::finding::{Direction, Metric};
use linerate_model::inventory::{HostName, Inventory};
use linerate_model::kind::{TcpPlan, TestPlan as _};
use linerate_model::plan::Test;

use crate::attribute::{Judged, of_hook};
use crate::context::Context;
use crate::evidence::{CellEvidence, series};
use crate::rules::{NextRules, Rules};
use crate::stats::median;

/// Facts of a limiter, with words that one of their values has.
type Limiter = (&'static str, &'static [&'static str]);
const LIMITERS: [Limiter; 4] = [
    ("nic.*.qdisc", &["tbf", "htb", "hfsc", "cbq", "cake"]),
    ("nic.*.qdisc_rate_bit", DIGITS),
    ("nic.*.filter.*", &["police"]),
    ("firewall.*.limits", DIGITS),
];
/// The first are queues, whose bucket is small: a usual transfer sees it run empty. That of a rule holds what
/// passes in a second.
const QUEUES: usize = 2;
/// Digits of a number above zero.
const DIGITS: &[&str] = &["1", "2", "3", "4", "5", "6", "7", "8", "9"];

type FactsOfHosts = BTreeMap<HostName, HostFacts>;
type Ends<'a> = BTreeSet<(bool, &'a str)>;

/// Longer transfers of the paths on which a limiter is suspected, without numbers.
pub(crate) fn tests<'a>(context: &Context<'a>, judged: &[Judged<'a, '_>]) -> Vec<Test> {
    let rules = context.facts.rules;
    let located: BTreeSet<usize> = judged
        .iter()
        .filter(|j| j.responses.contains(&Metric::TwoState))
        .flat_map(|j| j.located.rows.iter().map(|row| context.rows[*row].cell))
        .collect();
    let snapshot = context.facts.snapshot;
    let mut limited = limited(&snapshot.inventory, &snapshot.facts, &LIMITERS);
    let is_suspected = |n: usize, cell: &CellEvidence<'_>| located.contains(&n) || falls(cell, rules);
    // One path from a host with a limiter, and one to it, show what that does.
    let mut is_new = |cell: &CellEvidence<'a>| {
        let from = limited.remove(&(true, cell.from));
        limited.remove(&(false, cell.to)) || from
    };
    // Inside a machine there is no device of the network.
    let crossing = context.cells.iter().enumerate().filter(|(_, cell)| cell.kind.shared_groups == 0);
    let mut worst_first: Vec<_> = crossing.collect();
    let lost = |cell: &CellEvidence<'_>| cell.retransmits_per_s.unwrap_or(0.0);
    worst_first.sort_by(|(_, one), (_, other)| lost(other).total_cmp(&lost(one)));
    let wanted = worst_first.into_iter().filter(|(number, cell)| is_suspected(*number, cell) || is_new(cell));
    let unknown = wanted.map(|(_, cell)| cell).filter(|cell| !is_known(cell, &rules.next));
    unknown.take(rules.next.longer_max).map(|cell| longer(cell, &rules.next)).collect()
}

/// Time that longer transfers take for the rules with a limit that were read, one after the other.
pub(crate) fn time(inventory: &Inventory, facts: &FactsOfHosts, rules: &NextRules) -> Duration {
    let count = limited(inventory, facts, &LIMITERS[QUEUES..]).len().min(rules.longer_max);
    TcpPlan::single(rules.longer_ms).expected() * count as u32
}

/// Hosts with a limiter of their own, or of a machine under them, each with whether what it sends (`true`) or
/// receives may be held back: what a machine sends, its hosts receive.
fn limited<'a>(inventory: &'a Inventory, facts: &FactsOfHosts, known: &[Limiter]) -> Ends<'a> {
    let held = |host: &str| facts.get(host).map(|facts| limiters(facts, known)).unwrap_or_default();
    let mut ends = Ends::new();
    for host in inventory.hosts.iter().filter(|host| !host.endpoints.is_empty()) {
        let mut machines = inventory.groups_of(&host.name).into_iter().filter_map(|g| g.machine.as_ref());
        let is_below = machines.any(|machine| held(machine) != [false, false]);
        let [sends, receives] = held(&host.name);
        let sides = [(true, is_below || sends), (false, is_below || receives)];
        ends.extend(sides.iter().filter(|(_, held)| *held).map(|(side, _)| (*side, host.name.as_str())));
    }
    ends
}

/// Whether a limiter is among the facts of a host, of what it sends and of what it receives.
fn limiters(facts: &HostFacts, known: &[Limiter]) -> [bool; 2] {
    let mut found = [false, false];
    for (pattern, words) in known {
        let begin = pattern.split('*').next().unwrap_or_default();
        let fitting = facts.readings.beginning_with(begin).filter(|(key, _)| pattern_fits(pattern, key));
        for (key, value) in fitting {
            if words.iter().any(|word| value.to_string().contains(word)) {
                let queue = if key.starts_with("nic.ifb") { Direction::Rx } else { Direction::Tx };
                let direction = of_hook(key).or(key.contains(".qdisc").then_some(queue));
                found[0] |= direction != Some(Direction::Rx);
                found[1] |= direction != Some(Direction::Tx);
            }
        }
    }
    found
}

fn longer(cell: &CellEvidence<'_>, rules: &NextRules) -> Test {
    let kind = TcpPlan::single(rules.longer_ms).into();
    let test = Test::new(cell.from.to_owned(), cell.to.to_owned(), cell.layer, kind);
    Test { repeat: FIRST_REPEAT, second_stage: true, ..test }
}

/// Number of the first repetition of the second stage.
const FIRST_REPEAT: u16 = 100;

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
