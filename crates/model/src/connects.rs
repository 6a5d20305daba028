//! How many connections two hosts set up per second.

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;

/// Connections one after the other in each of several threads: connect, show the token, one byte back, reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectsPlan {
    /// Threads at the sender, each with one connection at a time; 1 to 32.
    pub parallel: u16,
    /// Longest time.
    pub duration_ms: u32,
    /// Most connections in all, at most 20,000: ephemeral ports are a host's own, and the reset at the end
    /// frees them at once, but a broken path must not eat them all.
    pub count_max: u32,
}

/// What one end counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectsEnd {
    /// Connections that showed the token and were answered.
    pub done: u64,
    /// Attempts that failed; sender only.
    #[serde(default)]
    pub failed: u64,
    /// The first reason for a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_failure: Option<String>,
    /// Time from `connect` to the connection, nanoseconds; sender only.
    #[serde(default)]
    pub connect_ns: Histogram,
    /// Time from `connect` to the answer, nanoseconds; sender only.
    #[serde(default)]
    pub whole_ns: Histogram,
}
