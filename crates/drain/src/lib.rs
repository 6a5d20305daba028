//! Which nodes leave a scheduler because of a fault of their own, and when they return.
//!
//! In: runs with their diagnoses (`evidence.rs`), the scheduler's view of its nodes and a ledger of own holds
//! (`ledger.rs`). Out: decisions with their reasons, and writes through the trait [`Scheduler`]
//! (`machine.rs`). Pure but for that trait: no clock, no I/O. A node is held by its state or by a
//! reservation; what others wrote is never replaced, and only own holds are released.
#![deny(missing_docs)]

mod decision;
mod evidence;
mod ledger;
mod machine;
pub mod rules;
mod scheduler;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use decision::{Decision, DrainPlan, Refusal, ResumePlan};
pub use evidence::{Evidence, Explanation, LocatedFault, Seen, Sighting, sightings};
pub use ledger::HoldMeans;
pub use ledger::{Hold, Ledger, Trip, TripCause};
pub use machine::{Applied, Machine, MachineError, NodeOutcome};
pub use scheduler::{CallError, DrainReason, Guarded, Node, Reservation, Scheduler};
