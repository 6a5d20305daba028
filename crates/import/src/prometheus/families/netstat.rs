//! `node_netstat_*`: counters of protocols, by the names of `/proc/net/snmp` and `/proc/net/netstat`.

use std::borrow::Cow;

use super::super::family::Family;
use super::super::metric::{Metric, Use};

/// The family.
pub(super) struct Netstat;

/// Levels among the counters.
const LEVELS: [&str; 6] = ["CurrEstab", "Forwarding", "MaxConn", "RtoAlgorithm", "RtoMax", "RtoMin"];

impl Family for Netstat {
    fn name(&self) -> &'static str {
        "netstat"
    }

    fn metric(&self, name: &str) -> Option<Metric> {
        let (protocol, counter) = name.strip_prefix("node_netstat_")?.split_once('_')?;
        let is_name = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric());
        if !is_name(protocol) || !is_name(counter) || LEVELS.contains(&counter) {
            return None;
        }
        let head = if protocol.ends_with("Ext") { "netstat" } else { "snmp" };
        Some(Metric {
            key: Cow::Owned(format!("{head}.{protocol}.{counter}")),
            what: Use::Counter,
            factor: 1.0,
        })
    }
}
