//! Workloads of guests before a fault is injected, and the command of `linerate` that has to find it.
//!
//! In: a lab whose guests are up. Out: a volume under load, a replicating pair; the arguments of `linerate`,
//! and its verdicts. To add one: a file beside this one; the faults that need it name it.

pub mod drives;
pub mod replica;

use std::fmt;

use serde::Serialize;

use super::lab::VmLab;
use crate::error::Result;

/// What `linerate` reported, or has to report.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct StageVerdict {
    /// Which guest.
    pub host: String,
    /// Which of its devices.
    pub device: String,
    /// What is wrong with it, as the keyword of `linerate`.
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

    /// Builds the workload. Guests have just booted.
    ///
    /// # Errors
    /// A guest refused something.
    fn build(&self, lab: &VmLab) -> Result<()>;

    /// Arguments of `linerate`.
    fn question(&self, lab: &VmLab) -> Vec<String>;

    /// Parses what it printed.
    ///
    /// # Errors
    /// It is not the output of the command.
    fn answer(&self, printed: &str) -> Result<Vec<StageVerdict>>;
}
