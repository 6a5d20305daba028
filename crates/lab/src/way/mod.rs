//! The ways in which `linerate` can reach the hosts of a lab: the list of them.
//!
//! In: a running cluster. Out: an inventory, and what `linerate` has to find in its environment. A way never touches the cluster
//! that is measured; what it needs lies in the lab's folder and goes with it.

mod netns;
pub mod slurm;
pub(crate) mod ssh;

use std::any::Any;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use crate::cluster::Cluster;
use crate::error::{LabError, Result};

/// One way to reach hosts. To add one: a file beside this one and a line in [`WAYS`].
pub trait Way: Sync + std::fmt::Debug {
    /// Name on the command line.
    fn name(&self) -> &'static str;
    /// Makes everything ready for `linerate`.
    ///
    /// # Errors
    /// This machine lacks something for it.
    fn prepare(&self, cluster: &Cluster) -> Result<Reached>;
}

/// All ways, the usual one first.
pub const WAYS: &[&dyn Way] = &[&netns::Netns, &ssh::Ssh, &slurm::Slurm];

/// What `linerate` needs for a lab.
#[derive(Debug, Clone)]
pub struct Reached {
    /// For `linerate survey -i`.
    pub inventory: PathBuf,
    /// Variables of its environment.
    pub environment: Vec<(&'static str, OsString)>,
    /// What has to run meanwhile; it ends with the last copy of this.
    pub running: Option<Arc<dyn Any + Send + Sync>>,
}

/// The way of this name.
pub fn find(name: &str) -> Result<&'static dyn Way> {
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
