//! One hypothesis: a suspect with a direction, and the cells that it would harm.

use std::collections::BTreeSet;

use linerate_model::finding::{Direction, Suspect};
use linerate_model::inventory::Inventory;

use crate::evidence::CellEvidence;

/// One hypothesis.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    /// Where.
    pub suspect: Suspect,
    /// Which direction.
    pub direction: Direction,
    /// Cells that it would harm: two lists where both directions have to suffer, else one.
    pub parts: Vec<Vec<usize>>,
    /// Log odds against this class of hypothesis before anything was measured.
    pub penalty: f64,
}

impl Column {
    /// All cells of all parts.
    pub(crate) fn cells(&self) -> BTreeSet<usize> {
        self.parts.iter().flatten().copied().collect()
    }

    /// Whether a cell touches the suspect in any direction.
    pub(crate) fn touches(&self, inventory: &Inventory, cell: &CellEvidence<'_>) -> bool {
        let inside = |host: &str, group: &str| inventory.groups_of(host).iter().any(|g| g.name == group);
        match &self.suspect {
            Suspect::Host(h) => cell.from == h || cell.to == h,
            Suspect::Group(g) => inside(cell.from, g) || inside(cell.to, g),
            Suspect::GroupToGroup(a, b) => {
                (inside(cell.from, a) && inside(cell.to, b)) || (inside(cell.from, b) && inside(cell.to, a))
            }
            Suspect::Pair(a, b) => (cell.from == a && cell.to == b) || (cell.from == b && cell.to == a),
            Suspect::Mismatch(_, hosts) => hosts.iter().any(|h| cell.from == h || cell.to == h),
            // No traffic between hosts passes a drive.
            Suspect::Drive(..) => false,
            Suspect::All => true,
        }
    }
}
