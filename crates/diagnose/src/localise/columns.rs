//! The hypotheses: every element with a direction, and the cells that it would harm.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::finding::{Direction, Element};
use linerate_model::inventory::Inventory;

use crate::evidence::CellEvidence;

/// One hypothesis.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    /// Where.
    pub element: Element,
    /// Which direction.
    pub direction: Direction,
    /// Cells that it would harm: two lists where both directions have to suffer, else one.
    pub parts: Vec<Vec<usize>>,
    /// Log odds against this class of hypothesis before anything was measured.
    pub penalty: f64,
}

/// Log odds by class, most likely first: a host more than a group, that more than one path.
const HOST: f64 = 2.8;
const GROUP: f64 = 2.9;
const BOTH: f64 = 3.0;
const ALL: f64 = 3.4;
const GROUP_TO_GROUP: f64 = 3.2;
const PAIR: f64 = 4.6;

/// The more hypotheses of a class there are, the less likely each of them is before anything was measured: the logarithm of their
/// number, as far as that is more than the class costs anyway. `usual`: how many of them, as a logarithm, are bad in any case, for
/// of hosts it is a share that is bad.
fn among(class: f64, count: usize, usual: f64) -> f64 {
    class.max((count.max(1) as f64).ln() - usual)
}

impl Column {
    /// All cells of all parts.
    pub(crate) fn cells(&self) -> BTreeSet<usize> {
        self.parts.iter().flatten().copied().collect()
    }

    /// Whether a cell touches the element in any direction.
    pub(crate) fn touches(&self, inventory: &Inventory, cell: &CellEvidence<'_>) -> bool {
        let inside = |host: &str, group: &str| inventory.groups_of(host).iter().any(|g| g.name == group);
        match &self.element {
            Element::Host(h) => cell.from == h || cell.to == h,
            Element::Group(g) => inside(cell.from, g) || inside(cell.to, g),
            Element::GroupToGroup(a, b) => {
                (inside(cell.from, a) && inside(cell.to, b)) || (inside(cell.from, b) && inside(cell.to, a))
            }
            Element::Pair(a, b) => (cell.from == a && cell.to == b) || (cell.from == b && cell.to == a),
            Element::Mismatch(_, hosts) => hosts.iter().any(|h| cell.from == h || cell.to == h),
            Element::All => true,
        }
    }
}

/// Cells by what they touch, each list in the order of the cells: a pass over all cells for every element would be a square of
/// the number of hosts.
#[derive(Default)]
struct Touched<'a> {
    /// Cells that a host sends, and that it receives.
    hosts: BTreeMap<&'a str, [Vec<usize>; 2]>,
    /// Cells that leave a group, and that enter it; by place in the inventory.
    groups: Vec<[Vec<usize>; 2]>,
    /// Cells that leave one group and enter another.
    between: BTreeMap<(usize, usize), Vec<usize>>,
    /// Cells of an ordered pair.
    pairs: BTreeMap<(&'a str, &'a str), Vec<usize>>,
}

impl<'a> Touched<'a> {
    fn new(inventory: &Inventory, cells: &[CellEvidence<'a>]) -> Self {
        let numbers: BTreeMap<&str, usize> =
            inventory.groups.iter().enumerate().map(|(i, g)| (g.name.as_str(), i)).collect();
        let mut touched =
            Self { groups: vec![Default::default(); inventory.groups.len()], ..Self::default() };
        let groups_of: BTreeMap<&str, Vec<usize>> = cells
            .iter()
            .flat_map(|c| [c.from, c.to])
            .collect::<BTreeSet<_>>()
            .into_iter()
            .map(|h| {
                let groups = inventory.groups_of(h);
                (h, groups.iter().filter_map(|g| numbers.get(g.name.as_str()).copied()).collect())
            })
            .collect();
        for (i, cell) in cells.iter().enumerate() {
            touched.hosts.entry(cell.from).or_default()[0].push(i);
            touched.hosts.entry(cell.to).or_default()[1].push(i);
            touched.pairs.entry((cell.from, cell.to)).or_default().push(i);
            let (from, to) = (&groups_of[cell.from], &groups_of[cell.to]);
            let left = from.iter().filter(|g| !to.contains(g));
            let entered: Vec<usize> = to.iter().filter(|g| !from.contains(g)).copied().collect();
            for group in left {
                touched.groups[*group][0].push(i);
                for other in &entered {
                    touched.between.entry((*group, *other)).or_default().push(i);
                }
            }
            for group in entered {
                touched.groups[group][1].push(i);
            }
        }
        touched
    }
}

/// All hypotheses that the cells can tell something about.
pub(crate) fn columns(inventory: &Inventory, cells: &[CellEvidence<'_>]) -> Vec<Column> {
    let touched = Touched::new(inventory, cells);
    let mut all = Vec::new();
    let mut add = |element: Element, direction: Direction, parts: Vec<Vec<usize>>, penalty: f64| {
        if parts.iter().all(|p| !p.is_empty()) {
            all.push(Column { element, direction, parts, penalty });
        }
    };
    let [one, both] = [HOST, BOTH].map(|class| among(class, touched.hosts.len(), 6.4));
    for (host, [tx, rx]) in &touched.hosts {
        let element = || Element::Host((*host).to_owned());
        add(element(), Direction::Rx, vec![rx.clone()], one);
        add(element(), Direction::Tx, vec![tx.clone()], one);
        add(element(), Direction::Both, vec![rx.clone(), tx.clone()], both);
    }
    let from_to = among(GROUP_TO_GROUP, touched.between.len(), 0.5);
    for (number, (group, [tx, rx])) in inventory.groups.iter().zip(&touched.groups).enumerate() {
        let element = || Element::Group(group.name.clone());
        add(element(), Direction::Rx, vec![rx.clone()], GROUP);
        add(element(), Direction::Tx, vec![tx.clone()], GROUP);
        add(element(), Direction::Both, vec![rx.clone(), tx.clone()], BOTH + 0.1);
        for ((_, other), path) in touched.between.range((number, 0)..(number + 1, 0)) {
            let element = Element::GroupToGroup(group.name.clone(), inventory.groups[*other].name.clone());
            add(element, Direction::Both, vec![path.clone()], from_to);
        }
    }
    add(Element::All, Direction::Both, vec![(0..cells.len()).collect()], ALL);
    let seen: BTreeSet<(&str, &str)> = touched.pairs.keys().flat_map(|(a, b)| [(*a, *b), (*b, *a)]).collect();
    let nothing = Vec::new();
    let pair = among(PAIR, seen.len(), 1.0);
    for (a, b) in seen.into_iter().filter(|(a, b)| a != b) {
        let there = touched.pairs.get(&(a, b)).unwrap_or(&nothing);
        let back = touched.pairs.get(&(b, a)).unwrap_or(&nothing);
        let element = || Element::Pair(a.to_owned(), b.to_owned());
        add(element(), Direction::Tx, vec![there.clone()], pair);
        if a < b {
            add(element(), Direction::Both, vec![there.clone(), back.clone()], pair);
        }
    }
    all
}
