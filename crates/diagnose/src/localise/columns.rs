//! The hypotheses: every element with a direction, and the cells that it would harm.

use std::collections::BTreeSet;

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

/// All hypotheses that the cells can tell something about.
pub(crate) fn columns(inventory: &Inventory, cells: &[CellEvidence<'_>]) -> Vec<Column> {
    let mut all = Vec::new();
    let pick = |test: &dyn Fn(&CellEvidence<'_>) -> bool| -> Vec<usize> {
        (0..cells.len()).filter(|i| test(&cells[*i])).collect()
    };
    let mut add = |element: Element, direction: Direction, parts: Vec<Vec<usize>>, penalty: f64| {
        if parts.iter().all(|p| !p.is_empty()) {
            all.push(Column { element, direction, parts, penalty });
        }
    };
    let hosts: BTreeSet<&str> = cells.iter().flat_map(|c| [c.from, c.to]).collect();
    for host in &hosts {
        let (tx, rx) = (pick(&|c| c.from == *host), pick(&|c| c.to == *host));
        let element = || Element::Host((*host).to_owned());
        add(element(), Direction::Rx, vec![rx.clone()], HOST);
        add(element(), Direction::Tx, vec![tx.clone()], HOST);
        add(element(), Direction::Both, vec![rx, tx], BOTH);
    }
    let inside = |host: &str, group: &str| inventory.groups_of(host).iter().any(|g| g.name == group);
    for group in &inventory.groups {
        let g = group.name.as_str();
        let tx = pick(&|c| inside(c.from, g) && !inside(c.to, g));
        let rx = pick(&|c| inside(c.to, g) && !inside(c.from, g));
        let element = || Element::Group(g.to_owned());
        add(element(), Direction::Rx, vec![rx.clone()], GROUP);
        add(element(), Direction::Tx, vec![tx.clone()], GROUP);
        add(element(), Direction::Both, vec![rx, tx], BOTH + 0.1);
        for other in inventory.groups.iter().filter(|o| o.name != group.name) {
            let o = other.name.as_str();
            let path =
                pick(&|c| inside(c.from, g) && !inside(c.to, g) && inside(c.to, o) && !inside(c.from, o));
            add(
                Element::GroupToGroup(g.to_owned(), o.to_owned()),
                Direction::Both,
                vec![path],
                GROUP_TO_GROUP,
            );
        }
    }
    add(Element::All, Direction::Both, vec![(0..cells.len()).collect()], ALL);
    for a in &hosts {
        for b in hosts.iter().filter(|b| *b != a) {
            let (there, back) =
                (pick(&|c| c.from == *a && c.to == *b), pick(&|c| c.from == *b && c.to == *a));
            add(Element::Pair((*a).to_owned(), (*b).to_owned()), Direction::Tx, vec![there.clone()], PAIR);
            if a < b {
                add(
                    Element::Pair((*a).to_owned(), (*b).to_owned()),
                    Direction::Both,
                    vec![there, back],
                    PAIR,
                );
            }
        }
    }
    all
}
