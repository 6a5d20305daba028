//! What a latency test is asked for, and what it found, phase by phase.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;

/// What carries requests and answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Carrier {
    /// One connection without Nagle's delay.
    Tcp,
    /// Datagrams; a lost one is counted, not sent again.
    Udp,
}

/// How both ends wait for the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Waiting {
    /// Asleep until the kernel wakes them: what programs usually do.
    Blocking,
    /// Looking all the time: the path without the cost of waking up. Needs a free CPU at each end.
    Spinning,
}

/// One phase: requests one after the other, each waiting for its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyPhase {
    /// What carries them.
    pub carrier: Carrier,
    /// How both ends wait.
    pub waiting: Waiting,
    /// While bulk TCP runs from the same sender to the same receiver.
    pub loaded: bool,
}

impl std::fmt::Display for LatencyPhase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let carrier = if self.carrier == Carrier::Tcp { "TCP" } else { "UDP" };
        let waiting = if self.waiting == Waiting::Blocking { "blocking" } else { "spinning" };
        write!(f, "{carrier} {waiting}, {}", if self.loaded { "loaded" } else { "idle" })
    }
}

/// What happened in one piece of a phase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyPoint {
    /// End of the piece since the start of the phase, milliseconds.
    pub at_ms: f64,
    /// Answers in it.
    pub answers: u32,
    /// Mean RTT, microseconds.
    pub mean_us: f64,
    /// Slowest RTT, microseconds.
    pub max_us: f64,
}

/// What one phase found, at the sender.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyResult {
    /// Which.
    pub phase: LatencyPhase,
    /// RTTs, nanoseconds.
    pub round_trip_ns: Histogram,
    /// Time from the first request to the last answer, seconds.
    pub elapsed_s: f64,
    /// Datagrams that were not answered in time.
    #[serde(default)]
    pub lost: u64,
    /// CPU time of the sender's thread, seconds.
    #[serde(default)]
    pub cpu_s: f64,
    /// What the load carried meanwhile, bit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_bps: Option<f64>,
    /// At most 100 pieces.
    #[serde(default)]
    pub series: Vec<LatencyPoint>,
    /// Why this phase was not run: an end has no free CPU to spin on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

impl LatencyResult {
    /// Requests answered per second.
    pub fn per_second(&self) -> f64 {
        if self.elapsed_s > 0.0 { self.round_trip_ns.count() as f64 / self.elapsed_s } else { 0.0 }
    }
}
