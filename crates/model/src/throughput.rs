//! What a round of throughput of a watch showed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::inventory::{HostName, Layer};

/// What one host sent to another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PairThroughput {
    /// Who sent.
    pub from: HostName,
    /// Who received.
    pub to: HostName,
    /// Over which addresses.
    pub layer: Layer,
    /// bit/s.
    pub throughput_bps: f64,
}

/// A host whose links were in use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BusyHost {
    /// Which.
    pub host: HostName,
    /// Its busiest device.
    pub device: String,
    /// What that moved in its busier direction, bit/s.
    pub rate_bps: f64,
}

/// What a round showed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThroughputRound {
    /// Pairs that were measured, each direction by itself.
    pub seen: Vec<PairThroughput>,
    /// Hosts with which nothing was measured because their links were in use, each time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub busy: Vec<BusyHost>,
    /// Why a pair was not measured otherwise, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}
