//! `docker network inspect NAME`: driver, MTU and addresses of a container network. JSON comes in; facts
//! `docker.network.<name>.…` go out, and the names of the containers' addresses.

use linerate_model::fact::FactValue;
use serde_json::Value;

use super::json::{self, list, text};
use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// The format.
pub(crate) struct DockerNetwork;

impl Reader for DockerNetwork {
    fn name(&self) -> &'static str {
        "docker-network"
    }

    fn describes(&self) -> &'static str {
        "docker network inspect"
    }

    fn takes_long_lines(&self) -> bool {
        true
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        json::has_keys(block, '[', &["\"Name\"", "\"Scope\"", "\"Driver\""])
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        json::read(block, out, "docker network inspect", |value, out| {
            for network in value.as_array().into_iter().flatten() {
                one(network, out);
            }
        })
    }
}

fn one(network: &Value, out: &mut Sink) {
    let Some(name) = text(network, &["Name"]) else { return };
    let head = format!("docker.network.{}", name.replace('.', "/"));
    for (field, path) in [("driver", "Driver"), ("scope", "Scope")] {
        out.text(format!("{head}.{field}"), text(network, &[path]).unwrap_or_default());
    }
    if let Some(mtu) =
        text(network, &["Options", "com.docker.network.driver.mtu"]).and_then(|m| m.parse().ok())
    {
        out.fact(format!("{head}.mtu"), FactValue::Int(mtu));
    }
    if let Some(ids) = text(network, &["Options", "com.docker.network.driver.overlay.vxlanid_list"]) {
        out.text(format!("{head}.vxlan_id"), ids);
    }
    let encrypted = network.get("Options").is_some_and(|options| options.get("encrypted").is_some());
    if encrypted {
        out.fact(format!("{head}.encrypted"), FactValue::Flag(true));
    }
    let subnets: Vec<String> = list(network, &["IPAM", "Config"])
        .iter()
        .filter_map(|config| text(config, &["Subnet"]).map(str::to_owned))
        .collect();
    if !subnets.is_empty() {
        out.fact(format!("{head}.subnets"), FactValue::List(subnets));
    }
    // Peers are the hosts of an overlay with the addresses of their underlay.
    let peers: Vec<String> =
        list(network, &["Peers"]).iter().filter_map(|peer| text(peer, &["IP"]).map(str::to_owned)).collect();
    if !peers.is_empty() {
        out.fact(format!("{head}.peers"), FactValue::List(peers));
    }
}
