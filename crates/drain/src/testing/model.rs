//! Slurm as far as it matters for draining, in memory: states, reasons, reservations, boots. What it does was
//! compared with Slurm 22.05 in the lab. In: calls and acts. Out: nodes. Each call is atomic.

use std::collections::BTreeMap;

use super::super::scheduler::{CallError, DrainReason, Guarded, Node, Reservation, Scheduler};
use super::watched::{Others, WatchedAct};

/// What Slurm writes by itself.
const NOT_RESPONDING: &str = "Not responding";
const REBOOTED: &str = "Node unexpectedly rebooted";

/// The model.
#[derive(Debug)]
pub struct ModelSlurm {
    nodes: BTreeMap<String, Node>,
    reservations: BTreeMap<String, Reservation>,
    clock_s: u64,
}

impl ModelSlurm {
    /// Idle nodes `n1`, `n2`, …
    #[must_use]
    pub fn new(nodes: usize) -> Self {
        let node = |number: usize| {
            let name = format!("n{number}");
            (name.clone(), Node { name, state: ["IDLE".to_owned()].into(), reason: None, boot_s: 1 })
        };
        Self { nodes: (1..=nodes).map(node).collect(), reservations: BTreeMap::new(), clock_s: 1000 }
    }

    fn at(&mut self, name: &str) -> Result<&mut Node, CallError> {
        self.nodes.get_mut(name).ok_or_else(|| CallError::Failed(format!("Node {name} not found")))
    }

    fn write(&mut self, name: &str, text: &str, by: &str, flag: &str) {
        let reason = Some(DrainReason { text: text.to_owned(), by: by.to_owned(), at_s: self.clock_s });
        if let Some(node) = self.nodes.get_mut(name) {
            node.state.insert(flag.to_owned());
            node.reason = reason;
        }
    }
}

impl Scheduler for ModelSlurm {
    fn nodes(&mut self) -> Result<Vec<Node>, CallError> {
        Ok(self.nodes.values().cloned().collect())
    }

    fn node(&mut self, name: &str) -> Result<Option<Node>, CallError> {
        Ok(self.nodes.get(name).cloned())
    }

    fn drain(&mut self, expected: &Node, reason: &str) -> Result<Guarded, CallError> {
        if !self.at(&expected.name)?.stands_as(expected) {
            return Ok(Guarded::Changed);
        }
        self.write(&expected.name, reason, "operator", "DRAIN");
        Ok(Guarded::Written)
    }

    fn resume(&mut self, expected: &Node) -> Result<Guarded, CallError> {
        let node = self.at(&expected.name)?;
        if !node.stands_as(expected) {
            return Ok(Guarded::Changed);
        }
        node.state.remove("DRAIN");
        node.reason = None;
        Ok(Guarded::Written)
    }

    fn reservations(&mut self) -> Result<Vec<Reservation>, CallError> {
        Ok(self.reservations.values().cloned().collect())
    }

    fn reserve(&mut self, reservation: &Reservation) -> Result<Guarded, CallError> {
        self.at(&reservation.node)?;
        if self.reservations.contains_key(&reservation.name) {
            return Ok(Guarded::Changed);
        }
        self.reservations.insert(reservation.name.clone(), reservation.clone());
        Ok(Guarded::Written)
    }

    fn release(&mut self, node: &Node, expected: &Reservation) -> Result<Guarded, CallError> {
        let stands = self.at(&node.name)?.stands_as(node);
        if !stands || self.reservations.get(&expected.name) != Some(expected) {
            return Ok(Guarded::Changed);
        }
        self.reservations.remove(&expected.name);
        Ok(Guarded::Written)
    }
}

impl Others for ModelSlurm {
    fn others(&mut self, name: &str, act: &WatchedAct) -> Result<(), CallError> {
        let clock_s = self.clock_s;
        match act {
            WatchedAct::Drain(text) => self.write(name, text, "alice", "DRAIN"),
            WatchedAct::Rename(text) => {
                let reason = DrainReason { text: text.clone(), by: "alice".to_owned(), at_s: clock_s };
                self.at(name)?.reason = Some(reason);
            }
            WatchedAct::Resume => {
                let node = self.at(name)?;
                node.state = ["IDLE".to_owned()].into();
                node.reason = None;
            }
            WatchedAct::Reboot => {
                let node = self.at(name)?;
                node.boot_s = clock_s;
                node.state.remove("NOT_RESPONDING");
                if node.reason.is_none() {
                    self.write(name, REBOOTED, "slurm", "DOWN");
                }
            }
            WatchedAct::Vanish => {
                let node = self.at(name)?;
                node.state.insert("NOT_RESPONDING".to_owned());
                node.state.insert("DOWN".to_owned());
                if node.reason.is_none() {
                    self.write(name, NOT_RESPONDING, "slurm", "DOWN");
                }
            }
            WatchedAct::Return => {
                let node = self.at(name)?;
                node.state.remove("NOT_RESPONDING");
                node.state.remove("DOWN");
                if node.reason.as_ref().is_some_and(|reason| reason.text == NOT_RESPONDING) {
                    node.reason = None;
                }
            }
            WatchedAct::Unreserve => {
                self.reservations.retain(|_, reservation| reservation.node != name);
            }
        }
        Ok(())
    }

    fn set_clock(&mut self, unix_s: u64) {
        self.clock_s = unix_s;
    }
}
