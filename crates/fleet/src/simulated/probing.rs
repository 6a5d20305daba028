//! Simulated nodes that are watched: nothing is sent, and what real ones would have counted is reported.

use std::time::Duration;

use linerate_model::probe::{PROBE_PORTS, PartnerCounts, ProbeReport, ProbeRequest};
use linerate_model::random::Random;

/// A node without losses answers so late.
const COUNTS_AFTER: Duration = Duration::from_secs(10);
/// Datagrams of a partner each second: its probes and its answers.
const ARRIVE_PER_S: f64 = 2.0;

/// What a node has of its probes.
#[derive(Default)]
pub(super) struct Probing {
    partners: Vec<u32>,
    /// Up to when RTTs were reported, milliseconds.
    reported_ms: u64,
}

impl Probing {
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
