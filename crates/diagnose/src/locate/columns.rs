//! The hypotheses: every suspect with a direction, and the cells that it would harm.

use std::collections::BTreeMap;

use linerate_model::finding::{Direction, Metric, Suspect};
use linerate_model::inventory::Inventory;

use super::at_times;
use super::column::Column;
use crate::evidence::{CellEvidence, groups_by_host};
use crate::metrics::Row;
use crate::rules::Rules;

/// The more hypotheses of a class there are, the less likely each of them is before anything was measured:
/// the logarithm of their number, as far as that is more than the class costs anyway. `usual`: how many of
/// them, as a logarithm, are bad in any case, for of hosts it is a share that is bad.
fn among(class: f64, count: usize, usual: f64) -> f64 {
    class.max((count.max(1) as f64).ln() - usual)
}

/// Cells by what they touch, each list in the order of the cells: a pass over all cells for every suspect
/// would be a square of the number of hosts, and names are compared once.
struct Touched<'a> {
    /// Names of the hosts that are an end of a cell, sorted, with the cells that they send and receive.
    hosts: Vec<(&'a str, [Vec<usize>; 2])>,
    /// Cells that leave a group, and that enter it; by place in the inventory.
    groups: Vec<[Vec<usize>; 2]>,
    /// Cells that leave one group and enter another.
    between: BTreeMap<(usize, usize), Vec<usize>>,
    /// Cells with their ends by place among the hosts, sorted.
    pairs: Vec<([usize; 2], usize)>,
}

impl<'a> Touched<'a> {
    fn new(inventory: &Inventory, cells: &[CellEvidence<'a>]) -> Self {
        let (hosts, place) = hosts(inventory, cells);
        let groups = vec![Default::default(); inventory.groups.len()];
        let pairs = cells.iter().enumerate().map(|(i, cell)| (cell.ends.map(|end| place[end]), i)).collect();
        let mut touched = Self { hosts, groups, between: BTreeMap::new(), pairs };
        touched.pairs.sort_unstable();
        let groups_of = groups_by_host(inventory);
        for (i, cell) in cells.iter().enumerate() {
            let [from, to] = cell.ends;
            touched.hosts[place[from]].1[0].push(i);
            touched.hosts[place[to]].1[1].push(i);
            let left = groups_of[from].iter().filter(|g| !groups_of[to].contains(g));
            let entered = || groups_of[to].iter().filter(|g| !groups_of[from].contains(g));
            for group in left {
                touched.groups[*group][0].push(i);
                for other in entered() {
                    touched.between.entry((*group, *other)).or_default().push(i);
                }
            }
            for group in entered() {
                touched.groups[*group][1].push(i);
            }
        }
        touched
    }

    /// Cells of an ordered pair.
    fn of_pair(&self, pair: [usize; 2]) -> impl Iterator<Item = usize> + Clone {
        let start = self.pairs.partition_point(|(ends, _)| *ends < pair);
        self.pairs[start..].iter().take_while(move |(ends, _)| *ends == pair).map(|(_, cell)| *cell)
    }

    /// All pairs that have a cell in some direction, in both.
    fn seen(&self) -> Vec<[usize; 2]> {
        let both = |([from, to], _): &([usize; 2], usize)| [[*from, *to], [*to, *from]];
        let mut seen: Vec<[usize; 2]> = self.pairs.iter().flat_map(both).collect();
        seen.sort_unstable();
        seen.dedup();
        seen
    }
}

/// A host with room for the cells that it sends and receives.
type Ends<'a> = (&'a str, [Vec<usize>; 2]);

/// The hosts that are an end of a cell, by name; and the place of each host of the inventory among them.
fn hosts<'a>(inventory: &Inventory, cells: &[CellEvidence<'a>]) -> (Vec<Ends<'a>>, Vec<usize>) {
    let mut names: Vec<Option<&str>> = vec![None; inventory.hosts.len()];
    for cell in cells {
        names[cell.ends[0]] = Some(cell.from);
        names[cell.ends[1]] = Some(cell.to);
    }
    let mut named: Vec<(&str, usize)> =
        names.into_iter().enumerate().filter_map(|(number, name)| Some((name?, number))).collect();
    named.sort_unstable();
    let mut place = vec![0; inventory.hosts.len()];
    for (i, (_, number)) in named.iter().enumerate() {
        place[*number] = i;
    }
    (named.into_iter().map(|(name, _)| (name, Default::default())).collect(), place)
}

/// Cells that are not as they should be, or of which some test was not.
fn suspicious(cells: &[CellEvidence<'_>], rows: &[Row], rules: &Rules) -> Vec<bool> {
    let locate = &rules.locate;
    let is_uneven = |cell: &CellEvidence<'_>| {
        let (least, most) = cell.rates.iter().fold((f64::MAX, 0.0_f64), |(l, m), r| (l.min(*r), m.max(*r)));
        most > locate.uneven_ratio * least
    };
    let mut suspicious: Vec<bool> = cells.iter().map(is_uneven).collect();
    for row in rows {
        let share = if row.response == Metric::Throughput { 1.0 } else { locate.suspicious };
        suspicious[row.cell] |= row.y >= share * row.effect_min || at_times::is_ever_bad(row, cells, rules);
    }
    suspicious
}

/// All hypotheses that the cells can tell something about. Of ways between two hosts or groups only those on
/// which something is wrong: there are as many of them as tests, and no healthy one explains anything.
pub(crate) fn columns(
    inventory: &Inventory,
    cells: &[CellEvidence<'_>],
    rows: &[Row],
    rules: &Rules,
) -> Vec<Column> {
    let suspicious = suspicious(cells, rows, rules);
    let rules = &rules.locate;
    let is_of_interest = |cell: usize| suspicious[cell];
    let touched = Touched::new(inventory, cells);
    let mut all = Vec::new();
    let mut add = |suspect: Suspect, direction: Direction, parts: Vec<Vec<usize>>, penalty: f64| {
        if parts.iter().all(|p| !p.is_empty()) {
            all.push(Column { suspect, direction, parts, penalty });
        }
    };
    let [one, both] =
        [rules.host, rules.both].map(|class| among(class, touched.hosts.len(), rules.hosts_usual));
    for (host, [tx, rx]) in &touched.hosts {
        let suspect = || Suspect::Host((*host).to_owned());
        add(suspect(), Direction::Rx, vec![rx.clone()], one);
        add(suspect(), Direction::Tx, vec![tx.clone()], one);
        add(suspect(), Direction::Both, vec![rx.clone(), tx.clone()], both);
    }
    let from_to = among(rules.group_to_group, touched.between.len(), rules.groups_usual);
    for (number, (group, [tx, rx])) in inventory.groups.iter().zip(&touched.groups).enumerate() {
        let suspect = || Suspect::Group(group.name.clone());
        add(suspect(), Direction::Rx, vec![rx.clone()], rules.group);
        add(suspect(), Direction::Tx, vec![tx.clone()], rules.group);
        add(suspect(), Direction::Both, vec![rx.clone(), tx.clone()], rules.both + rules.group_both_more);
        let ways = touched.between.range((number, 0)..(number + 1, 0));
        for ((_, other), path) in ways.filter(|(_, path)| path.iter().any(|cell| is_of_interest(*cell))) {
            let suspect = Suspect::GroupToGroup(group.name.clone(), inventory.groups[*other].name.clone());
            add(suspect, Direction::Both, vec![path.clone()], from_to);
        }
    }
    add(Suspect::All, Direction::Both, vec![(0..cells.len()).collect()], rules.all);
    let seen = touched.seen();
    let pair = among(rules.pair, seen.len(), rules.pairs_usual);
    for [a, b] in seen.into_iter().filter(|[a, b]| a != b) {
        let (there, back) = (touched.of_pair([a, b]), touched.of_pair([b, a]));
        if !there.clone().chain(back.clone()).any(is_of_interest) {
            continue;
        }
        let (there, back): (Vec<usize>, Vec<usize>) = (there.collect(), back.collect());
        let name = |place: usize| touched.hosts[place].0.to_owned();
        add(Suspect::Pair(name(a), name(b)), Direction::Tx, vec![there.clone()], pair);
        if a < b {
            add(Suspect::Pair(name(a), name(b)), Direction::Both, vec![there, back], pair);
        }
    }
    all
}
