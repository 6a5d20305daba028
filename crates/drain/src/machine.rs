//! The state machine: reads the scheduler, decides, writes, reads back. In: evidence, a ledger, a scheduler.
//! Out: what was planned and done. Before each write the ledger is saved; after a write without a result in
//! time nothing more is written.

use super::decision::{Decision, DrainPlan, Refusal, ResumePlan};
use super::evidence::Evidence;
use super::ledger::{Hold, HoldMeans, Ledger, TripCause};
use super::scheduler::{CallError, DrainReason, Guarded, Node, Reservation, Scheduler};

/// What became of one node.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeOutcome {
    /// Held, or released.
    Done,
    /// Nothing was written.
    Refused(Refusal),
    /// The call failed; nothing was written.
    Failed(String),
    /// No result in time, or another state than the written one: whether it was written is not known.
    Unknown(String),
}

/// A node with what became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// Node.
    pub node: String,
    /// Outcome.
    pub outcome: NodeOutcome,
}

/// Why the machine stopped.
#[derive(Debug, thiserror::Error)]
pub enum MachineError<E: std::error::Error + 'static> {
    /// The scheduler has no result.
    #[error("{0}")]
    Call(#[from] CallError),
    /// The ledger could not be saved; nothing was written after that.
    #[error("the record of own drains cannot be saved")]
    Ledger(#[source] E),
}

/// See the file's head.
pub struct Machine<'a, S, F> {
    scheduler: &'a mut S,
    ledger: Ledger,
    /// Keeps the ledger.
    save: F,
}

/// What the scheduler shows.
struct View {
    nodes: Vec<Node>,
    reservations: Vec<Reservation>,
}

impl<'a, S: Scheduler, E: std::error::Error + 'static, F: FnMut(&Ledger) -> Result<(), E>> Machine<'a, S, F> {
    /// A machine over this scheduler that continues from a ledger.
    pub fn new(scheduler: &'a mut S, ledger: Ledger, save: F) -> Self {
        Self { scheduler, ledger, save }
    }

    /// The ledger as it is now.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Decides which nodes to hold. Writes nothing but the end of own holds into the ledger in memory.
    pub fn plan_drain(&mut self, evidence: &Evidence, now_ms: u64) -> Result<DrainPlan, MachineError<E>> {
        let view = self.view(now_ms)?;
        Ok(DrainPlan::make(&self.ledger, &view.nodes, &view.reservations, evidence, now_ms))
    }

    /// Decides which own holds to release.
    pub fn plan_resume(&mut self, evidence: &Evidence, now_ms: u64) -> Result<ResumePlan, MachineError<E>> {
        let view = self.view(now_ms)?;
        Ok(ResumePlan::make(&self.ledger, &view.nodes, evidence))
    }

    fn view(&mut self, now_ms: u64) -> Result<View, MachineError<E>> {
        let nodes = self.scheduler.nodes()?;
        let reservations = self.scheduler.reservations()?;
        self.ledger.reconcile(&nodes, &reservations, now_ms);
        Ok(View { nodes, reservations })
    }

    /// Holds the nodes of a plan, one by one; stops as soon as the circuit breaker opens.
    pub fn drain(
        &mut self,
        plan: &DrainPlan,
        by: HoldMeans,
        now_ms: u64,
    ) -> Result<Vec<Applied>, MachineError<E>> {
        if let Some(cause) = &plan.trip {
            self.ledger.trip(now_ms, cause.clone());
        }
        self.save()?;
        let mut applied = Vec::new();
        for decision in &plan.hold {
            let outcome = if self.ledger.breaker.is_some() {
                NodeOutcome::Refused(Refusal::Breaker)
            } else {
                self.hold(decision, by, now_ms)?
            };
            applied.push(Applied { node: decision.node.name.clone(), outcome });
        }
        Ok(applied)
    }

    /// Releases the nodes of a plan, one by one.
    pub fn resume(&mut self, plan: &ResumePlan, now_ms: u64) -> Result<Vec<Applied>, MachineError<E>> {
        self.save()?;
        let mut applied = Vec::new();
        for decision in &plan.release {
            let outcome = if self.ledger.breaker.is_some() {
                NodeOutcome::Refused(Refusal::Breaker)
            } else {
                self.release(decision, now_ms)?
            };
            applied.push(Applied { node: decision.node.name.clone(), outcome });
        }
        Ok(applied)
    }

    /// Closes the circuit breaker: only a person asks for it.
    pub fn reset(&mut self) -> Result<(), MachineError<E>> {
        self.ledger.breaker = None;
        self.save()
    }

    fn hold(
        &mut self,
        decision: &Decision,
        by: HoldMeans,
        now_ms: u64,
    ) -> Result<NodeOutcome, MachineError<E>> {
        let name = decision.node.name.clone();
        let hold = Hold {
            by,
            text: decision.text.clone(),
            runs: decision.runs.clone(),
            asked_ms: now_ms,
            confirmed: None,
        };
        let reservation = hold.reservation(&name);
        self.ledger.holds.insert(name.clone(), hold);
        self.save()?;
        let written = match by {
            HoldMeans::State => self.scheduler.drain(&decision.node, &decision.text),
            HoldMeans::Reservation => self.reserve(&decision.node, &reservation),
        };
        match written {
            Ok(Guarded::Written) => {}
            Ok(Guarded::Changed) => {
                self.ledger.holds.remove(&name);
                self.save()?;
                return Ok(NodeOutcome::Refused(Refusal::Changed));
            }
            Err(CallError::Failed(why)) => {
                self.ledger.holds.remove(&name);
                self.save()?;
                return Ok(NodeOutcome::Failed(why));
            }
            // The hold stays in the ledger without a confirmation.
            Err(CallError::Late(why)) => return self.lost(name, why, now_ms),
        }
        let found = match by {
            HoldMeans::State => self.scheduler.node(&name).map(|node| drained_with(node, &decision.text)),
            HoldMeans::Reservation => self.scheduler.reservations().map(|all| {
                let own = DrainReason { text: decision.text.clone(), by: String::new(), at_s: 0 };
                all.contains(&reservation).then_some(own)
            }),
        };
        match found {
            Ok(Some(reason)) => {
                if let Some(hold) = self.ledger.holds.get_mut(&name) {
                    hold.confirmed = Some(reason);
                }
                self.save()?;
                Ok(NodeOutcome::Done)
            }
            Ok(None) => {
                self.ledger.forget(&name, now_ms);
                self.ledger.trip(now_ms, TripCause::Overtaken { node: name });
                self.save()?;
                Ok(NodeOutcome::Unknown("another reason stood there after the write".to_owned()))
            }
            Err(CallError::Late(why) | CallError::Failed(why)) => self.lost(name, why, now_ms),
        }
    }

    /// Makes a reservation for a node that no one else has taken out of work meanwhile.
    fn reserve(&mut self, expected: &Node, reservation: &Reservation) -> Result<Guarded, CallError> {
        match self.scheduler.node(&expected.name)? {
            Some(node) if node.stands_as(expected) => self.scheduler.reserve(reservation),
            _ => Ok(Guarded::Changed),
        }
    }

    fn release(&mut self, decision: &Decision, now_ms: u64) -> Result<NodeOutcome, MachineError<E>> {
        let name = &decision.node.name;
        let Some(hold) = self.ledger.holds.get(name).cloned() else {
            return Ok(NodeOutcome::Refused(Refusal::Changed));
        };
        // Until the end is certain the hold has no confirmation: if this program ends here, or has no result
        // in time, what stands at the node later is not taken for this hold.
        if let Some(hold) = self.ledger.holds.get_mut(name) {
            hold.confirmed = None;
        }
        self.save()?;
        let written = match hold.by {
            HoldMeans::State => self.scheduler.resume(&decision.node),
            HoldMeans::Reservation => self.scheduler.release(&decision.node, &hold.reservation(name)),
        };
        match written {
            Ok(Guarded::Written) => {
                self.ledger.forget(name, now_ms);
                self.save()?;
                Ok(NodeOutcome::Done)
            }
            Ok(Guarded::Changed) => {
                // The next reading shows what stands there.
                self.ledger.holds.insert(name.clone(), hold);
                self.save()?;
                Ok(NodeOutcome::Refused(Refusal::Changed))
            }
            Err(CallError::Failed(why)) => {
                self.ledger.holds.insert(name.clone(), hold);
                self.save()?;
                Ok(NodeOutcome::Failed(why))
            }
            Err(CallError::Late(why)) => self.lost(name.clone(), why, now_ms),
        }
    }

    /// A write without a result: nothing more is written until a person has checked.
    fn lost(&mut self, node: String, why: String, now_ms: u64) -> Result<NodeOutcome, MachineError<E>> {
        self.ledger.trip(now_ms, TripCause::Late { node });
        self.save()?;
        Ok(NodeOutcome::Unknown(why))
    }

    fn save(&mut self) -> Result<(), MachineError<E>> {
        (self.save)(&self.ledger).map_err(MachineError::Ledger)
    }
}

/// The reason of a node that is drained with this text.
fn drained_with(node: Option<Node>, text: &str) -> Option<DrainReason> {
    let node = node.filter(Node::is_drained)?;
    node.reason.filter(|reason| reason.text == text)
}
