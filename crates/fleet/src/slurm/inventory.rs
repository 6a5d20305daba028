//! The nodes of a job as an inventory, with the switches between them.

use std::net::{IpAddr, ToSocketAddrs};

use linerate_model::inventory::{
    Endpoint, Group, Host, Inventory, Layer, SlurmJob, SlurmSpec, TransportSpec,
};

use super::error::{SlurmError, ask};
use super::job::Allocation;
use super::nodes::{described, expanded};
use super::request::NodeRequest;

/// The nodes of an allocation, and those that were refused, with the switches between them.
pub(super) async fn inventory(
    allocation: &Allocation,
    request: &NodeRequest,
) -> Result<Inventory, SlurmError> {
    let refused = allocation.refused().iter().map(|(node, _)| node);
    let names: Vec<String> = allocation.nodes().iter().chain(refused).cloned().collect();
    let nodes = described(&names).await?;
    // Clusters without a tree of switches have nothing to say here; older versions call that an error.
    let topology = ask("scontrol", &["show", "topology"]).await.unwrap_or_default();
    let mut groups = Vec::new();
    let mut members: Vec<(String, Vec<String>)> = Vec::new();
    for switch in switches(&topology) {
        for inner in &expanded(&switch.switches).await? {
            if let Some(group) = groups.iter_mut().find(|g: &&mut Group| g.name == *inner) {
                group.parent = Some(switch.name.clone());
            }
        }
        if switch.switches.is_empty() {
            members.push((switch.name.clone(), expanded(&switch.nodes).await?));
        }
        groups.push(Group { name: switch.name, kind: "switch".to_owned(), ..Group::default() });
    }
    let mut hosts = Vec::new();
    for node in nodes {
        let job = allocation.holds(&node.name).is_ok();
        let above = members.iter().filter(|(_, nodes)| nodes.contains(&node.name));
        hosts.push(Host {
            groups: above.map(|(switch, _)| switch.clone()).collect(),
            endpoints: address(&node.address).await.map(endpoint).into_iter().collect(),
            transport: TransportSpec::Slurm(SlurmSpec {
                node: node.name.clone(),
                partition: request.partition.clone(),
                steps: request.steps,
                job: job.then(|| SlurmJob { id: allocation.id(), ..SlurmJob::default() }),
            }),
            name: node.name,
            state_dir: None,
            etc_dir: None,
            cache_dir: None,
        });
    }
    // A switch above none of these nodes says nothing.
    groups.retain(|g: &Group| hosts.iter().any(|h| h.groups.contains(&g.name)) || g.parent.is_none());
    let name = format!("slurm job {}", allocation.id());
    Ok(Inventory { name, groups, hosts, ..Inventory::default() })
}

fn endpoint(address: IpAddr) -> Endpoint {
    Endpoint { address, layer: Layer::Underlay, netns: None, link_bps: None }
}

/// An address, or the first one of a name. A name that cannot be resolved leaves a host of which only facts
/// are read.
async fn address(text: &str) -> Option<IpAddr> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    let name = text.to_owned();
    let found = tokio::task::spawn_blocking(move || {
        let addresses: Vec<IpAddr> = (name.as_str(), 0).to_socket_addrs().ok()?.map(|a| a.ip()).collect();
        addresses.iter().find(|a| a.is_ipv4()).or(addresses.first()).copied()
    });
    found.await.ok().flatten()
}

/// A line of `scontrol show topology`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Switch {
    name: String,
    /// Nodes below it, directly or not.
    nodes: String,
    /// Switches below it; empty for one with nodes at its ports.
    switches: String,
}

fn switches(text: &str) -> Vec<Switch> {
    let switch = |line: &str| {
        let field = |key: &str| {
            line.split_ascii_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
        };
        Some(Switch {
            name: field("SwitchName")?.to_owned(),
            nodes: field("Nodes").unwrap_or_default().to_owned(),
            switches: field("Switches").unwrap_or_default().to_owned(),
        })
    };
    text.lines().filter_map(switch).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_read() {
        let text = "SwitchName=s0 Level=0 LinkSpeed=1 Nodes=n[1-3]\n\
                    SwitchName=top Level=1 LinkSpeed=1 Nodes=n[1-6] Switches=s[0-1]\n";
        let all = switches(text);
        assert_eq!(
            (all[0].name.as_str(), all[0].nodes.as_str(), all[0].switches.as_str()),
            ("s0", "n[1-3]", "")
        );
        assert_eq!(all[1].switches, "s[0-1]");
        assert_eq!(switches("No topology information available"), vec![]);
    }
}
