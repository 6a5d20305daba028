//! What transfers show by themselves, without a ceiling to compare them with: the facts; their sentences are
//! written by the reports.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::inventory::{HostName, Layer};

/// One symptom of one ordered pair.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Symptom {
    /// Sender.
    pub from: HostName,
    /// Receiver.
    pub to: HostName,
    /// Layer.
    pub layer: Layer,
    /// What it shows.
    pub sign: Sign,
}

/// What a transfer shows. The clearest stand first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sign {
    /// One CPU of an end is busy all the time.
    CoreFull {
        /// The end.
        host: HostName,
        /// Share of the time, 0 to 1.
        busy: f64,
        /// What was reached, bit/s.
        bps: f64,
    },
    /// What may be in flight, over the RTT, is what was reached.
    Window {
        /// Bytes that may be in flight.
        window_bytes: f64,
        /// RTT, microseconds.
        rtt_us: f64,
        /// What was reached, bit/s.
        bps: f64,
    },
    /// The throughput jumps between two levels, bit/s.
    TwoLevels {
        /// The upper one.
        high: f64,
        /// The lower one.
        low: f64,
    },
    /// Nothing gets through in a share of the intervals.
    Standstill {
        /// That share, 0 to 1.
        share: f64,
    },
    /// Fast at first, then a steady lower rate: a bucket, a credit or a cache was used up.
    Burst {
        /// At first, bit/s.
        first_bps: f64,
        /// From then on, bit/s.
        bps: f64,
        /// How long it was fast, seconds.
        after_s: f64,
    },
    /// A share of the pings was not answered.
    Unanswered {
        /// That share, 0 to 1.
        share: f64,
    },
    /// Pings that are answered, and take longer than any path of such a length.
    SlowAnswers {
        /// RTT of the middle one, microseconds.
        rtt_us: f64,
    },
    /// The sender's own kernel refuses larger packets.
    LocalMtu {
        /// Size of a packet that it refused, bytes.
        refused_bytes: u32,
        /// The MTU that it reports, bytes.
        mtu_bytes: Option<u32>,
    },
    /// Many segments are sent again.
    Resent {
        /// Segments per second.
        per_s: f64,
        /// Their share of all segments, 0 to 1.
        share: f64,
    },
    /// The opposite direction is faster.
    OneDirection {
        /// This one, bit/s.
        bps: f64,
        /// The other one, bit/s.
        back_bps: f64,
    },
    /// Several streams reach more than one.
    OneStream {
        /// One, bit/s.
        bps: f64,
        /// Several together, bit/s.
        several_bps: f64,
    },
    /// It was measured under different conditions, in their order: each with its rate, bit/s.
    Conditions(Vec<(String, f64)>),
    /// Less than what the link carries whose speed the text states.
    BelowLink {
        /// What was reached, bit/s.
        bps: f64,
        /// What a full link carries, bit/s.
        link_bps: f64,
    },
    /// A rate that no port has, bit/s.
    NoPort {
        /// What was reached.
        bps: f64,
    },
    /// The rate of a full port: no symptom.
    FullPort {
        /// What was reached, bit/s.
        bps: f64,
        /// Speed of such a port, bit/s.
        link_bps: f64,
    },
}

impl Sign {
    /// Position among the signs: the clearest are first.
    #[must_use]
    pub fn rank(&self) -> usize {
        match self {
            Self::CoreFull { .. } => 0,
            Self::Window { .. } => 1,
            Self::Burst { .. } => 2,
            Self::TwoLevels { .. } => 3,
            Self::Standstill { .. } => 4,
            Self::Unanswered { .. } => 5,
            Self::OneDirection { .. } => 6,
            Self::OneStream { .. } => 7,
            Self::Conditions(_) => 8,
            Self::BelowLink { .. } => 9,
            Self::Resent { .. } => 10,
            Self::SlowAnswers { .. } => 11,
            Self::NoPort { .. } => 12,
            Self::LocalMtu { .. } => 13,
            Self::FullPort { .. } => 14,
        }
    }

    /// Whether something is wrong.
    #[must_use]
    pub fn is_fault(&self) -> bool {
        !matches!(self, Self::FullPort { .. } | Self::LocalMtu { .. })
    }
}
