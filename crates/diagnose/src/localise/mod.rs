//! Where the losses sit: the smallest set of elements that explains the rows of all responses.
//!
//! Rows come in, located faults with their alternatives go out. It knows no facts and no causes.

mod at_times;
mod columns;
mod disturbed;
mod intermittent;
mod join;
mod queue;
mod search;

pub(crate) use columns::{Column, columns};
pub(crate) use search::{Located, locate};
