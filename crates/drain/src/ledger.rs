//! What this program holds, and whether it may hold more: the operator's record, kept between commands.
//!
//! In: what was asked for and what the scheduler shows. Out: own holds that still stand. A hold is written
//! here before the scheduler is asked for it; one that was not confirmed is never released automatically.

use std::collections::BTreeMap;

use linerate_model::run_id::RunId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::scheduler::{DrainReason, Node, Reservation};

/// By which means work is kept off a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HoldMeans {
    /// State DRAIN with a reason.
    State,
    /// A reservation of this one node; state and reason stay as they are.
    Reservation,
}

/// An own hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hold {
    /// By which means.
    pub by: HoldMeans,
    /// Text of the reason; of a reservation only here.
    pub text: String,
    /// Runs that located the fault, older first.
    pub runs: Vec<RunId>,
    /// When it was asked for, Unix milliseconds.
    pub asked_ms: u64,
    /// The reason as it was read back right after; for a reservation without user and time.
    pub confirmed: Option<DrainReason>,
}

impl Hold {
    /// What the names of own reservations begin with.
    pub const RESERVATION: &'static str = "linerate_";

    /// The reservation of a node: its name has the node and the run.
    pub(crate) fn reservation(&self, node: &str) -> Reservation {
        Reservation {
            name: format!("{}{node}_{}", Self::RESERVATION, self.runs.last().map_or("", String::as_str)),
            node: node.to_owned(),
        }
    }

    /// Whether the scheduler shows it.
    fn stands(&self, node: Option<&Node>, name: &str, reservations: &[Reservation]) -> bool {
        match self.by {
            HoldMeans::Reservation => reservations.contains(&self.reservation(name)),
            HoldMeans::State => {
                let Some(node) = node.filter(|node| node.is_drained()) else { return false };
                let Some(found) = &node.reason else { return false };
                match &self.confirmed {
                    Some(confirmed) => found == confirmed,
                    None => found.text == self.text,
                }
            }
        }
    }
}

/// Why nothing is drained or resumed until a person allows it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Trip {
    /// When, Unix milliseconds.
    pub at_ms: u64,
    /// Why.
    pub cause: TripCause,
}

/// What opens the circuit breaker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TripCause {
    /// More nodes would be held than the cap allows: likelier one fault of the network than many of hosts.
    Cap {
        /// Nodes that would be held.
        wanted: usize,
        /// Nodes that may be.
        cap: usize,
    },
    /// A write had no result in time.
    Late {
        /// Node.
        node: String,
    },
    /// After a write something else stood there.
    Overtaken {
        /// Node.
        node: String,
    },
}

impl std::fmt::Display for TripCause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Cap { wanted, cap } => {
                write!(f, "{wanted} nodes would be held, {cap} may be: likelier one fault of the network")
            }
            Self::Late { node } => write!(f, "no result in time of a write to {node}"),
            Self::Overtaken { node } => write!(f, "another reason stood at {node} after the write"),
        }
    }
}

/// The record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ledger {
    /// Own holds by node.
    pub holds: BTreeMap<String, Hold>,
    /// When a hold of a node ended, Unix milliseconds: earlier runs are not evidence against it any more.
    pub released: BTreeMap<String, u64>,
    /// The circuit breaker, if it is open.
    pub breaker: Option<Trip>,
}

impl Ledger {
    /// Forgets the holds that the scheduler does not show any more: a person, or another program, ended them
    /// or took them over. Gives their nodes.
    pub fn reconcile(&mut self, nodes: &[Node], reservations: &[Reservation], now_ms: u64) -> Vec<String> {
        let find = |name: &str| nodes.iter().find(|node| node.name == name);
        let gone: Vec<String> = self
            .holds
            .iter()
            .filter(|(name, hold)| !hold.stands(find(name), name, reservations))
            .map(|(name, _)| name.clone())
            .collect();
        for name in &gone {
            self.forget(name, now_ms);
        }
        gone
    }

    pub(crate) fn forget(&mut self, node: &str, now_ms: u64) {
        self.holds.remove(node);
        self.released.insert(node.to_owned(), now_ms);
    }

    pub(crate) fn trip(&mut self, at_ms: u64, cause: TripCause) {
        // The first cause is what a person has to check.
        self.breaker.get_or_insert(Trip { at_ms, cause });
    }
}
