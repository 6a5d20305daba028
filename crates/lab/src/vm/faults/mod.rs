//! Everything that can be broken in guests, each with the truth about it: which device of which guest, and
//! what is wrong with it.
//!
//! In: a running stage, and a target in it. Out: damage, and its end. A new fault is one file (or one entry
//! of a table of like faults) and one line in [`ALL`].

mod drive;
pub mod fault;
mod replica;

use self::fault::VmFault;
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
    use crate::vm::topology::VmTopology;

    #[test]
    fn every_fault_has_a_name_a_stage_and_a_truth_at_every_target() {
        let names: BTreeSet<_> = ALL.iter().map(|f| f.name()).collect();
        assert_eq!(names.len(), ALL.len());
        for fault in ALL {
            assert_eq!(find(fault.name()).unwrap().name(), fault.name());
            let topology = VmTopology::load(fault.stage().lab()).unwrap();
            let targets = fault.targets(&topology);
            let truths: BTreeSet<_> = targets.iter().map(|p| fault.truth(&topology, p).unwrap()).collect();
            assert!(!targets.is_empty() && truths.len() == targets.len(), "{}", fault.name());
        }
        assert!(find("nonsense").is_err_and(|e| e.to_string().contains("slow-drive")));
    }
}
