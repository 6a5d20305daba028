//! What is measured, and how it comes back.

use linerate_model::finding::{Direction, Metric, Suspect};
use linerate_model::inventory::Layer;
use serde::{Deserialize, Serialize};

/// What a series is of. Its unit is that of the metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeriesKey {
    /// Name of the cluster.
    pub cluster: String,
    /// Host or pair.
    pub suspect: Suspect,
    /// Direction of the traffic.
    pub direction: Direction,
    /// Layer.
    pub layer: Layer,
    /// What is measured.
    pub metric: Metric,
}

/// A series of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeriesId(pub(crate) i64);

/// The measured minutes of a slot, in the unit of the series, each kept to a quarter of a percent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Smallest.
    pub min: f64,
    /// Median; the lower of two.
    pub median: f64,
    /// Largest.
    pub max: f64,
    /// Minutes that were measured.
    pub count: u16,
}

/// A part of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HistoryPoint {
    /// Start, Unix milliseconds.
    pub start_ms: u64,
    /// Length, milliseconds.
    pub span_ms: u64,
    /// What was measured; none where nothing was.
    pub measured: Option<Summary>,
}
