//! The kept set: settings that were kept, by hosts, in one TOML file that can live in git, and their
//! state.
//!
//! [`set`] reads the file and adds to it, `cohort` finds the settings of a host, [`compare()`] compares
//! them with its facts. Texts and facts in, rows out; reads and writes nothing.
#![deny(missing_docs)]

mod cohort;
mod compare;
mod error;
pub mod set;

pub use cohort::{ProfileValues, of_host, prefixes};
pub use compare::{Known, PutBack, compare, unreachable};
pub use error::KeptError;
pub use set::KeptSet;
