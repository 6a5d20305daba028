//! Accuracy of `linerate`: faults at random targets, calibration, simulated clusters, other methods.
//!
//! In: labs, kept runs, sizes of clusters. Out: records, tables, maps to probabilities. It breaks nothing
//! itself: the lab does, and `linerate` is a black box to it. It is part of no installation.

mod benign;
pub mod command;
pub mod compare;
pub mod drawn;
pub mod fit;
pub mod guess;
pub mod keep;
pub mod leave_out;
mod methods;
pub mod options;
pub mod over_time;
mod picture;
mod plan;
pub mod record;
pub mod reliability;
pub mod rules;
pub mod run;
pub mod simulate;
mod stolen;
pub mod table;
