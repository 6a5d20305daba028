//! What a UDP flow is asked for beyond its rate, and what its receiver saw of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;

/// Whether the kernel may cut one large write into datagrams (`UDP_SEGMENT`) and glue datagrams for one read
/// (`UDP_GRO`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Offload {
    /// Where the kernel can and where it does no harm: not in a paced flow whose bursts would be its own.
    #[default]
    Auto,
    /// Segments are cut by the kernel, but each datagram is read alone: real packets, as small ones should be
    /// measured.
    SendOnly,
    /// Each datagram is written and read alone.
    Off,
}

/// Specs of a UDP flow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UdpOptions {
    /// As fast as the sender can: the rate is not looked at.
    #[serde(default)]
    pub flat_out: bool,
    /// Segmentation offload.
    #[serde(default)]
    pub offload: Offload,
}

impl UdpOptions {
    /// Whether nothing special is wanted.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

/// How a UDP flow went at one end.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UdpFlow {
    /// Interarrival jitter as RFC 3550, section 6.4.1, smooths it (1/16), microseconds; at its highest and at
    /// the end. Receiver only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter_us: Option<(f64, f64)>,
    /// Change of the one-way delay, nanoseconds above the fastest datagram of the flow. The clocks of the
    /// ends need not agree; what they drift apart during the flow (at most some tens of microseconds per
    /// second) is in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_change_ns: Option<Histogram>,
    /// Datagrams lost in a row, by length: each gap in the numbers counts once, at the end of the flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gaps: Option<Histogram>,
    /// System calls or trains that carried the datagrams at this end: one each without segmentation offload.
    #[serde(default)]
    pub units: u64,
    /// Segmentation offload that was in use at this end: `gso`, `gro`, or nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offload: Option<String>,
    /// Datagrams of one burst at most; sender only.
    #[serde(default)]
    pub train: u32,
    /// Datagrams that were left out because the sender was late; sender only.
    #[serde(default)]
    pub skipped: u64,
    /// Receive buffer in force, bytes as the kernel counts them; receiver only.
    #[serde(default)]
    pub receive_buffer_bytes: u64,
}
