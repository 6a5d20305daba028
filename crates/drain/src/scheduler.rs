//! What is asked of a scheduler. In: names and values that a write expects to find. Out: nodes, reservations,
//! and whether something was written.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// States of a node that takes work, and flags that change nothing about that. A node with any other word is
/// left alone: down, failing, rebooting, powered off, in maintenance, or a state of a later version.
const AVAILABLE: [&str; 9] = [
    "IDLE",
    "ALLOCATED",
    "MIXED",
    "COMPLETING",
    "CLOUD",
    "PLANNED",
    "RESERVED",
    "DYNAMIC_NORM",
    "DYNAMIC_FUTURE",
];
/// The flag of a node that takes no new work.
const DRAIN: &str = "DRAIN";

/// Why a node is drained or down, and who wrote that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DrainReason {
    /// Text.
    pub text: String,
    /// User.
    pub by: String,
    /// Unix seconds, by the scheduler's clock.
    pub at_s: u64,
}

/// A node as the scheduler describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Node {
    /// Name.
    pub name: String,
    /// Words of its state, such as `IDLE` and `DRAIN`.
    pub state: BTreeSet<String>,
    /// Reason, if there is one.
    pub reason: Option<DrainReason>,
    /// Last boot, Unix seconds; 0 when it is unknown, as right after a resume.
    pub boot_s: u64,
}

impl Node {
    /// Whether it is drained or draining.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.state.contains(DRAIN)
    }

    /// A word of its state, beside that of a drain, with which it is left alone.
    #[must_use]
    pub fn obstacle(&self) -> Option<&str> {
        let words = self.state.iter().map(String::as_str);
        words.into_iter().find(|word| *word != DRAIN && !AVAILABLE.contains(word))
    }

    /// Whether nothing that counts has changed: jobs that began or ended do not.
    #[must_use]
    pub fn stands_as(&self, other: &Self) -> bool {
        let counts = |node: &Self| {
            (node.reason.clone(), node.is_drained(), node.obstacle().map(str::to_owned), node.boot_s)
        };
        self.name == other.name && counts(self) == counts(other)
    }
}

/// A reservation that keeps jobs off one node. It has no text of its own in every version of Slurm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    /// Name.
    pub name: String,
    /// Node.
    pub node: String,
}

/// What became of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guarded {
    /// Done.
    Written,
    /// Nothing: another state was found than the expected one.
    Changed,
}

/// Why a call has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// No result in time: a write may have been carried out, or may be later.
    #[error("{0}")]
    Late(String),
    /// Refused, or not possible here.
    #[error("{0}")]
    Failed(String),
}

/// A scheduler.
///
/// Slurm has no conditional update. The two guarded writes read the node again and write at once after that;
/// what another user writes within these milliseconds is lost. A reservation has no such gap: its name is
/// created once, and no reason is touched.
pub trait Scheduler {
    /// All nodes.
    fn nodes(&mut self) -> Result<Vec<Node>, CallError>;

    /// One node; `None` when it is not known.
    fn node(&mut self, name: &str) -> Result<Option<Node>, CallError>;

    /// Drains a node that still stands as expected.
    fn drain(&mut self, expected: &Node, reason: &str) -> Result<Guarded, CallError>;

    /// Resumes a node that still stands as expected.
    fn resume(&mut self, expected: &Node) -> Result<Guarded, CallError>;

    /// The reservations whose name begins with [`crate::Hold::RESERVATION`].
    fn reservations(&mut self) -> Result<Vec<Reservation>, CallError>;

    /// Makes a reservation, unless one of this name exists.
    fn reserve(&mut self, reservation: &Reservation) -> Result<Guarded, CallError>;

    /// Deletes a reservation that still stands as expected, of a node that does: it may have rebooted.
    fn release(&mut self, node: &Node, expected: &Reservation) -> Result<Guarded, CallError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(state: &str) -> Node {
        Node { name: "n1".into(), state: state.split('+').map(str::to_owned).collect(), ..Node::default() }
    }

    #[test]
    fn only_states_that_are_known_to_be_harmless_are_none() {
        for state in ["IDLE", "MIXED+DRAIN", "ALLOCATED+COMPLETING", "IDLE+CLOUD+RESERVED"] {
            assert_eq!(node(state).obstacle(), None, "{state}");
        }
        for state in ["DOWN", "IDLE+NOT_RESPONDING", "IDLE+DRAIN+REBOOT_ISSUED", "IDLE+MAINT", "IDLE+NEW"] {
            assert!(node(state).obstacle().is_some(), "{state}");
        }
    }

    #[test]
    fn jobs_that_begin_or_end_change_nothing() {
        assert!(node("IDLE").stands_as(&node("MIXED")));
        assert!(!node("IDLE").stands_as(&node("IDLE+DRAIN")));
        let reason = Some(DrainReason { text: "fan".into(), by: "root".into(), at_s: 1 });
        assert!(!node("IDLE").stands_as(&Node { reason, ..node("IDLE") }));
        assert!(!node("IDLE").stands_as(&Node { boot_s: 9, ..node("IDLE") }));
    }
}
