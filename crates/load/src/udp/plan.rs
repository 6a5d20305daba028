//! The numbers of a flow of datagrams: gaps, bursts, and whether the kernel may cut or glue.
//!
//! What comes in: what is asked for. What goes out: a plan.

use std::time::Duration;

use linerate_model::datagram::Offload;
use linerate_model::kind::UdpPlan;
use linerate_sys::datagram::{SEGMENTS_MAX, WRITE_MAX};

use crate::datagram::HEADER_BYTES;

pub(super) const DATA: &str = "udp data";
pub(super) const END: &str = "udp end";

/// Datagrams of one burst of a paced flow, as far as the rate allows it: queues of a switch port or a policer
/// hold more, and one that is lost whole is not mistaken for a loss of its size.
const BURST_MAX: u64 = 4;

/// Bursts need not be closer together than this.
const BURST_GAP: Duration = Duration::from_micros(200);

/// Above this rate of bursts a sleep between them is no longer exact: they grow instead.
const BURST_GAP_MIN: Duration = Duration::from_micros(50);

/// Sequence numbers of a test: 32 MB of bitmap at the receiver.
pub(super) const SEQUENCE_MAX: u64 = 1 << 28;

/// The numbers of a test.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    /// Time from one datagram to the next; `None` flat out.
    pub(super) gap_s: Option<f64>,
    pub(super) payload: usize,
    pub(super) duration: Duration,
    pub(super) offload: Offload,
}

impl Plan {
    pub(super) fn new(asked: &UdpPlan) -> Self {
        // The payload holds at least the header.
        let payload = usize::from(asked.payload_bytes).clamp(HEADER_BYTES, WRITE_MAX);
        let gap_s = asked.asked_bps().map(|bps| payload as f64 * 8.0 / bps);
        let duration = Duration::from_millis(u64::from(asked.duration_ms));
        Self { gap_s, payload, duration, offload: asked.options.offload }
    }

    /// Datagrams of one burst.
    pub(super) fn burst(&self) -> u64 {
        let Some(gap_s) = self.gap_s else { return self.segments_max() as u64 };
        let within = |time: Duration| (time.as_secs_f64() / gap_s) as u64;
        within(BURST_GAP).min(BURST_MAX).max(within(BURST_GAP_MIN)).clamp(1, self.segments_max() as u64)
    }

    /// Datagrams that fit into one write at most.
    pub(super) fn segments_max(&self) -> usize {
        (WRITE_MAX / self.payload).clamp(1, SEGMENTS_MAX)
    }

    /// Whether the kernel may cut the sender's writes: only where a burst is not one of the few datagrams
    /// that a paced flow is allowed, for a queue on the path may lose an uncut train as a whole.
    pub(super) fn cuts(&self) -> bool {
        self.offload != Offload::Off && self.segments_max() > 1 && self.burst() > BURST_MAX
    }

    /// Whether the receiver may take several datagrams glued together.
    pub(super) fn glues(&self) -> bool {
        self.offload == Offload::Auto && self.cuts()
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::datagram::UdpOptions;

    use super::*;
    use linerate_model::kind::TestPlan;

    fn plan(rate_bps: f64, payload_bytes: u16) -> Plan {
        Plan::new(&UdpPlan::paced(rate_bps, payload_bytes, 1))
    }

    #[test]
    fn senseless_numbers_are_refused() {
        let wrong = |rate_bps| UdpPlan::paced(rate_bps, 0, 1).check().is_err();
        assert!(wrong(f64::NAN) && wrong(-1.0) && wrong(f64::INFINITY) && wrong(0.0));
        assert_eq!(plan(1e6, 0).payload, HEADER_BYTES);
    }

    #[test]
    fn a_probe_of_a_survey_sends_few_datagrams_at_a_time() {
        for rate_bps in [2e6, 20e6, 40e6, 200e6] {
            let plan = plan(rate_bps, 1200);
            assert!((1..=BURST_MAX).contains(&plan.burst()) && !plan.cuts() && !plan.glues(), "{rate_bps}");
        }
        assert!(plan(10e9, 1448).cuts() && plan(10e9, 1448).burst() <= SEGMENTS_MAX as u64);
        assert!(!plan(100e9, 60_000).cuts());
    }

    #[test]
    fn offload_can_be_forbidden() {
        let flat = |offload| {
            let options = UdpOptions { flat_out: true, offload };
            let asked = UdpPlan { rate_bps: 0.0, payload_bytes: 64, duration_ms: 1, options };
            asked.check().expect("flat out needs no rate");
            let plan = Plan::new(&asked);
            (plan.cuts(), plan.glues())
        };
        assert_eq!(flat(Offload::Auto), (true, true));
        assert_eq!(flat(Offload::SendOnly), (true, false));
        assert_eq!(flat(Offload::Off), (false, false));
    }
}
