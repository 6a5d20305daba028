//! `node_ethtool_*`: counters of drivers, of those that count what goes wrong.

use std::borrow::Cow;

use super::super::family::Family;
use super::super::metric::{Metric, Use};

/// The family.
pub(super) struct Ethtool;

/// Parts of the names of counters of trouble.
const TROUBLE: [&str; 13] = [
    "drop",
    "err",
    "miss",
    "discard",
    "pause",
    "crc",
    "no_buf",
    "no_buffer",
    "fifo",
    "timeout",
    "symbol",
    "fec",
    "allowance",
];

impl Family for Ethtool {
    fn name(&self) -> &'static str {
        "ethtool"
    }

    fn metric(&self, name: &str) -> Option<Metric> {
        let counter = name.strip_prefix("node_ethtool_")?;
        let counter = counter.strip_suffix("_total").unwrap_or(counter);
        if !TROUBLE.iter().any(|part| counter.contains(part)) {
            return None;
        }
        // node_exporter writes the words out.
        let words = counter.split('_').map(|word| match word {
            "received" => "rx",
            "transmitted" => "tx",
            word => word,
        });
        let counter = words.collect::<Vec<_>>().join("_");
        let key = Cow::Owned(format!("nic.{{device}}.stat.{counter}"));
        Some(Metric { key, what: Use::Counter, factor: 1.0 })
    }
}
