//! The kept set: settings that were kept, by hosts, in one TOML text that can live in git or in the database
//! of a team, and their state.
//!
//! [`set`] reads the text and adds to it, `revision` numbers it, `cohort` finds the settings of a host,
//! [`compare()`] compares them with its facts. What is not kept yet stands beside it: [`profile`] compares a
//! published tuning with a host, [`rollout`] carries a proven change to further hosts in waves. Texts and
//! facts in, rows out; reads and writes nothing.
#![deny(missing_docs)]

mod cohort;
mod compare;
mod error;
pub mod profile;
mod revision;
pub mod rollout;
pub mod set;

pub use cohort::{ProfileValues, of_host, prefixes};
pub use compare::{Known, PutBack, compare, unreachable};
pub use error::KeptError;
pub use revision::{revision_of, with_revision};
pub use set::KeptSet;
