//! Volumes, replicas, durability and audits: plans for volumes over many drives, the states and moves of
//! DRBD, what a power cut broke, and what an audit of a folder means.
//!
//! Pure: facts, texts of tools and requests come in; plans, steps, alarms and sentences go out. It runs no
//! command, reads no file and knows nothing of the network.
#![deny(missing_docs)]

pub mod audit;
pub mod drbd;
pub mod durability;
pub mod plan;
