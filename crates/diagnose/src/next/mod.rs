//! Stage 7, `tests`: which measurement would decide what the findings leave open, as tests and in words.

mod ask;
mod decide;
mod longer;

pub(crate) use ask::asked;
pub use ask::commands;
pub(crate) use decide::{add_new, next, tests};
pub(crate) use longer::{tests as longer, time as longer_time};
