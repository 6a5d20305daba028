//! How numbers and places are said to people: three significant digits, the unit beside the number.

use linerate_model::finding::{Direction, LayerScope, Metric, Suspect};
use linerate_model::units::MetricUnit;

/// A rate with its unit: `24.5 Gbit/s`.
pub fn bps(value: f64) -> String {
    let (scaled, unit) = match value {
        v if v >= 1e9 => (v / 1e9, "Gbit/s"),
        v if v >= 1e6 => (v / 1e6, "Mbit/s"),
        v if v >= 1e3 => (v / 1e3, "kbit/s"),
        v => (v, "bit/s"),
    };
    format!("{} {unit}", digits(scaled))
}

/// Three significant digits, no exponent for ordinary sizes.
pub fn digits(value: f64) -> String {
    let size = value.abs();
    if size >= 100.0 || size == 0.0 {
        format!("{value:.0}")
    } else if size >= 10.0 {
        format!("{value:.1}")
    } else if size >= 0.1 {
        format!("{value:.2}")
    } else {
        format!("{value:.4}")
    }
}

/// A share as a percentage.
pub fn percent(share: f64) -> String {
    let p = share * 100.0;
    if p.abs() >= 10.0 || p == 0.0 { format!("{p:.0} %") } else { format!("{} %", digits(p)) }
}

/// Microseconds as ms or us.
pub fn us(value: f64) -> String {
    if value >= 1000.0 { format!("{} ms", digits(value / 1000.0)) } else { format!("{} us", digits(value)) }
}

/// A ratio above this is not written out.
const RATIO_MOST: f64 = 10_000.0;

/// A ratio: `2.41x`; huge ones are rounded.
pub fn ratio(value: f64) -> String {
    if value >= f64::MAX / 2.0 {
        "unknown".to_owned()
    } else if value > RATIO_MOST {
        // Something against nothing: the figure itself says nothing more.
        format!("over {RATIO_MOST}x")
    } else {
        format!("{}x", digits(value))
    }
}

/// Name of what is measured.
pub fn response_name(response: Metric) -> &'static str {
    match response {
        Metric::Throughput => "throughput",
        Metric::Loss => "UDP loss",
        Metric::Retransmits => "retransmits",
        Metric::RttIdle => "idle RTT",
        Metric::RttLoaded => "RTT under load",
        Metric::Reordering => "datagrams out of order or twice",
        Metric::Stalls => "longest standstill",
        Metric::CpuCost => "CPU cost",
        Metric::PathMtu => "path MTU",
        Metric::TwoState => "two-state throughput",
        Metric::Storage => "storage",
        Metric::Setting => "setting",
    }
}

/// Unit of a response in a finding.
pub fn unit(response: Metric) -> MetricUnit {
    if response == Metric::Setting { MetricUnit::Share } else { response.unit() }
}

/// A value of a response with its unit.
pub fn value(v: f64, response: Metric) -> String {
    match response {
        Metric::Throughput | Metric::TwoState => bps(v),
        Metric::Loss | Metric::Reordering | Metric::Setting => percent(v),
        Metric::Retransmits => format!("{}/s", digits(v)),
        Metric::RttIdle | Metric::RttLoaded | Metric::Stalls => us(v),
        Metric::CpuCost => format!("{} CPU s/GB", digits(v)),
        Metric::PathMtu => format!("{v:.0} bytes"),
        Metric::Storage => format!("{} MB/s", digits(v / 1e6)),
    }
}

/// A place in words.
pub fn place(suspect: &Suspect, direction: Direction) -> String {
    let side = match direction {
        Direction::Tx => "what it sends",
        Direction::Rx => "what it receives",
        Direction::Both => "both directions",
    };
    match suspect {
        Suspect::Host(h) => format!("host {h}, {side}"),
        Suspect::Group(g) => match direction {
            Direction::Rx => format!("group {g}, what it receives from other groups"),
            Direction::Tx => format!("group {g}, what it sends to other groups"),
            Direction::Both => format!("group {g}, both directions to other groups"),
        },
        Suspect::GroupToGroup(a, b) => format!("traffic from group {a} to group {b}"),
        Suspect::Pair(a, b) if direction == Direction::Both => {
            format!("between {a} and {b}, both directions")
        }
        Suspect::Pair(a, b) => format!("traffic from {a} to {b}"),
        Suspect::Mismatch(key, hosts) if hosts.len() > 1 => format!("{key} of {} differs", hosts.join(", ")),
        Suspect::Mismatch(key, hosts) => format!("{key} of {} differs from the others", hosts.join(", ")),
        Suspect::All => "every pair".to_owned(),
    }
}

/// A place where something was read and no loss was measured: what stands for every pair stands for the
/// hosts.
pub fn read_at(suspect: &Suspect, direction: Direction) -> String {
    match suspect {
        Suspect::All => "most hosts".to_owned(),
        Suspect::Host(host) if direction == Direction::Both => format!("host {host}"),
        suspect => place(suspect, direction),
    }
}

/// The layers in words, as an addition to a place; empty for all.
pub fn layer(scope: LayerScope) -> String {
    match scope {
        LayerScope::Any => String::new(),
        LayerScope::Only(layer) => format!(" in the {layer} only"),
    }
}
