//! The transports by which `linerate` reaches the hosts of a lab.
//!
//! In: a running cluster. Out: an inventory, and environment variables of `linerate`. A transport never
//! touches the cluster that is measured; what it needs lies in the lab's folder and goes with it.

mod netns;
pub mod slurm;
pub(crate) mod ssh;
pub mod transport;

use self::transport::LabTransport;
use crate::error::{LabError, Result};

/// All transports, the default first.
pub const TRANSPORTS: &[&dyn LabTransport] = &[&netns::Netns, &ssh::Ssh, &slurm::Slurm];

/// The transport of this name.
pub fn find(name: &str) -> Result<&'static dyn LabTransport> {
    TRANSPORTS.iter().find(|transport| transport.name() == name).copied().ok_or_else(|| {
        let known: Vec<_> = TRANSPORTS.iter().map(|transport| transport.name()).collect();
        LabError::Unknown(format!("no transport {name:?}\nhint: available: {}", known.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transports_have_unique_names() {
        for transport in TRANSPORTS {
            assert_eq!(find(transport.name()).unwrap().name(), transport.name());
        }
        let error = find("pigeon").unwrap_err().to_string();
        assert!(error.contains("pigeon") && error.contains("netns, ssh, slurm"), "{error}");
    }
}
