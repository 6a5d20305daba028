//! Trials: a remedy of a diagnosis in; its effect out, with the old values back or, when asked for and
//! proven, kept for good. Never writes a setting itself: nodes do, and undo by themselves when nobody
//! confirms.
//!
//! [`choose`] picks remedy and pairs, [`sweep`] makes trials of settings without a finding,
//! [`profile`] of the groups of a profile, [`rollout`] of what was proven elsewhere, [`response`] is what is
//! measured, [`machine`] is the order of the steps as a pure state machine, [`drive`] carries it out
//! through [`drive::HostActions`], [`fleet`] does them on real nodes.

pub mod choose;
pub mod drive;
pub mod fleet;
pub mod machine;
pub mod profile;
pub mod response;
pub mod rollout;
pub mod sweep;

#[cfg(test)]
mod simulated;
#[cfg(test)]
mod storage_tests;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use choose::TrialOptions;
pub use drive::{keep, run, undo};
pub use fleet::FleetActions;
