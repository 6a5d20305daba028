//! A queue before a hypervisor's uplink that is far too long, and senders that fill whatever queue there is.

use linerate_model::finding::Direction;

use super::fault::{Fault, FaultInfo, FaultTarget};
use crate::damage::{ClusterMachine, Damage};
use crate::error::Result;
use crate::wire::Toward;

const QUEUE_BYTES: u64 = 60_000_000;
const CONGESTION_CONTROL: &str = "net.ipv4.tcp_congestion_control";

pub(super) struct Bufferbloat;

impl Fault for Bufferbloat {
    fn about(&self) -> &FaultInfo {
        static ABOUT: FaultInfo = FaultInfo::hypervisor(
            "bufferbloat",
            "bufferbloat",
            "the queue into a hypervisor holds 60 MB: the RTT grows without end under load",
            &[Direction::Rx],
        )
        .in_the_network();
        &ABOUT
    }

    fn inject(&self, damage: &mut Damage<'_>, target: &FaultTarget, _strength: f64) -> Result<()> {
        let hypervisor = damage.cluster.topology.hypervisor(target.hypervisor()?)?;
        damage.wire(hypervisor, Toward::Hypervisor, |s| s.queue_bytes = QUEUE_BYTES)?;
        // A queue builds up before the slowest wire of a path. Without this it would be the first one, that
        // of the sender, wherever the receiver is as fast or faster.
        let topology = &damage.cluster.topology;
        let fastest =
            (0..topology.hypervisors.len()).map(|h| topology.uplink_of(h).rate_mbit).max().unwrap_or(0);
        for sender in 0..damage.cluster.hypervisors.len() {
            damage.wire(sender, Toward::Core, |s| {
                s.rate_bps = u64::from(fastest) * 1_000_000 * 5 / 2;
                // Bursts pass; at this rate nothing of them stays.
                s.queue_bytes *= 8;
            })?;
        }
        let_all_senders_fill_queues(damage)
    }
}

/// bbr leaves long queues empty and does not mind short ones. Where it is the default, all hosts get the
/// common behaviour of filling them: the same on every host, so that it is no difference between them.
pub(super) fn let_all_senders_fill_queues(damage: &mut Damage<'_>) -> Result<()> {
    for index in 0..damage.cluster.hosts.len() {
        if damage.cluster.hosts[index].1.read_sysctl(CONGESTION_CONTROL)? == "bbr" {
            damage.sysctl(ClusterMachine::Host(index), CONGESTION_CONTROL, "reno")?;
        }
    }
    Ok(())
}
