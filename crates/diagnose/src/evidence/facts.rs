//! Looking up facts: the NIC that carries an endpoint, the machine under a host, keys by pattern.
//! A snapshot comes in, values go out; nothing is judged here.

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

use linerate_knowledge::keys::nic_of;
use linerate_model::fact::{FactValue, HostFacts};
use linerate_model::fact_map::FactMap;
use linerate_model::inventory::{Host, HostName, Layer};
use linerate_model::snapshot::Snapshot;

use super::endpoints::Endpoints;
use super::layouts::Layouts;
use crate::rules::Rules;

/// Drivers and kinds of devices that only pretend to have a link speed.
const VIRTUAL: [&str; 12] = [
    "veth",
    "tun",
    "tap",
    "virtio",
    "vxlan",
    "bridge",
    "dummy",
    "vmxnet",
    "xen",
    "openvswitch",
    "geneve",
    "loopback",
];

/// Facts of a snapshot with the questions that the reasoning asks of them.
pub(crate) struct Facts<'a> {
    /// Where they come from.
    pub snapshot: &'a Snapshot,
    /// The numbers of the reasoning.
    pub rules: &'a Rules,
    /// Facts by host, with the number of their layout.
    hosts: HashMap<&'a str, (&'a HostFacts, usize)>,
    layouts: Layouts<'a>,
    /// NIC of each endpoint.
    nics: HashMap<(&'a str, Layer), &'a str>,
    /// Hosts with endpoints by group, direct or nested, in inventory order.
    members: BTreeMap<&'a str, Vec<&'a Host>>,
    endpoints: OnceLock<Endpoints<'a>>,
}

impl<'a> Facts<'a> {
    /// View on a snapshot.
    pub(crate) fn new(snapshot: &'a Snapshot, rules: &'a Rules) -> Self {
        let endpoints = snapshot.inventory.hosts.iter().flat_map(|h| h.endpoints.iter().map(move |e| (h, e)));
        let nics = endpoints
            .filter_map(|(host, endpoint)| {
                let address = endpoint.address.to_string();
                let carries = |value: &FactValue| {
                    let text = value.to_string();
                    text.split([' ', ',']).any(|part| part.split('/').next() == Some(address.as_str()))
                };
                let readings = &snapshot.facts.get(&host.name)?.readings;
                let nic = match readings
                    .iter()
                    .find(|(key, value)| key.ends_with(".addresses") && carries(value))
                {
                    Some((key, _)) => nic_of(key)?,
                    None if endpoint.layer == Layer::Underlay => only_nic(readings)?,
                    None => return None,
                };
                Some(((host.name.as_str(), endpoint.layer), nic))
            })
            .collect();
        let mut members: BTreeMap<&str, Vec<&Host>> = BTreeMap::new();
        for host in snapshot.inventory.hosts.iter().filter(|h| !h.endpoints.is_empty()) {
            for group in snapshot.inventory.groups_of(&host.name) {
                members.entry(group.name.as_str()).or_default().push(host);
            }
        }
        let mut layouts = Layouts::default();
        let hosts = snapshot.facts.iter();
        let hosts = hosts.map(|(host, facts)| (host.as_str(), (facts, layouts.number(facts)))).collect();
        Self { snapshot, rules, hosts, layouts, nics, members, endpoints: OnceLock::new() }
    }

    /// Endpoints and addresses of all hosts.
    pub(crate) fn endpoints(&self) -> &Endpoints<'a> {
        self.endpoints.get_or_init(|| Endpoints::new(self.snapshot, |host, layer| self.nic(host, layer)))
    }

    /// All facts of a host.
    pub(crate) fn of(&self, host: &str) -> Option<&'a HostFacts> {
        self.hosts.get(host).map(|(facts, _)| *facts)
    }

    /// The hosts with endpoints that belong to the group, directly or through nested groups, in inventory
    /// order.
    pub(crate) fn members(&self, group: &str) -> &[&'a Host] {
        self.members.get(group).map_or(&[], Vec::as_slice)
    }

    /// One value.
    pub(crate) fn get(&self, host: &str, key: &str) -> Option<&'a FactValue> {
        self.of(host)?.readings.get(key)
    }

    /// A number.
    pub(crate) fn number(&self, host: &str, key: &str) -> Option<f64> {
        self.get(host, key)?.number(0)
    }

    /// All readings of a host whose key matches the pattern, in order of the key. The loopback is left out.
    pub(crate) fn matching(&self, host: &str, pattern: &str) -> Vec<(&'a str, &'a FactValue)> {
        let Some((facts, layout)) = self.hosts.get(host) else { return Vec::new() };
        let keys = self.layouts.matching(*layout, pattern);
        keys.iter().filter_map(|key| Some((*key, facts.readings.get(key)?))).collect()
    }

    /// Name of the NIC that carries the endpoint of a host in a layer.
    pub(crate) fn nic(&self, host: &str, layer: Layer) -> Option<&'a str> {
        self.nics.get(&(host, layer)).copied()
    }

    /// Whether no word of what was imported names the layer that was measured: what counts as the underlay
    /// may be an overlay.
    pub(crate) fn is_layer_open(&self) -> bool {
        self.snapshot.imported.as_ref().is_some_and(|imported| imported.layer_unknown)
    }

    /// The NICs that traffic of a host in a layer passes: the one with the address, and under an overlay the
    /// one below.
    pub(crate) fn path_nics(&self, host: &str, layer: Layer) -> Vec<&'a str> {
        let mut nics: Vec<&str> = self.nic(host, layer).into_iter().collect();
        if layer == Layer::Overlay {
            nics.extend(self.nic(host, Layer::Underlay));
        }
        nics.dedup();
        nics
    }

    /// The machines (hypervisors and the like) that a host stands on, innermost first.
    pub(crate) fn machines_of(&self, host: &str) -> Vec<&'a HostName> {
        self.snapshot.inventory.groups_of(host).into_iter().filter_map(|g| g.machine.as_ref()).collect()
    }

    /// Whether a NIC is made of software, so that the speed it reports means nothing.
    pub(crate) fn is_virtual(&self, host: &str, nic: &str) -> bool {
        ["driver", "kind"].iter().any(|what| {
            self.get(host, &format!("nic.{nic}.{what}")).is_some_and(|value| {
                let text = value.to_string().to_lowercase();
                VIRTUAL.iter().any(|v| text.contains(v))
            })
        })
    }

    /// Largest speed among the real NICs of a host that have a link, in bit/s, with the NIC's name.
    pub(crate) fn fastest_nic(&self, host: &str) -> Option<(&'a str, f64)> {
        self.matching(host, "nic.*.speed_mbit")
            .into_iter()
            .filter_map(|(key, value)| Some((nic_of(key)?, value.number(0)? * 1e6)))
            .filter(|(nic, bps)| *bps > 0.0 && !self.is_virtual(host, nic))
            .max_by(|a, b| a.1.total_cmp(&b.1))
    }
}

/// The one device that is known of a host of which nobody read the addresses: imported evidence seldom has
/// them.
fn only_nic(readings: &FactMap) -> Option<&str> {
    let addresses = readings.keys().any(|key| key.ends_with(".addresses") && nic_of(key) != Some("lo"));
    let mut nics = readings.keys().filter_map(|key| nic_of(key)).filter(|nic| *nic != "lo");
    let first = nics.next().filter(|_| !addresses)?;
    nics.all(|nic| nic == first).then_some(first)
}
