//! Requests and answers, one after the other, over TCP and UDP, both ends blocking or spinning, idle and
//! loaded.
//!
//! What comes in: a list of phases. What goes out: per phase a histogram of all RTTs and their course.
//! One control connection carries the order of phases and the requests over TCP; datagrams have a socket of
//! their own; the load is the load `tcp`, from the same sender to the same receiver. A request is never sent
//! before the last one is answered or given up, and never sent again.

mod answerer;
mod asker;
mod background;
mod free_cpus;
pub(crate) mod protocol;

use linerate_model::kind::LatencyPlan;
use linerate_model::load::{LoadReport, Role};

use crate::job::{Job, LoadError};
use crate::load::Load;

/// The load `latency`.
pub(crate) struct Latency;

impl Load for Latency {
    type Plan = LatencyPlan;

    fn run(&self, job: &Job<'_>, plan: &LatencyPlan, report: &mut LoadReport) -> Result<(), LoadError> {
        job.whole(report, |report| match job.spec.role {
            Role::Receiver => answerer::answer(job, plan, report),
            Role::Sender { peer } => asker::ask(job, plan, peer, report),
        })
    }
}
