//! What is measured, and how it comes back.

use linerate_model::download::DownloadPath;
use linerate_model::finding::{Direction, Metric, Suspect};
use linerate_model::inventory::Layer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which figure of a minute's measurements a series holds.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Statistic {
    /// The share or the rate itself; of several values their median.
    #[default]
    Typical,
    /// The 95th percentile.
    P95,
}

impl Statistic {
    // By reference for serde.
    #[allow(clippy::trivially_copy_pass_by_ref)]
    fn is_typical(&self) -> bool {
        *self == Self::Typical
    }
}

/// What a series is of. Its unit is that of the metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// Which figure of it.
    #[serde(default, skip_serializing_if = "Statistic::is_typical")]
    pub statistic: Statistic,
}

impl SeriesKey {
    /// The downloads whose rates it has; `None` for one of another kind.
    #[must_use]
    pub fn download(&self) -> Option<DownloadPath> {
        let Suspect::Pair(source, host) = &self.suspect else { return None };
        DownloadPath::of_source(source, host).filter(|_| self.metric == Metric::Throughput)
    }
}

/// A series of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeriesId(pub(crate) i64);

/// The measured minutes of a slot, in the unit of the series, each kept to a quarter of a percent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct SlotSummary {
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
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct HistoryPoint {
    /// Start, Unix milliseconds.
    pub start_ms: u64,
    /// Length, milliseconds.
    pub span_ms: u64,
    /// What was measured; none where nothing was.
    pub measured: Option<SlotSummary>,
}
