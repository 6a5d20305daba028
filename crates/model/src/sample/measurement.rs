//! The values that the reports of a test come to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::load::LoadReport;
use crate::path_mtu::MtuProbe;

/// Values of a test that ran. A value that this kind of test does not give, or that imported evidence lacks,
/// is `None`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measurement {
    /// TCP payload received after the start-up was left out, bit/s; for UDP the payload received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_bps: Option<f64>,
    /// Payload rate that the test was paced to, bit/s; `None` for as much as the sender can send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_bps: Option<f64>,
    /// UDP payload that the sender sent, bit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_bps: Option<f64>,
    /// Share of UDP datagrams lost, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// Share of UDP datagrams received out of order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reordered: Option<f64>,
    /// Share of UDP datagrams received twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicated: Option<f64>,
    /// Median RTT on an idle path, microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_idle_us: Option<f64>,
    /// Median smoothed RTT during the transfer, microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_loaded_us: Option<f64>,
    /// Segments retransmitted per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmits_per_s: Option<f64>,
    /// CPU seconds of both ends together per gigabyte of payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_s_per_gb: Option<f64>,
    /// CPU seconds of the whole hosts of both ends per gigabyte of payload: softirq is in it, other work of
    /// the hosts too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_cpu_s_per_gb: Option<f64>,
    /// Bytes that one stream may have in flight, as another tool reported them: its congestion window, or a
    /// socket buffer that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_bytes: Option<f64>,
    /// Maximum segment size as another tool reported it, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mss_bytes: Option<f64>,
    /// Probes of the path MTU.
    #[serde(default)]
    pub mtu: Vec<MtuProbe>,
    /// The sender's own report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tx: Option<Box<LoadReport>>,
    /// The receiver's own report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rx: Option<Box<LoadReport>>,
}

impl Measurement {
    /// How much later than the fastest the latest datagram of a paced flow came, microseconds.
    pub fn latest_us(&self) -> Option<f64> {
        let delay = self.rx.as_ref()?.udp_flow.as_ref()?.delay_change_ns.as_ref()?;
        Some(delay.max()? as f64 / 1e3)
    }
}
