//! Requests and answers, one after the other, over TCP and UDP, both ends blocking or spinning, idle and
//! loaded.
//!
//! What comes in: a list of phases. What goes out: per phase a histogram of all round trips and their course.
//! One control connection carries the order of phases and the requests over TCP; datagrams have a socket of
//! their own; the load is the load `tcp`, from the same sender to the same receiver. A request is never sent
//! before the last one is answered or given up, and never sent again.

mod answerer;
mod asker;
mod background;
pub(crate) mod protocol;

use std::time::Instant;

use linerate_model::latency::LatencyPlan;
use linerate_model::load::{LoadReport, Role, TestKind};

use crate::job::{Job, LoadError};
use crate::load::Load;

/// The load `latency`.
pub(crate) struct Latency;

const PHASES_MAX: usize = 16;
/// Longest phase: ten minutes.
const TIME_MAX_MS: u32 = 600_000;
/// A request and its answer fit into one packet, so that a round trip is one.
const PAYLOAD_MAX: u16 = 1200;
impl Load for Latency {
    fn name(&self) -> &'static str {
        "latency"
    }

    fn run(&self, job: &Job<'_>, report: &mut LoadReport) -> Result<(), LoadError> {
        let TestKind::Latency(plan) = &job.spec.kind else {
            return Err(LoadError::Unknown { name: "latency" });
        };
        check(plan)?;
        let begun = Instant::now();
        let result = job.account(|| match job.spec.role {
            Role::Receiver => answerer::answer(job, plan, report),
            Role::Sender { peer } => asker::ask(job, plan, peer, report),
        });
        report.elapsed_s = begun.elapsed().as_secs_f64();
        result
    }
}

fn check(plan: &LatencyPlan) -> Result<(), LoadError> {
    let wrong = |what, value: usize, limit| Err(LoadError::Spec { what, value: value as f64, limit });
    if plan.phases.is_empty() || plan.phases.len() > PHASES_MAX {
        return wrong("the number of phases", plan.phases.len(), "1 to 16");
    }
    if !(1..=PAYLOAD_MAX).contains(&plan.payload_bytes) {
        return wrong("payload_bytes", plan.payload_bytes.into(), "1 to 1200");
    }
    if plan.phase_ms > TIME_MAX_MS || plan.settle_ms > TIME_MAX_MS {
        return wrong("phase_ms or settle_ms", plan.phase_ms.max(plan.settle_ms) as usize, "at most 600,000");
    }
    if plan.phases.iter().any(|phase| phase.loaded) && !(1..=64).contains(&plan.load_streams) {
        return wrong("load_streams", plan.load_streams.into(), "1 to 64");
    }
    Ok(())
}
