//! A host whose processes get next to no CPU, as on an overcommitted hypervisor or in a container with a tight limit.

use linerate_model::finding::Direction;

use super::{Fault, Place, Truth};
use crate::cgroup::CpuQuota;
use crate::damage::Damage;
use crate::error::Result;
use crate::topology::Topology;

pub(super) struct CpuStarved;

/// 1 % of one CPU: less than a stream at the rate of the uplinks needs. The kernel takes no quota below 1 ms.
const QUOTA_US: u32 = 1_000;
const PERIOD_US: u32 = 100_000;

impl Fault for CpuStarved {
    fn name(&self) -> &'static str {
        "cpu-starved"
    }

    fn cause(&self) -> &'static str {
        "cpu-starved"
    }

    fn summary(&self) -> &'static str {
        "the processes of one host share 1 % of a CPU"
    }

    fn needs_root(&self) -> bool {
        true
    }

    fn outside_the_hosts(&self) -> bool {
        true
    }

    fn places(&self, topology: &Topology) -> Vec<Place> {
        Place::all_hosts(topology)
    }

    fn inject(&self, damage: &mut Damage<'_>, place: &Place, _strength: f64) -> Result<()> {
        let (_, namespace) = damage.cluster.host(place.host()?)?;
        let quota = CpuQuota::start(namespace, QUOTA_US, PERIOD_US)?;
        damage.step(
            |_| Ok(()),
            move |_| {
                drop(quota);
                Ok(())
            },
        )
    }

    fn truth(&self, topology: &Topology, place: &Place) -> Truth {
        Truth::host(self, topology, place, &[Direction::Both])
    }
}
