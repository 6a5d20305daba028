//! Datagrams from sender to receiver, paced or flat out; both ends count.
//!
//! What comes in: payload rate, datagram size, time. What goes out: datagrams sent, and received without
//! duplicates, out of order, twice; jitter and the change of the one-way delay. A paced flow leaves on an
//! absolute schedule in bursts of at most 4 datagrams, at 640 Mbit/s of large ones; faster ones in what 50 us
//! hold. A late sender catches up at twice the rate and leaves out what it missed beyond a few milliseconds:
//! a queue on the path would drop a longer burst. Drops of the receiver's own socket are counted apart from
//! loss on the path.

mod plan;
mod receiver;
mod sender;
mod tally;

use linerate_model::kind::UdpPlan;
use linerate_model::load::{LoadReport, Role};

use self::plan::Plan;
use crate::job::{Job, LoadError};
use crate::load::Load;

/// The load `udp`.
pub(crate) struct Udp;

impl Load for Udp {
    type Plan = UdpPlan;

    fn run(&self, job: &Job<'_>, plan: &UdpPlan, report: &mut LoadReport) -> Result<(), LoadError> {
        let plan = Plan::new(plan);
        job.account(|| match job.spec.role {
            Role::Receiver => receiver::receive(job, plan, report),
            Role::Sender { peer } => sender::send(job, plan, peer, report),
        })
    }
}
