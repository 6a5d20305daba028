//! Stage 3, `rows`: how far off each cell is in each metric, in doublings, against the noise of that metric
//! among comparable cells.

mod options;
mod responses;

pub(crate) use options::{SWITCHES, Switch, ends};
pub(crate) use responses::{Row, are_confirmed, are_refuted, effect, rows, singles, size_limit};
