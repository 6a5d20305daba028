//! Everything that can be broken in guests, each with the truth about it: which device of which guest, and what is wrong with it.
//!
//! In: a stage that runs, and a place in it. Out: damage, and its end. A new fault is one file (or one entry of a table of like faults) and
//! one line in [`ALL`].

mod drive;
mod replica;

use std::fmt;

use super::lab::VmLab;
use super::stages::{Said, Stage};
use super::topology::VmTopology;
use crate::error::{LabError, Result};

/// All faults.
pub static ALL: &[&dyn VmFault] = &[
    &drive::SLOW_DRIVE,
    &drive::LATE_DRIVE,
    &drive::FAILED_LEG,
    &replica::SMALL_LOG,
    &replica::BARRIER,
    &replica::THROTTLED,
    &replica::SPLIT_BRAIN,
    &replica::DIFFERS,
    &replica::FULL,
];

/// A drive of a guest, or what stands on its drives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Guest.
    pub guest: String,
    /// Drive, by the name that the lab gave it; a resource by its own.
    pub drive: String,
}

impl fmt::Display for Place {
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
    fn places(&self, topology: &VmTopology) -> Vec<Place>;

    /// Breaks. `strength` from 0 to 1 chooses within the range in which the fault is plain to see.
    ///
    /// # Errors
    /// There is no such place.
    fn inject(&self, lab: &VmLab, place: &Place, strength: f64) -> Result<()>;

    /// Ends it: the guests work as before.
    ///
    /// # Errors
    /// A guest refused something.
    fn heal(&self, lab: &VmLab, place: &Place) -> Result<()>;

    /// What `linerate` has to say, and nothing else.
    ///
    /// # Errors
    /// There is no such place.
    fn truth(&self, topology: &VmTopology, place: &Place) -> Result<Said>;
}

/// The fault of this name.
///
/// # Errors
/// There is none.
pub fn find(name: &str) -> Result<&'static dyn VmFault> {
    ALL.iter().copied().find(|f| f.name() == name).ok_or_else(|| {
        let names: Vec<_> = ALL.iter().map(|f| f.name()).collect();
        LabError::Unknown(format!("no fault {name:?} of guests\nhint: there are {}", names.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_fault_has_a_name_a_stage_and_a_truth_at_every_place() {
        let names: BTreeSet<_> = ALL.iter().map(|f| f.name()).collect();
        assert_eq!(names.len(), ALL.len());
        for fault in ALL {
            assert_eq!(find(fault.name()).unwrap().name(), fault.name());
            let topology = VmTopology::load(fault.stage().lab()).unwrap();
            let places = fault.places(&topology);
            let truths: BTreeSet<_> = places.iter().map(|p| fault.truth(&topology, p).unwrap()).collect();
            assert!(!places.is_empty() && truths.len() == places.len(), "{}", fault.name());
        }
        assert!(find("nonsense").is_err_and(|e| e.to_string().contains("slow-drive")));
    }
}
