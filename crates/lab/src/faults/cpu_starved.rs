//! A host whose processes get next to no CPU, as on an overcommitted hypervisor or in a container with a
//! tight limit.

use linerate_model::finding::Direction;

use super::fault::{Fault, FaultInfo, FaultTarget};
use crate::cgroup::CpuQuota;
use crate::damage::Damage;
use crate::error::Result;

pub(super) struct CpuStarved;

/// 1 % of one CPU: less than a stream at the rate of the uplinks needs. The kernel takes no quota below 1 ms.
const QUOTA_US: u32 = 1_000;
const PERIOD_US: u32 = 100_000;

impl Fault for CpuStarved {
    fn about(&self) -> &FaultInfo {
        static ABOUT: FaultInfo = FaultInfo::host(
            "cpu-starved",
            "cpu-starved",
            "the processes of one host share 1 % of a CPU",
            &[Direction::Both],
        )
        .in_the_network()
        .root_only();
        &ABOUT
    }

    fn inject(&self, damage: &mut Damage<'_>, target: &FaultTarget, _strength: f64) -> Result<()> {
        let (_, namespace) = damage.cluster.host(target.host()?)?;
        let quota = CpuQuota::start(namespace, QUOTA_US, PERIOD_US)?;
        damage.step(
            |_| Ok(()),
            move |_| {
                drop(quota);
                Ok(())
            },
        )
    }
}
