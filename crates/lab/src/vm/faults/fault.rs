//! What a fault of guests is: its name, its targets, what it breaks, and the correct verdict.
//!
//! In: a lab with guests, and a target in it. Out: damage, and its end. It knows no fault by name.

use std::fmt;

use crate::error::Result;
use crate::vm::lab::VmLab;
use crate::vm::stages::{Stage, StageVerdict};
use crate::vm::topology::VmTopology;

/// A drive of a guest, or what stands on its drives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriveTarget {
    /// Guest.
    pub guest: String,
    /// Drive, by the name that the lab gave it; a resource by its own.
    pub drive: String,
}

impl fmt::Display for DriveTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.guest, self.drive)
    }
}

/// A fault that can be injected and healed while guests run.
pub trait VmFault: Sync {
    /// Name on the command line.
    fn name(&self) -> &'static str;

    /// What it does, one line.
    fn summary(&self) -> &'static str;

    /// Stage in which it shows.
    fn stage(&self) -> &'static dyn Stage;

    /// Possible targets.
    fn targets(&self, topology: &VmTopology) -> Vec<DriveTarget>;

    /// Injects the fault. `strength` from 0 to 1 chooses within the range in which it is detectable.
    ///
    /// # Errors
    /// There is no such target.
    fn inject(&self, lab: &VmLab, target: &DriveTarget, strength: f64) -> Result<()>;

    /// Ends it: the guests work as before.
    ///
    /// # Errors
    /// A guest refused something.
    fn heal(&self, lab: &VmLab, target: &DriveTarget) -> Result<()>;

    /// The only correct verdict.
    ///
    /// # Errors
    /// There is no such target.
    fn truth(&self, topology: &VmTopology, target: &DriveTarget) -> Result<StageVerdict>;
}
