//! The endpoints of all hosts, and who has which address.

use std::collections::HashMap;
use std::net::IpAddr;

use linerate_model::fact::FactValue;
use linerate_model::inventory::Layer;
use linerate_model::snapshot::Snapshot;

/// Endpoints of all hosts, and who has which address; made once for a snapshot.
#[derive(Debug, Default)]
pub(crate) struct Endpoints<'a> {
    /// Host and layer of each endpoint.
    pub of: HashMap<IpAddr, (&'a str, Layer)>,
    /// Hosts by what the NICs of their endpoints have: hardware addresses, and network addresses.
    pub owners: HashMap<String, Vec<&'a str>>,
}

impl<'a> Endpoints<'a> {
    /// Of a snapshot; `nic` names the NIC that carries the endpoint of a host in a layer.
    pub(crate) fn new(snapshot: &'a Snapshot, nic: impl Fn(&str, Layer) -> Option<&'a str>) -> Self {
        let mut endpoints = Self::default();
        for host in &snapshot.inventory.hosts {
            let readings = snapshot.facts.get(&host.name).map(|facts| &facts.readings);
            let name = host.name.as_str();
            for endpoint in &host.endpoints {
                endpoints.of.insert(endpoint.address, (name, endpoint.layer));
                let Some(nic) = nic(name, endpoint.layer) else { continue };
                for what in ["mac", "addresses"] {
                    let value = readings.and_then(|readings| readings.get(&format!("nic.{nic}.{what}")));
                    for part in value.into_iter().flat_map(addresses) {
                        let owners = endpoints.owners.entry(part).or_default();
                        if !owners.contains(&name) {
                            owners.push(name);
                        }
                    }
                }
            }
        }
        endpoints
    }
}

/// Addresses in a value, without the length of their prefix.
pub(crate) fn addresses(value: &FactValue) -> Vec<String> {
    let text = value.to_string();
    let bare = |part: &str| part.split('/').next().unwrap_or_default().to_ascii_lowercase();
    text.split([' ', ',']).map(bare).filter(|part| !part.is_empty()).collect()
}
