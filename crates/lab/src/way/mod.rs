//! The ways in which `linerate` can reach the hosts of a lab: the list of them.
//!
//! In: a running cluster. Out: an inventory, and what `linerate` has to find in its environment. A way never
//! touches the cluster that is measured; what it needs lies in the lab's folder and goes with it.

mod netns;
pub mod slurm;
pub(crate) mod ssh;
pub mod transport;

use self::transport::LabTransport;
use crate::error::{LabError, Result};

/// All ways, the usual one first.
pub const WAYS: &[&dyn LabTransport] = &[&netns::Netns, &ssh::Ssh, &slurm::Slurm];

/// The way of this name.
pub fn find(name: &str) -> Result<&'static dyn LabTransport> {
    WAYS.iter().find(|way| way.name() == name).copied().ok_or_else(|| {
        let known: Vec<_> = WAYS.iter().map(|way| way.name()).collect();
        LabError::Unknown(format!("no way {name:?} to the hosts\nhint: known are {}", known.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_have_names_of_their_own() {
        for way in WAYS {
            assert_eq!(find(way.name()).unwrap().name(), way.name());
        }
        let error = find("pigeon").unwrap_err().to_string();
        assert!(error.contains("pigeon") && error.contains("netns, ssh, slurm"), "{error}");
    }
}
