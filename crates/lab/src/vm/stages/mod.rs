//! What guests are made to run before something is broken, and what `linerate` is asked then.
//!
//! In: a lab whose guests are up. Out: a volume under load, a pair that replicates; the arguments of
//! `linerate`, and its answer as who, what and where. To add one: a file beside this one; the faults that
//! need it name it.

pub mod drives;
pub mod replica;

use std::fmt;

use serde::Serialize;

use super::lab::VmLab;
use crate::error::Result;

/// What `linerate` said, or has to say.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct StageVerdict {
    /// Which guest.
    pub host: String,
    /// Which of its devices.
    pub device: String,
    /// What is wrong with it, by the word that `linerate` uses.
    pub what: String,
}

impl fmt::Display for StageVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} is {}", self.device, self.host, self.what)
    }
}

/// See the file's head.
pub trait Stage: Sync {
    /// Name in tables.
    fn name(&self) -> &'static str;

    /// The lab that is booted for it.
    fn lab(&self) -> &'static str;

    /// Makes everything that is to be broken, and the load on it. Guests have just booted.
    ///
    /// # Errors
    /// A guest refused something.
    fn build(&self, lab: &VmLab) -> Result<()>;

    /// Arguments of `linerate`.
    fn question(&self, lab: &VmLab) -> Vec<String>;

    /// What it printed, as what it said.
    ///
    /// # Errors
    /// That is not what the command prints.
    fn answer(&self, printed: &str) -> Result<Vec<StageVerdict>>;
}
