//! Series that a time series database kept of hosts, and hosts that stand out among their equals in them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::inventory::HostName;

/// What a database stored of one number of a host; the same intervals for all hosts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StoredSeries {
    /// Host.
    pub host: HostName,
    /// Key of the counter.
    pub key: String,
    /// Begin of the first interval, Unix milliseconds.
    pub start_ms: u64,
    /// Length of an interval, seconds.
    pub every_s: f64,
    /// How many intervals.
    pub intervals: usize,
    /// Growth in each interval; null where nothing was stored. Empty where it is 0 in all of them.
    pub growth: Vec<Option<f64>>,
}

impl StoredSeries {
    /// Growth in an interval; none where nothing was stored.
    #[must_use]
    pub fn at(&self, interval: usize) -> Option<f64> {
        if self.growth.is_empty() {
            return (interval < self.intervals).then_some(0.0);
        }
        self.growth.get(interval).copied().flatten().filter(|value| value.is_finite())
    }

    /// Begin of an interval, Unix milliseconds.
    #[must_use]
    pub fn begin_ms(&self, interval: usize) -> u64 {
        self.start_ms.saturating_add((self.every_s * 1e3 * interval as f64) as u64)
    }
}

/// Unit of a figure that hosts are compared by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OutlierUnit {
    /// A part of a whole, 0 to 1.
    Share,
    /// Events per hour.
    PerHour,
    /// Milliseconds.
    Milliseconds,
}

/// A host that stands out among its equals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostOutlier {
    /// Host.
    pub host: HostName,
    /// Its device; empty where the figure is of the whole host.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub device: String,
    /// Key of the counter.
    pub key: String,
    /// What is compared: `segments sent again`.
    pub figure: String,
    /// Unit of the values.
    pub unit: OutlierUnit,
    /// Median of the host while it stood out.
    pub value: f64,
    /// Median of its equals in that time.
    pub usual: f64,
    /// How many equals.
    pub others: usize,
    /// Begin of the first interval in which it stood out, Unix milliseconds; none where that is the begin of
    /// what was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<u64>,
    /// Begin of the first interval in which it no longer did; none where it still does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<u64>,
    /// Median of the host before; none where nothing is known of before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<f64>,
}
