//! The same wrong sysctl on every host: a default, not a difference. No host stands out; everything is slower
//! than it could be.

use super::fault::{Fault, FaultInfo, FaultTarget};
use super::host_sysctl::{self, HostSysctl};
use crate::damage::{ClusterMachine, Damage};
use crate::error::Result;

pub(super) struct Everywhere {
    about: FaultInfo,
    of: &'static HostSysctl,
}

/// Receive buffers.
pub(super) static SMALL_RMEM: Everywhere = Everywhere {
    about: FaultInfo::everywhere(
        "small-rmem-everywhere",
        host_sysctl::SMALL_RMEM.about.cause,
        "tcp_rmem of every host ends at 24 kB, as a shared image would have it",
    ),
    of: &host_sysctl::SMALL_RMEM,
};

/// Send buffers.
pub(super) static SMALL_WMEM: Everywhere = Everywhere {
    about: FaultInfo::everywhere(
        "small-wmem-everywhere",
        host_sysctl::SMALL_WMEM.about.cause,
        "tcp_wmem of every host ends at 16 kB, as a shared image would have it",
    ),
    of: &host_sysctl::SMALL_WMEM,
};

impl Fault for Everywhere {
    fn about(&self) -> &FaultInfo {
        &self.about
    }

    fn inject(&self, damage: &mut Damage<'_>, _target: &FaultTarget, _strength: f64) -> Result<()> {
        (0..damage.cluster.hosts.len()).try_for_each(|host| self.of.set(damage, ClusterMachine::Host(host)))
    }
}
