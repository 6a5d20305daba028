//! `node_sysctl_*`: settings of the kernel. node_exporter writes `_` for the dots of their names; values of
//! several numbers are a series each.

use std::borrow::Cow;

use linerate_model::fact::FactValue;

use super::super::answer::Series;
use super::super::family::Family;
use super::super::metric::{Metric, Use};
use super::super::taken::Taken;

/// The family.
pub(super) struct Sysctl;

/// Beginnings of names with their dots, the longest first. What follows has no dot.
const HEADS: [&str; 14] = [
    "net.ipv4.conf.all.",
    "net.ipv4.conf.default.",
    "net.ipv6.conf.all.",
    "net.ipv6.conf.default.",
    "net.ipv4.neigh.default.",
    "net.ipv6.neigh.default.",
    "net.netfilter.",
    "net.bridge.",
    "net.ipv4.",
    "net.ipv6.",
    "net.core.",
    "sunrpc.",
    "kernel.",
    "vm.",
];

/// Values that are not settings.
const LEVELS: [&str; 2] = ["net.netfilter.nf_conntrack_count", "kernel.random"];

/// The name with its dots.
fn dotted(name: &str) -> Option<String> {
    let name = name.strip_prefix("node_sysctl_")?;
    let of = |head: &str| Some(format!("{head}{}", name.strip_prefix(&head.replace('.', "_"))?));
    HEADS.iter().find_map(|head| of(head)).filter(|name| !LEVELS.iter().any(|level| name.starts_with(level)))
}

impl Family for Sysctl {
    fn name(&self) -> &'static str {
        "sysctl"
    }

    fn metric(&self, name: &str) -> Option<Metric> {
        let key = Cow::Owned(format!("sysctl.{}", dotted(name)?));
        Some(Metric { key, what: Use::Own, factor: 1.0 })
    }

    fn take(&self, name: &str, series: &Series, taken: &mut Taken<'_>) {
        let (Some(name), Some(value)) = (dotted(name), series.last()) else { return };
        let key = format!("sysctl.{name}");
        match series.label("index").parse::<usize>() {
            Ok(index) => taken.part(&key, index, value),
            Err(_) => taken.fact(&key, FactValue::Int(value as i64)),
        }
    }
}
