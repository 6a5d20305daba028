//! What a measured metric is called, its unit, and which direction of it is good.

use crate::finding::Metric;
use crate::units::MetricUnit;

impl Metric {
    /// Name for tables and sentences.
    pub fn label(self) -> &'static str {
        match self {
            Self::Throughput => "TCP throughput",
            Self::Loss => "UDP datagrams lost",
            Self::Retransmits => "retransmits",
            Self::RttIdle => "RTT, idle",
            Self::RttLoaded => "RTT under load",
            Self::Reordering => "datagrams out of order or twice",
            Self::Stalls => "longest standstill",
            Self::CpuCost => "CPU cost",
            Self::PathMtu => "packet sizes that arrive",
            Self::TwoState => "throughput that jumps between two levels",
            Self::Storage => "storage throughput",
            Self::Setting => "a setting",
        }
    }

    /// Unit of its values in a trial. A finding of a setting has a share.
    pub fn unit(self) -> MetricUnit {
        match self {
            Self::Throughput | Self::TwoState | Self::Setting => MetricUnit::BitPerSecond,
            Self::Loss | Self::Reordering => MetricUnit::Share,
            Self::PathMtu => MetricUnit::Bytes,
            Self::Retransmits => MetricUnit::PerSecond,
            Self::RttIdle | Self::RttLoaded | Self::Stalls => MetricUnit::Micros,
            Self::CpuCost => MetricUnit::CpuPerGigabyte,
            Self::Storage => MetricUnit::BytePerSecond,
        }
    }

    /// Whether a higher value is better.
    pub fn more_is_better(self) -> bool {
        matches!(self, Self::Throughput | Self::TwoState | Self::Setting | Self::PathMtu | Self::Storage)
    }
}
