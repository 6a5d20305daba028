//! `ip -s -j link` and `ip -j addr`: a list of devices comes in; MTU, queues, addresses and counters go out.

use linerate_model::fact::FactValue;
use serde_json::Value;

use super::json::{self, list, number, text};
use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// The format.
pub(crate) struct IpJson;

impl Reader for IpJson {
    fn name(&self) -> &'static str {
        "ip-json"
    }

    fn describes(&self) -> &'static str {
        "ip -s -j link, ip -j addr"
    }

    fn takes_long_lines(&self) -> bool {
        true
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        json::has_keys(block, '[', &["\"ifname\""])
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        json::read(block, out, "ip", |value, out| {
            for link in value.as_array().map_or(&[][..], Vec::as_slice) {
                if let Some(name) = text(link, &["ifname"]).filter(|n| !n.is_empty()) {
                    device(&super::ethtool::key(name), link, block, out);
                }
            }
        })
    }
}

/// Facts of one device.
fn device(nic: &str, link: &Value, block: &Block<'_>, out: &mut Sink) {
    let int = |value: f64| FactValue::Int(value as i64);
    for (field, fact) in [
        ("mtu", "mtu"),
        ("max_mtu", "max_mtu"),
        ("txqlen", "txqueuelen"),
        ("gso_max_size", "gso_max_size"),
        ("gro_max_size", "gro_max_size"),
    ] {
        if let Some(value) = number(link, &[field]) {
            out.fact(format!("{nic}.{fact}"), int(value));
        }
    }
    let up = list(link, &["flags"]).iter().any(|f| f.as_str() == Some("UP"));
    if let Some(state) = text(link, &["operstate"]) {
        out.text(format!("{nic}.state"), &if up { state.to_lowercase() } else { "off".to_owned() });
    }
    for (path, fact) in [
        (&["qdisc"][..], "qdisc"),
        (&["master"], "master"),
        (&["linkinfo", "info_kind"], "kind"),
        (&["linkinfo", "info_data", "mode"], "bond.mode"),
    ] {
        if let Some(value) = text(link, path) {
            out.text(format!("{nic}.{fact}"), value);
        }
    }
    if text(link, &["link_type"]) == Some("ether")
        && let Some(mac) = text(link, &["address"])
    {
        out.text(format!("{nic}.mac"), mac);
    }
    let kind = text(link, &["linkinfo", "info_kind"]);
    if let Some((id, topic)) =
        number(link, &["linkinfo", "info_data", "id"]).zip(kind.filter(|k| ["vxlan", "vlan"].contains(k)))
    {
        out.fact(format!("{nic}.{topic}.id"), int(id));
    }
    let addresses: Vec<String> = list(link, &["addr_info"])
        .iter()
        .filter(|a| text(a, &["scope"]) != Some("link"))
        .filter_map(|a| Some(format!("{}/{}", text(a, &["local"])?, number(a, &["prefixlen"])?)))
        .collect();
    addresses_of(nic, addresses, block, out);
    for side in ["rx", "tx"] {
        let stats = link.get("stats64").or_else(|| link.get("stats"));
        let Some(stats) = stats.and_then(|s| s.get(side)).and_then(Value::as_object) else { continue };
        for (name, value) in stats {
            if let Some(value) = value.as_i64() {
                out.counter(format!("{nic}.stat.{}", stat(side, name)), value);
            }
        }
    }
}

/// Name of a counter as the kernel calls it, which is what our own readers use.
pub(crate) fn stat(side: &str, name: &str) -> String {
    match name {
        "multicast" | "collisions" => name.to_owned(),
        "mcast" => "multicast".to_owned(),
        "collsns" => "collisions".to_owned(),
        "carrier" => "tx_carrier_errors".to_owned(),
        "missed" => "rx_missed_errors".to_owned(),
        "overrun" => "rx_over_errors".to_owned(),
        _ => format!("{side}_{name}"),
    }
}

/// The addresses of a device, also as names of its host.
pub(crate) fn addresses_of(nic: &str, addresses: Vec<String>, block: &Block<'_>, out: &mut Sink) {
    if addresses.is_empty() {
        return;
    }
    if let Some(host) = &block.at.host {
        for address in &addresses {
            out.alias(address.split('/').next().unwrap_or_default(), host);
        }
    }
    out.fact(format!("{nic}.addresses"), FactValue::List(addresses));
}
