//! What an operator does over sessions with hosts: surveys, trials, steps that build, watches.
//!
//! In: an inventory, sessions of `linerate-fleet`, requests of a command. Out: snapshots, what became of
//! trials and steps, events of a watch; progress goes to a callback. It prints nothing and reads no command
//! line, and it never writes a setting itself: that is the node's work.

pub mod build;
#[cfg(test)]
#[path = "../../fleet/src/fake_node.rs"]
mod fake_node;
pub mod observe;
pub mod run_id;
pub mod trial;
pub mod watch;
