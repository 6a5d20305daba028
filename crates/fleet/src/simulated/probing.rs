//! Simulated nodes that are watched: nothing is sent, and what real ones would have counted is reported.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use linerate_model::probe::{PROBE_PORTS, PartnerCounts, ProbePartner, ProbeReport, ProbeRequest, RTTS_MAX};
use linerate_model::random::Random;
use tokio::time::{Instant, sleep};

use super::world::World;

/// A node without losses answers so late.
const COUNTS_AFTER: Duration = Duration::from_secs(10);
/// Datagrams of a partner each second: its probes and its answers.
const ARRIVE_PER_S: f64 = 2.0;

/// How often what happened is counted.
const STEP: Duration = Duration::from_secs(1);
/// Noise of an RTT, and of one of [`LATE_ONE_IN`], microseconds.
const NOISE_US: usize = 25;
const LATE_US: usize = 4_000;
const LATE_ONE_IN: usize = 50;

/// What a node has of its probes.
#[derive(Default)]
pub(super) struct Probing {
    /// Of hosts to which something happens.
    counted: Arc<Mutex<Counted>>,
    partners: Vec<u32>,
    /// Up to when RTTs were reported, milliseconds.
    reported_ms: u64,
}

impl Probing {
    /// Where hosts to which something happens count.
    pub(super) fn counted(&self) -> Arc<Mutex<Counted>> {
        Arc::clone(&self.counted)
    }

    /// The answer to a request and how long it takes; `None` where there is nothing to report.
    pub(super) fn report(&mut self, request: &ProbeRequest, now_ms: u64) -> Option<(ProbeReport, Duration)> {
        match request {
            ProbeRequest::Begin(_) => {
                Some((ProbeReport { ports: vec![9; PROBE_PORTS], partners: Vec::new() }, Duration::ZERO))
            }
            ProbeRequest::Partners { partners } => {
                self.partners = partners.iter().map(|partner| partner.number).collect();
                None
            }
            ProbeRequest::Faster { .. } => None,
            ProbeRequest::Counts => {
                let until_ms = now_ms + COUNTS_AFTER.as_millis() as u64;
                let rtts = (until_ms.saturating_sub(self.reported_ms) / 1000).min(20);
                self.reported_ms = until_ms;
                let counts = |number: &u32| PartnerCounts {
                    number: *number,
                    arrived: (until_ms as f64 / 1000.0 * ARRIVE_PER_S) as u64,
                    lost: 0,
                    rtts_us: rtts_us(*number, until_ms, rtts),
                };
                let partners = self.partners.iter().map(counts).collect();
                Some((ProbeReport { ports: Vec::new(), partners }, COUNTS_AFTER))
            }
        }
    }
}

/// RTTs, ascending.
fn rtts_us(number: u32, at_ms: u64, count: u64) -> Vec<u32> {
    let mut random = Random(u64::from(number) << 32 ^ at_ms);
    let mut rtts: Vec<u32> = (0..count).map(|_| 80 + random.below(40) as u32).collect();
    rtts.sort_unstable();
    rtts
}

/// What one host has counted of its partners.
#[derive(Default)]
pub(super) struct Counted {
    partners: Vec<FromPartner>,
    /// Up to when.
    until: Option<Instant>,
    random: Option<Random>,
}

/// What came from a partner.
struct FromPartner {
    /// The partner in its fleet.
    host: usize,
    counts: PartnerCounts,
    /// Datagrams that are not whole yet: sent to here, and probes of our own.
    due: f64,
    probes: f64,
}

/// A host to which something happens, and those that it can probe.
pub(super) struct ProbingHost<'a> {
    pub(super) number: usize,
    pub(super) world: &'a World,
    pub(super) numbers: &'a HashMap<IpAddr, usize>,
    pub(super) random: Random,
}

/// Its answer; `None` where there is nothing to report.
pub(super) async fn answer(
    host: ProbingHost<'_>,
    counted: &Mutex<Counted>,
    request: ProbeRequest,
) -> Option<ProbeReport> {
    let ProbingHost { number, world, numbers, random } = host;
    let lock = || counted.lock().unwrap_or_else(PoisonError::into_inner);
    match request {
        ProbeRequest::Begin(_) => {
            lock().random = Some(random);
            Some(ProbeReport { ports: vec![9; PROBE_PORTS], partners: Vec::new() })
        }
        ProbeRequest::Partners { partners } => {
            lock().probe(numbers, partners);
            None
        }
        ProbeRequest::Faster { per_s, for_ms } => {
            world.faster(number, per_s, for_ms);
            None
        }
        ProbeRequest::Counts => {
            let end = Instant::now() + COUNTS_AFTER;
            // As a real one: at once when something is lost.
            while !lock().pass(world, number) && Instant::now() < end {
                sleep(STEP).await;
            }
            Some(lock().report())
        }
    }
}

impl Counted {
    /// These from now on; what was counted of those that stay stays.
    fn probe(&mut self, numbers: &HashMap<IpAddr, usize>, partners: Vec<ProbePartner>) {
        let mut before = std::mem::take(&mut self.partners);
        for partner in partners {
            let Some(host) = partner.at.first().and_then(|at| numbers.get(&at.ip())).copied() else {
                continue;
            };
            let known = before.iter().position(|one| one.host == host);
            self.partners.push(known.map_or_else(
                || FromPartner {
                    host,
                    counts: PartnerCounts { number: partner.number, ..PartnerCounts::default() },
                    due: 0.0,
                    probes: 0.0,
                },
                |at| before.swap_remove(at),
            ));
        }
    }

    /// Counts what came since the last time; whether anything was lost.
    fn pass(&mut self, world: &World, number: usize) -> bool {
        let now = Instant::now();
        let seconds = self.until.replace(now).map_or(0.0, |until| (now - until).as_secs_f64());
        let Some(random) = &mut self.random else { return false };
        let own_per_s = world.probes_per_s(number);
        let mut has_lost = false;
        for one in &mut self.partners {
            let (to, from) = (world.between(number, one.host), world.between(one.host, number));
            // Its probes, and its answers to those of ours that arrived there.
            one.due += seconds * (world.probes_per_s(one.host) + own_per_s * (1.0 - to.loss));
            one.probes += seconds * own_per_s;
            let rtt_us = world.rtt_us(number, one.host);
            while one.due >= 1.0 {
                one.due -= 1.0;
                let is_lost = from.loss > 0.0 && random.fraction() < from.loss;
                has_lost |= is_lost;
                one.counts.lost += u64::from(is_lost);
                one.counts.arrived += u64::from(!is_lost);
            }
            while one.probes >= 1.0 {
                one.probes -= 1.0;
                let is_answered = random.fraction() < (1.0 - to.loss) * (1.0 - from.loss);
                if is_answered && one.counts.rtts_us.len() < RTTS_MAX {
                    let late = random.below(LATE_ONE_IN) == 0;
                    let noise = random.below(if late { LATE_US } else { NOISE_US });
                    one.counts.rtts_us.push(rtt_us + noise as u32);
                }
            }
        }
        has_lost
    }

    /// So far; RTTs since the last report.
    fn report(&mut self) -> ProbeReport {
        let of = |one: &mut FromPartner| {
            let mut rtts_us = std::mem::take(&mut one.counts.rtts_us);
            rtts_us.sort_unstable();
            PartnerCounts { rtts_us, ..one.counts.clone() }
        };
        ProbeReport { ports: Vec::new(), partners: self.partners.iter_mut().map(of).collect() }
    }
}
