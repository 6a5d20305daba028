//! How many connections two hosts set up per second.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;

/// What one end counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
