//! The measurements that follow alarms, one at a time, between the hosts of the watch: flows of datagrams
//! after an alarm of a loss, requests and answers after one of RTTs.
//!
//! In: pairs to measure. Out: what that showed. Each test has its own deadline.

use std::sync::Arc;

use linerate_fleet::Fleet;
use linerate_model::inventory::{HostName, Inventory, Layer};
use linerate_model::kind::{RttPlan, TestKind, UdpPlan};
use linerate_model::plan::Test;
use linerate_model::sample::Outcome;
use linerate_model::slow::{DecidedRtt, DecidingRtt};
use linerate_model::watch::{DecidedLoss, DecidingFlow, LossVerdict};
use linerate_watch::rules::{DECIDING_BYTES, DECIDING_PER_S};
use linerate_watch::{DecidingPairs, DecidingRtts, decide, decide_rtts};
use tokio::sync::mpsc;

use crate::observe::measure::{self, Patience};

/// Alarms that wait for their measurement; more are reported without one.
const WAITING_MAX: usize = 8;

/// What is to be measured of an alarm.
pub(super) enum DecidingJob {
    /// Flows between these pairs, of so many datagrams each.
    Loss(DecidingPairs, u64),
    /// So many requests between each of these pairs.
    Rtt(DecidingRtts, u16),
}

/// What that showed.
pub(super) enum Decided {
    Loss(DecidedLoss),
    Rtt(DecidedRtt),
}

impl DecidingJob {
    fn is_empty(&self) -> bool {
        match self {
            Self::Loss(pairs, _) => pairs.flows.is_empty(),
            Self::Rtt(pairs, _) => pairs.pairs.is_empty(),
        }
    }

    /// The same without a measurement: why.
    fn unmeasured(&self, reason: String) -> Decided {
        match self {
            Self::Loss(..) => Decided::Loss(unmeasured(reason)),
            Self::Rtt(..) => Decided::Rtt(DecidedRtt::unmeasured(reason)),
        }
    }
}

/// Asks for measurements and receives what they showed.
pub(super) struct Decider {
    jobs: mpsc::Sender<(u64, DecidingJob)>,
    pub(super) decided: mpsc::Receiver<(u64, Decided)>,
}

impl Decider {
    /// Between these hosts.
    pub(super) fn begin(fleet: Arc<Fleet>, inventory: Inventory, hosts: Vec<(HostName, Layer)>) -> Self {
        let (jobs, mut waiting) = mpsc::channel::<(u64, DecidingJob)>(WAITING_MAX);
        let (to_watch, decided) = mpsc::channel(WAITING_MAX);
        let between = Between { fleet, inventory, hosts };
        tokio::spawn(async move {
            while let Some((alarm, job)) = waiting.recv().await {
                let decided = match &job {
                    DecidingJob::Loss(pairs, datagrams) => {
                        Decided::Loss(between.losses(pairs, *datagrams).await)
                    }
                    DecidingJob::Rtt(pairs, requests) => Decided::Rtt(between.rtts(pairs, *requests).await),
                };
                if to_watch.send((alarm, decided)).await.is_err() {
                    return;
                }
            }
        });
        Self { jobs, decided }
    }

    /// Measures when those before it are measured. What is known at once, where it cannot be.
    pub(super) fn ask(&self, alarm: u64, job: DecidingJob) -> Option<Decided> {
        if job.is_empty() {
            return Some(job.unmeasured("no other host is watched".to_owned()));
        }
        let (_, job) = self.jobs.try_send((alarm, job)).err()?.into_inner();
        Some(job.unmeasured(format!("{WAITING_MAX} alarms wait for theirs")))
    }
}

fn unmeasured(reason: String) -> DecidedLoss {
    DecidedLoss { verdict: LossVerdict::NotMeasured, flows: Vec::new(), controls: Vec::new(), reason }
}

/// The hosts of a watch.
struct Between {
    fleet: Arc<Fleet>,
    inventory: Inventory,
    hosts: Vec<(HostName, Layer)>,
}

impl Between {
    /// Runs a test from one host to another.
    async fn run(&self, from: usize, to: usize, kind: TestKind) -> (Test, Outcome) {
        let (from, layer) = &self.hosts[from];
        let test = Test::new(from.clone(), self.hosts[to].0.clone(), *layer, kind);
        let sample = measure::measure(&self.fleet, &self.inventory, &test, Patience::Usual).await;
        (test, sample.outcome)
    }

    async fn losses(&self, pairs: &DecidingPairs, datagrams: u64) -> DecidedLoss {
        let mut decided = unmeasured(String::new());
        let own = pairs.flows.iter().map(|pair| (pair, false));
        for ((from, to), is_control) in own.chain(pairs.controls.iter().map(|pair| (pair, true))) {
            let rate_bps = (DECIDING_PER_S * u64::from(DECIDING_BYTES) * 8) as f64;
            let duration_ms = (datagrams * 1000 / DECIDING_PER_S) as u32;
            let kind = TestKind::from(UdpPlan::paced(rate_bps, DECIDING_BYTES, duration_ms));
            let (test, outcome) = self.run(*from, *to, kind).await;
            match flow(&test, &outcome, datagrams) {
                Ok(flow) if is_control => decided.controls.push(flow),
                Ok(flow) => decided.flows.push(flow),
                Err(reason) if decided.reason.is_empty() => decided.reason = reason,
                Err(_) => {}
            }
        }
        decided.verdict = decide(&decided.flows, &decided.controls);
        decided
    }

    async fn rtts(&self, pairs: &DecidingRtts, requests: u16) -> DecidedRtt {
        let mut decided = DecidedRtt::unmeasured(String::new());
        let own = pairs.pairs.iter().map(|pair| (pair, false));
        for (pair, is_control) in own.chain(pairs.controls.iter().map(|pair| (pair, true))) {
            let kind = TestKind::from(RttPlan { count: requests });
            let (test, outcome) = self.run(pair.from, pair.to, kind).await;
            match rtt(test, &outcome, pair.usual_us) {
                Ok(rtt) if is_control => decided.controls.push(rtt),
                Ok(rtt) => decided.pairs.push(rtt),
                Err(reason) if decided.reason.is_empty() => decided.reason = reason,
                Err(_) => {}
            }
        }
        decided.verdict = decide_rtts(&decided.pairs, &decided.controls);
        decided
    }
}

/// The RTT of a pair, or why it is not known.
fn rtt(test: Test, outcome: &Outcome, usual_us: f64) -> Result<DecidingRtt, String> {
    match outcome {
        Outcome::Measured(measured) => {
            let rtt_us = measured.rtt_idle_us.ok_or("no request was answered")?;
            Ok(DecidingRtt { from: test.from, to: test.to, usual_us, rtt_us })
        }
        Outcome::NothingThrough { .. } => Err("no request was answered".to_owned()),
        Outcome::Invalid { reason } | Outcome::Gap { reason } => Err(reason.clone()),
    }
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
