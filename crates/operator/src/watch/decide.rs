//! The measurements that follow alarms, one at a time: flows of datagrams between the hosts of the watch.
//!
//! In: pairs to measure. Out: what the flows showed. Each flow has the deadline of its test.

use std::sync::Arc;

use linerate_fleet::Fleet;
use linerate_model::inventory::{HostName, Inventory, Layer};
use linerate_model::kind::{TestKind, UdpPlan};
use linerate_model::plan::Test;
use linerate_model::sample::Outcome;
use linerate_model::watch::{DecidedLoss, DecidingFlow, LossVerdict};
use linerate_watch::rules::{DECIDING_BYTES, DECIDING_PER_S};
use linerate_watch::{DecidingPairs, decide};
use tokio::sync::mpsc;

use crate::observe::measure::{self, Patience};

/// Alarms that wait for their measurement; more are reported without one.
const WAITING_MAX: usize = 8;

/// What is to be measured of an alarm.
pub(super) struct DecidingJob {
    pub(super) alarm: u64,
    pub(super) pairs: DecidingPairs,
    /// Datagrams of each flow.
    pub(super) datagrams: u64,
}

/// Asks for measurements and receives what they showed.
pub(super) struct Decider {
    jobs: mpsc::Sender<DecidingJob>,
    pub(super) decided: mpsc::Receiver<(u64, DecidedLoss)>,
}

impl Decider {
    /// Between these hosts.
    pub(super) fn begin(fleet: Arc<Fleet>, inventory: Inventory, hosts: Vec<(HostName, Layer)>) -> Self {
        let (jobs, mut waiting) = mpsc::channel::<DecidingJob>(WAITING_MAX);
        let (to_watch, decided) = mpsc::channel(WAITING_MAX);
        tokio::spawn(async move {
            while let Some(job) = waiting.recv().await {
                let measured = measured(&fleet, &inventory, &hosts, &job).await;
                if to_watch.send((job.alarm, measured)).await.is_err() {
                    return;
                }
            }
        });
        Self { jobs, decided }
    }

    /// Measures when those before it are measured. Why not, where it cannot be.
    pub(super) fn ask(&self, job: DecidingJob) -> Result<(), DecidedLoss> {
        if job.pairs.flows.is_empty() {
            return Err(unmeasured("no other host is watched".to_owned()));
        }
        self.jobs.try_send(job).map_err(|_| unmeasured(format!("{WAITING_MAX} alarms wait for theirs")))
    }
}

fn unmeasured(reason: String) -> DecidedLoss {
    DecidedLoss { verdict: LossVerdict::NotMeasured, flows: Vec::new(), controls: Vec::new(), reason }
}

async fn measured(
    fleet: &Fleet,
    inventory: &Inventory,
    hosts: &[(HostName, Layer)],
    job: &DecidingJob,
) -> DecidedLoss {
    let mut decided = unmeasured(String::new());
    let own = job.pairs.flows.iter().map(|pair| (pair, false));
    for ((from, to), is_control) in own.chain(job.pairs.controls.iter().map(|pair| (pair, true))) {
        let rate_bps = (DECIDING_PER_S * u64::from(DECIDING_BYTES) * 8) as f64;
        let duration_ms = (job.datagrams * 1000 / DECIDING_PER_S) as u32;
        let kind = TestKind::from(UdpPlan::paced(rate_bps, DECIDING_BYTES, duration_ms));
        let (from, layer) = &hosts[*from];
        let test = Test::new(from.clone(), hosts[*to].0.clone(), *layer, kind);
        let sample = measure::measure(fleet, inventory, &test, Patience::Usual).await;
        match flow(&test, &sample.outcome, job.datagrams) {
            Ok(flow) if is_control => decided.controls.push(flow),
            Ok(flow) => decided.flows.push(flow),
            Err(reason) if decided.reason.is_empty() => decided.reason = reason,
            Err(_) => {}
        }
    }
    decided.verdict = decide(&decided.flows, &decided.controls);
    decided
}

/// What came of a flow, or why it is not known.
fn flow(test: &Test, outcome: &Outcome, planned: u64) -> Result<DecidingFlow, String> {
    let flow = |sent, lost| DecidingFlow { from: test.from.clone(), to: test.to.clone(), sent, lost };
    match outcome {
        Outcome::Measured(measured) => {
            let sent =
                measured.tx.as_ref().and_then(|tx| tx.udp.as_ref()).map_or(planned, |udp| udp.datagrams);
            let loss = measured.loss.ok_or("its datagrams were not counted")?;
            Ok(flow(sent, (loss * sent as f64).round() as u64))
        }
        Outcome::NothingThrough { .. } => Ok(flow(planned, planned)),
        Outcome::Invalid { reason } | Outcome::Gap { reason } => Err(reason.clone()),
    }
}
