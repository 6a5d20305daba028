//! Guesses of other methods about the same run: their score of each host in each direction, from the same
//! cells.
//!
//! In: a diagnosis with its cells, the truth. Out: a guess per method. It favours the others where it can:
//! they get the number of faults.

use linerate_lab::faults::fault::Truth;
use linerate_model::finding::{Diagnosis, Direction, Suspect};
use linerate_model::inventory::Inventory;
use serde::{Deserialize, Serialize};

use crate::methods::{METHODS, Method, shares_of_cells};

/// The guess of one method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Guess {
    /// Name of the method.
    pub method: String,
    /// Every fault is among as many suspects as there are faults; nothing in a healthy run.
    pub right: bool,
    /// Its first suspect is bad enough for an alarm.
    pub alarm: bool,
}

/// The guesses of all methods about a run in which this was true.
pub(crate) fn guesses(inventory: &Inventory, diagnosis: &Diagnosis, truths: &[&Truth]) -> Vec<Guess> {
    let shares = shares_of_cells(inventory, &diagnosis.cells);
    let guess = |method: &Method| {
        let (named, alarm) = method.suspects(inventory, &shares, truths.len().max(1));
        let found =
            |truth: &Truth| named.iter().any(|(host, direction)| is_at(inventory, truth, host, *direction));
        let right = !truths.is_empty() && truths.iter().all(|truth| found(truth));
        Guess { method: method.name.to_owned(), right, alarm }
    };
    METHODS.iter().map(guess).collect()
}

/// Whether a host with a direction is what the truth speaks of, or part of it.
fn is_at(inventory: &Inventory, truth: &Truth, host: &str, direction: Direction) -> bool {
    let inside = |group: &String| inventory.groups_of(host).iter().any(|g| g.name == *group);
    truth.accepted.iter().any(|(suspect, directions)| {
        let is_direction =
            directions.is_empty() || directions.contains(&direction) || directions.contains(&Direction::Both);
        match suspect {
            Suspect::Host(name) => name == host && is_direction,
            Suspect::Group(group) => inside(group) && is_direction,
            Suspect::GroupToGroup(a, b) => inside(if direction == Direction::Tx { a } else { b }),
            Suspect::Pair(a, b) => a == host || b == host,
            Suspect::Mismatch(_, hosts) => hosts.iter().any(|h| h == host),
            Suspect::Drive(..) | Suspect::All => false,
        }
    })
}
