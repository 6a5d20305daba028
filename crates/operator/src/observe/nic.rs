//! What the facts say about the NIC behind an endpoint. Pure; never guesses: what is not known is `None`.

use std::collections::BTreeMap;
use std::net::IpAddr;

use linerate_model::fact::{FactValue, HostFacts};
use linerate_model::inventory::{Endpoint, HostName, Inventory, Layer};

/// Facts by host.
pub type Facts = BTreeMap<HostName, HostFacts>;

/// The key prefix `nic.<if>.` of the NIC that has the endpoint's address, with the namespace prefix before
/// it.
pub fn prefix(facts: &HostFacts, endpoint: &Endpoint) -> Option<String> {
    let namespace = endpoint.netns.as_ref().map_or(String::new(), |p| format!("netns.{}|", p.display()));
    let nics = format!("{namespace}nic.");
    let mut from = nics.clone();
    loop {
        // The first key of a device, then on to the next device: a host has hundreds of keys and few devices.
        let (key, _) = facts.readings.starting_at(&from).next().filter(|(key, _)| key.starts_with(&nics))?;
        let name_bytes = key[nics.len()..].find('.')?;
        let device = &key[..nics.len() + name_bytes];
        if facts.readings.get(&format!("{device}.addresses")).is_some_and(|v| holds(v, endpoint.address)) {
            return Some(format!("{device}."));
        }
        // The character behind `.`.
        from = format!("{device}/");
    }
}

fn holds(value: &FactValue, address: IpAddr) -> bool {
    let same = |text: &str| text.split('/').next().and_then(|t| t.parse::<IpAddr>().ok()) == Some(address);
    match value {
        FactValue::List(list) => list.iter().any(|t| same(t)),
        FactValue::Text(text) => text.split_ascii_whitespace().any(same),
        _ => false,
    }
}

fn number(facts: &Facts, inventory: &Inventory, host: &str, layer: Layer, name: &str) -> Option<f64> {
    let endpoint = inventory.endpoint(host, layer)?;
    let facts = facts.get(host)?;
    let nic = prefix(facts, endpoint)?;
    facts.readings.get(&format!("{nic}{name}"))?.number(0).filter(|n| *n > 0.0)
}

/// MTU of the NIC behind the endpoint, bytes.
pub fn mtu(facts: &Facts, inventory: &Inventory, host: &str, layer: Layer) -> Option<u32> {
    number(facts, inventory, host, layer, "mtu").map(|n| n as u32)
}

/// Rate of the link behind the endpoint, bit/s: from the inventory, or from the NIC.
pub fn link_bps(facts: &Facts, inventory: &Inventory, host: &str, layer: Layer) -> Option<f64> {
    let shown = inventory.endpoint(host, layer)?.link_bps;
    shown.or_else(|| number(facts, inventory, host, layer, "speed_mbit").map(|mbit| mbit * 1e6))
}

/// The smallest known rate on the way between two hosts: both links, and the uplinks of the groups that it
/// leaves and enters.
pub fn path_bps(facts: &Facts, inventory: &Inventory, from: &str, to: &str, layer: Layer) -> Option<f64> {
    let (mine, theirs) = (inventory.groups_of(from), inventory.groups_of(to));
    let crossed = mine
        .iter()
        .filter(|g| theirs.iter().all(|t| t.name != g.name))
        .chain(theirs.iter().filter(|g| mine.iter().all(|m| m.name != g.name)));
    [link_bps(facts, inventory, from, layer), link_bps(facts, inventory, to, layer)]
        .into_iter()
        .chain(crossed.map(|g| g.uplink_bps))
        .flatten()
        .reduce(f64::min)
}
