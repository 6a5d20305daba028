//! A switch port with next to no buffer, and senders that overrun whatever queue there is.

use linerate_model::finding::Direction;

use super::fault::{Fault, FaultInfo, FaultTarget};
use crate::damage::Damage;
use crate::error::Result;
use crate::wire::Toward;

/// A quarter of what the path holds: about 20 packets. Senders that cut their bursts in the NIC send nearly
/// as many at once.
const QUEUE_BYTES: u64 = 32_000;

pub(super) struct ShortQueue;

impl Fault for ShortQueue {
    fn about(&self) -> &FaultInfo {
        static ABOUT: FaultInfo = FaultInfo::hypervisor(
            "short-queue",
            "queue-too-short",
            "the queue out of a hypervisor holds 32 kB: every burst loses packets",
            &[Direction::Tx],
        )
        .in_the_network();
        &ABOUT
    }

    fn inject(&self, damage: &mut Damage<'_>, target: &FaultTarget, _strength: f64) -> Result<()> {
        let hypervisor = damage.cluster.topology.hypervisor(target.hypervisor()?)?;
        damage.wire(hypervisor, Toward::Core, |s| s.queue_bytes = QUEUE_BYTES)?;
        super::bufferbloat::let_all_senders_fill_queues(damage)
    }
}
