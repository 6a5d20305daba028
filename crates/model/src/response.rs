//! What a measured metric and a suspect are called, the unit of the metric, and which direction of it is
//! good.

use crate::finding::{Direction, Metric, Suspect};
use crate::units::MetricUnit;

impl Metric {
    /// Name for tables and sentences.
    pub fn label(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Loss => "UDP loss",
            Self::Retransmits => "retransmits",
            Self::RttIdle => "idle RTT",
            Self::RttLoaded => "RTT under load",
            Self::Reordering => "datagrams out of order or twice",
            Self::Stalls => "longest standstill",
            Self::CpuCost => "CPU cost",
            Self::PathMtu => "path MTU",
            Self::TwoState => "bimodal throughput",
            Self::TcpOptions => "TCP options",
            Self::Storage => "storage throughput",
            Self::Setting => "setting",
        }
    }

    /// Unit of its values in a trial. A finding of a setting has a share.
    pub fn unit(self) -> MetricUnit {
        match self {
            Self::Throughput | Self::TwoState => MetricUnit::BitPerSecond,
            Self::Loss | Self::Reordering | Self::TcpOptions | Self::Setting => MetricUnit::Share,
            Self::PathMtu => MetricUnit::Bytes,
            Self::Retransmits => MetricUnit::PerSecond,
            Self::RttIdle | Self::RttLoaded | Self::Stalls => MetricUnit::Micros,
            Self::CpuCost => MetricUnit::CpuPerGigabyte,
            Self::Storage => MetricUnit::BytePerSecond,
        }
    }

    /// Whether a higher value is better.
    pub fn more_is_better(self) -> bool {
        matches!(self, Self::Throughput | Self::TwoState | Self::PathMtu | Self::TcpOptions | Self::Storage)
    }
}

impl Suspect {
    /// Name for tables and sentences, with the direction of the traffic.
    pub fn label(&self, direction: Direction) -> String {
        let side = match direction {
            Direction::Tx => "what it sends",
            Direction::Rx => "what it receives",
            Direction::Both => "both directions",
        };
        match self {
            Self::Host(h) => format!("host {h}, {side}"),
            Self::Group(g) if direction == Direction::Rx => format!("group {g}, {side} from other groups"),
            Self::Group(g) => format!("group {g}, {side} to other groups"),
            Self::GroupToGroup(a, b) => format!("traffic from group {a} to group {b}"),
            Self::Pair(a, b) if direction == Direction::Both => {
                format!("between {a} and {b}, both directions")
            }
            Self::Pair(a, b) => format!("traffic from {a} to {b}"),
            Self::Mismatch(key, hosts) if hosts.len() > 1 => format!("{key} of {} differs", hosts.join(", ")),
            Self::Mismatch(key, hosts) => format!("{key} of {} differs from the others", hosts.join(", ")),
            Self::Drive(host, device) => format!("drive {device} of {host}"),
            Self::All => "every pair".to_owned(),
        }
    }
}
