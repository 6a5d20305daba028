//! What a watch does between hosts: who probes whom, when loss is worth an alarm and of what, when a lost
//! session is tried again.
//!
//! In: hosts with their groups, counts of probes, the time. Out: partners, steps to take. Pure: no clock, no
//! I/O, and the same input gives the same output. All numbers are in `rules.rs`.
#![deny(missing_docs)]

mod alarm;
mod evidence;
mod loss;
mod partners;
mod retry;
pub mod rules;

pub use alarm::Step;
pub use loss::{LossWatch, PairLoss};
pub use partners::{Member, partners};
pub use retry::Retry;
