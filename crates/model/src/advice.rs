//! What to do about tuning, computed from what was measured; also what to leave alone.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::inventory::HostName;

/// What a piece of advice asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Advised {
    /// Write this value.
    Change,
    /// Leave it as it is.
    Leave,
    /// Measure this first.
    Measure,
}

/// One direction of a pair beside the window that its hosts allow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BufferWindow {
    /// Sender.
    pub from: HostName,
    /// Receiver.
    pub to: HostName,
    /// RTT under load, us.
    pub rtt_us: f64,
    /// What the pair should reach, bit/s.
    pub ceiling_bps: f64,
    /// What it reaches, bit/s.
    pub measured_bps: f64,
    /// The window for its ceiling, bytes.
    pub needed_bytes: f64,
    /// The tighter one of its limits: `tcp_rmem`, `tcp_wmem`.
    pub limit: String,
    /// Host of the limit.
    pub host: HostName,
    /// The window that it allows, bytes.
    pub allowed_bytes: f64,
    /// What that gives, bit/s.
    pub allowed_bps: f64,
    /// What a link of the pair carries, bit/s of payload.
    #[serde(default)]
    pub link_bps: f64,
}

/// What a piece of advice follows from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The pair that comes nearest to its window, and the hosts that need larger buffers.
    Buffers(Box<BufferWindow>, Vec<HostName>),
    /// Retransmits of a pair at its ceiling.
    Retransmits {
        /// Sender.
        from: HostName,
        /// Receiver.
        to: HostName,
        /// Segments.
        per_s: f64,
        /// Of the ceiling.
        share: f64,
        /// Pairs beside it.
        others: usize,
    },
    /// Dropped packets of a host to which nothing is lost.
    Drops {
        /// Host.
        host: HostName,
        /// Packets.
        per_test: f64,
        /// Hosts beside it.
        others: usize,
    },
}

/// One piece of advice, with its arithmetic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Advice {
    /// What is asked for.
    pub advised: Advised,
    /// What it is about: `tcp buffers`, `retransmits`, `drop counters`.
    pub about: String,
    /// All of it in words; empty until a report writes it.
    pub sentence: String,
    /// The figures that it follows from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// `host key = value` for what is to be written, in words that `sysctl -w` takes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<String>,
    /// What others publish for such hosts, to compare with: text and source. Never a default, nor the reason.
    /// Empty until a report writes it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<String>,
}
