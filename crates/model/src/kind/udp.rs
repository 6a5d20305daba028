//! Paced UDP from sender to receiver; both ends count.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bulk::{cpu_cost, host_cpu_cost, missing, more_than_sent, rate};
use super::test_plan::{Interference, OutOfLimits, TestPlan, check, ms};
use crate::datagram::UdpOptions;
use crate::load::{LoadReport, Strangers};
use crate::sample::Measurement;

/// A flow of datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UdpPlan {
    /// Payload rate.
    pub rate_bps: f64,
    /// UDP payload of each datagram.
    pub payload_bytes: u16,
    /// Time of the transfer.
    pub duration_ms: u32,
    /// Flat out, segmentation offload.
    #[serde(default, skip_serializing_if = "UdpOptions::is_plain")]
    pub options: UdpOptions,
}

/// What a flow takes beyond its transfer (measured on two busy cores).
const OVERHEAD: Duration = Duration::from_millis(30);
/// Share of the planned datagrams below which a probe of loss is worthless.
const SENT_MIN: f64 = 0.1;
/// Share of the datagrams of a test that may have been dropped because of others: below it the loss is right
/// to its last digit.
const DROPPED_FOR_OTHERS_MAX: f64 = 0.001;

impl UdpPlan {
    /// Paced to a rate, nothing else wanted.
    pub fn paced(rate_bps: f64, payload_bytes: u16, duration_ms: u32) -> Self {
        Self { rate_bps, payload_bytes, duration_ms, options: UdpOptions::default() }
    }

    /// Payload rate that it asks for; `None` for as much as the sender can.
    pub fn asked_bps(&self) -> Option<f64> {
        (!self.options.flat_out).then_some(self.rate_bps)
    }

    /// Payload rate over the whole time of the test: a sender that was late at its end has sent less.
    pub fn sent_bps(&self, tx: &LoadReport) -> Option<f64> {
        let planned_s = if tx.stopped.is_none() { f64::from(self.duration_ms) / 1e3 } else { 0.0 };
        rate(tx.bytes, tx.elapsed_s.max(planned_s))
    }
}

impl TestPlan for UdpPlan {
    fn name() -> &'static str {
        "udp"
    }

    fn title(&self) -> String {
        "UDP loss".to_owned()
    }

    fn runs_with_iperf3(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), OutOfLimits> {
        let within = self.options.flat_out || (1e3..=1e12).contains(&self.rate_bps);
        check(within, "rate_bps", self.rate_bps, "1 kbit/s to 1 Tbit/s")
    }

    fn time_max(&self) -> Duration {
        ms(self.duration_ms)
    }

    fn expected(&self) -> Duration {
        self.time_max() + OVERHEAD
    }

    fn missing(&self, _: &LoadReport, rx: &LoadReport) -> Option<&'static str> {
        missing(rx)
    }

    fn interference(&self, tx: &LoadReport, rx: &LoadReport, met: Strangers) -> Interference {
        let (sent, got) = (tx.udp.unwrap_or_default(), rx.udp.unwrap_or_default());
        let read = met.datagrams as f64 + got.datagrams as f64 + got.duplicates as f64;
        // The kernel does not say which it dropped: in proportion to those that were read.
        let of_test = met.dropped as f64 * (1.0 - met.datagrams as f64 / read.max(1.0));
        let for_others = met.dropped as f64 - of_test;
        let by_datagrams = for_others > DROPPED_FOR_OTHERS_MAX * sent.datagrams as f64;
        Interference { by_datagrams, ..Interference::default() }
    }

    fn read(&self, tx: &LoadReport, rx: &LoadReport, values: &mut Measurement) -> Result<(), String> {
        more_than_sent(tx, rx)?;
        let sent = tx.udp.unwrap_or_default().datagrams;
        let got = rx.udp.unwrap_or_default();
        if sent == 0 || got.datagrams > sent {
            return Err(format!("{} datagrams received but {sent} sent", got.datagrams));
        }
        let asked_bps = self.asked_bps().filter(|bps| *bps > 0.0);
        let bits = f64::from(self.payload_bytes).max(1.0) * 8.0;
        let planned = asked_bps.unwrap_or(0.0) * f64::from(self.duration_ms) / 1e3 / bits;
        // A late sender leaves datagrams out rather than sending them in a burst; with very few the share of
        // the lost says nothing.
        if tx.stopped.is_none() && (sent as f64) < planned * SENT_MIN {
            return Err(format!("only {sent} of about {planned:.0} datagrams could be sent in time"));
        }
        // What the receiver's own socket threw away is lost by the measurement, not by the path.
        let arrived = (got.datagrams + got.kernel_drops.unwrap_or(0)).min(sent);
        values.loss = Some(1.0 - arrived as f64 / sent as f64);
        values.reordered = Some(got.reordered as f64 / got.datagrams.max(1) as f64);
        values.duplicated = Some(got.duplicates as f64 / got.datagrams.max(1) as f64);
        values.throughput_bps = rate(rx.bytes, rx.elapsed_s);
        values.cpu_s_per_gb = cpu_cost(tx, rx);
        values.host_cpu_s_per_gb = host_cpu_cost(tx, rx);
        values.asked_bps = asked_bps;
        values.sent_bps = self.sent_bps(tx);
        Ok(())
    }
}
