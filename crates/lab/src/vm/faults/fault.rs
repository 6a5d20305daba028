//! What a fault of guests is: its name, where it can be put, what it breaks, and what has to be said about
//! it.
//!
//! In: a lab with guests, and a place in it. Out: damage, and its end. It knows no fault by name.

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

/// Something that can be broken and healed while guests run.
pub trait VmFault: Sync {
    /// Name to type.
    fn name(&self) -> &'static str;

    /// What it does, one line.
    fn summary(&self) -> &'static str;

    /// Where it can be shown.
    fn stage(&self) -> &'static dyn Stage;

    /// Where it can be put.
    fn places(&self, topology: &VmTopology) -> Vec<DriveTarget>;

    /// Breaks. `strength` from 0 to 1 chooses within the range in which the fault is plain to see.
    ///
    /// # Errors
    /// There is no such place.
    fn inject(&self, lab: &VmLab, place: &DriveTarget, strength: f64) -> Result<()>;

    /// Ends it: the guests work as before.
    ///
    /// # Errors
    /// A guest refused something.
    fn heal(&self, lab: &VmLab, place: &DriveTarget) -> Result<()>;

    /// What `linerate` has to say, and nothing else.
    ///
    /// # Errors
    /// There is no such place.
    fn truth(&self, topology: &VmTopology, place: &DriveTarget) -> Result<StageVerdict>;
}
