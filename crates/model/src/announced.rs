//! What a survey announces before it measures: how long each link is busy, and how much it carries at most.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The load of a survey, announced before it starts. Nothing above it is sent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Announcement {
    /// Share of each link that tests may use, 0 to 1; `None`: as fast as the path goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// Share of each link that the payload of a transfer is paced to, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<f64>,
    /// Rate that is assumed for a link of unknown speed, bit/s.
    pub assumed_bps: f64,
    /// Every link that carries tests: those of hosts, then the uplinks of groups.
    pub links: Vec<LinkLoad>,
}

/// What one link carries, both directions together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinkLoad {
    /// Host, or group of an uplink.
    pub of: String,
    /// Whether it is the uplink of a group.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_uplink: bool,
    /// Speed, bit/s; `None` where it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bps: Option<f64>,
    /// Seconds with a test on it, when nothing has to be repeated.
    pub planned_s: f64,
    /// Bytes on the wire in that time, at most.
    pub planned_bytes: u64,
    /// Seconds with a test on it at most, with repetitions and the second stage.
    pub most_s: f64,
    /// Bytes on the wire at most, with those.
    pub most_bytes: u64,
}

impl Announcement {
    /// The link that is busy longest.
    #[must_use]
    pub fn busiest(&self) -> Option<&LinkLoad> {
        self.links.iter().max_by(|a, b| a.most_s.total_cmp(&b.most_s))
    }

    /// The link that carries most.
    #[must_use]
    pub fn fullest(&self) -> Option<&LinkLoad> {
        self.links.iter().max_by_key(|link| link.most_bytes)
    }

    /// Hosts whose link has no known speed.
    pub fn unknown(&self) -> impl Iterator<Item = &str> {
        self.links.iter().filter(|link| link.bps.is_none() && !link.is_uplink).map(|link| link.of.as_str())
    }
}
