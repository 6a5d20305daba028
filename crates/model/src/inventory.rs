//! Who is there: hosts, groups of hosts, and the addresses between which is measured.
//!
//! These are the checked values; the file formats they come from live in the operator's `inventory` room.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

/// Name of a host; unique in an inventory.
pub type HostName = String;
/// Name of a group; unique in an inventory.
pub type GroupName = String;

/// A cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Inventory {
    /// Name of the cluster, for titles.
    pub name: String,
    /// Groups of any kind, nested by `parent`.
    #[serde(default)]
    pub groups: Vec<Group>,
    /// Hosts in the order of the file.
    pub hosts: Vec<Host>,
    /// A file of lines `{"from_ms":…,"to_ms":…,"reason":"…"}` (Unix milliseconds): spans in which somebody else knows
    /// that measurements were disturbed (a maintenance log; the lab's wires when they were late). Tests that overlap
    /// such a span are invalid and are repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbances: Option<PathBuf>,
    /// Where each name stands; nothing to fill in.
    #[serde(skip)]
    pub index: NameIndex,
}

/// Hosts that share something: a hypervisor, a rack, a switch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// Unique name.
    pub name: GroupName,
    /// What it is, free text: `hypervisor`, `rack`, `switch`.
    pub kind: String,
    /// The group that contains this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<GroupName>,
    /// Rate of the uplink that the members share, in bit/s, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uplink_bps: Option<f64>,
    /// The host of this inventory that *is* the group (the hypervisor itself): its facts explain the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<HostName>,
}

/// A machine with a node program on it, or a device that only has an iperf3 server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Unique name.
    pub name: HostName,
    /// How to reach it.
    pub transport: TransportSpec,
    /// Groups that the host is a direct member of.
    #[serde(default)]
    pub groups: Vec<GroupName>,
    /// Addresses to measure between; empty for a host of which only facts are read.
    #[serde(default)]
    pub endpoints: Vec<Endpoint>,
    /// Where the node keeps its journal; default `/var/lib/linerate` on the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_dir: Option<PathBuf>,
    /// What stands for `/etc` when a setting is made persistent; default `/etc` on the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etc_dir: Option<PathBuf>,
}

/// How the operator reaches a host. The list grows with the operator's `fleet` room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TransportSpec {
    /// The machine that `linerate` runs on.
    Local,
    /// A network namespace of the machine that `linerate` runs on.
    Netns {
        /// Path of the namespace, such as `/run/netns/blue`.
        path: PathBuf,
    },
    /// A node of a Slurm cluster: the node program is a step of a job.
    Slurm(SlurmSpec),
    /// Not at all: only an iperf3 server listens on its endpoints, which the other end of each test speaks to.
    Iperf3 {
        /// Its port.
        port: u16,
    },
}

/// A node of a Slurm cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlurmSpec {
    /// Slurm's name of the node.
    pub node: String,
    /// Partition to get it from; Slurm's default when `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    /// The job to run a step in. It ends with the command that has it, so it is never stored.
    #[serde(skip)]
    pub job: Option<SlurmJob>,
}

/// A job that holds nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlurmJob {
    /// Number.
    pub id: u32,
    /// Where the node program lies on the node.
    pub program: PathBuf,
}

/// One address of a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Endpoint {
    /// Where streams of this endpoint start and end.
    pub address: IpAddr,
    /// Which network it belongs to.
    pub layer: Layer,
    /// Network namespace inside the host in which the address lives, such as `/var/run/docker/netns/ingress_sbox`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netns: Option<PathBuf>,
    /// Rate of the link behind the address in bit/s, where known and not readable on the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_bps: Option<f64>,
}

/// Which network an endpoint belongs to. Only endpoints of the same layer are measured against each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// The network of the machines.
    #[default]
    Underlay,
    /// A network carried inside it (vxlan, a container network).
    Overlay,
}

impl std::fmt::Display for Layer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Underlay => "underlay",
            Self::Overlay => "overlay",
        })
    }
}

impl Inventory {
    /// The host of this name.
    pub fn host(&self, name: &str) -> Option<&Host> {
        named(&self.hosts, name, |h| &h.name, || &self.index.of(self).hosts)
    }

    /// The group of this name.
    pub fn group(&self, name: &str) -> Option<&Group> {
        named(&self.groups, name, |g| &g.name, || &self.index.of(self).groups)
    }

    /// All groups of a host, direct ones first, then their parents; each once. Stops at a cycle.
    pub fn groups_of(&self, host: &str) -> Vec<&Group> {
        let mut found: Vec<&Group> = Vec::new();
        let mut todo: Vec<&str> =
            self.host(host).map_or(Vec::new(), |h| h.groups.iter().map(String::as_str).collect());
        while let Some(name) = (!todo.is_empty()).then(|| todo.remove(0)) {
            if let Some(group) = self.group(name).filter(|g| !found.iter().any(|f| f.name == g.name)) {
                found.push(group);
                todo.extend(group.parent.as_deref());
            }
        }
        found
    }

    /// The hosts with endpoints that belong to the group, directly or through nested groups, in inventory order.
    pub fn members(&self, group: &str) -> Vec<&Host> {
        self.hosts
            .iter()
            .filter(|h| !h.endpoints.is_empty() && self.groups_of(&h.name).iter().any(|g| g.name == group))
            .collect()
    }

    /// The endpoint of a host in a layer.
    pub fn endpoint(&self, host: &str, layer: Layer) -> Option<&Endpoint> {
        self.host(host)?.endpoints.iter().find(|e| e.layer == layer)
    }

    /// The port of a host that has no node program but an iperf3 server.
    pub fn iperf3_port(&self, host: &str) -> Option<u16> {
        match self.host(host)?.transport {
            TransportSpec::Iperf3 { port } => Some(port),
            TransportSpec::Local | TransportSpec::Netns { .. } | TransportSpec::Slurm(_) => None,
        }
    }

    /// The layers in which at least two hosts have endpoints, in order.
    pub fn layers(&self) -> Vec<Layer> {
        [Layer::Underlay, Layer::Overlay]
            .into_iter()
            .filter(|l| self.hosts.iter().filter(|h| h.endpoints.iter().any(|e| e.layer == *l)).count() > 1)
            .collect()
    }
}

/// Positions of the names of an inventory, made at the first look-up. Each hit is checked against the list and anything else
/// is searched for, so an inventory that was changed after a look-up costs time but never gives a wrong answer.
#[derive(Default)]
pub struct NameIndex(OnceLock<Positions>);

#[derive(Default)]
struct Positions {
    hosts: HashMap<String, usize>,
    groups: HashMap<String, usize>,
}

impl NameIndex {
    fn of(&self, inventory: &Inventory) -> &Positions {
        fn positions<'a>(names: impl Iterator<Item = &'a String>) -> HashMap<String, usize> {
            let mut map = HashMap::new();
            for (position, name) in names.enumerate() {
                map.entry(name.clone()).or_insert(position);
            }
            map
        }
        self.0.get_or_init(|| Positions {
            hosts: positions(inventory.hosts.iter().map(|h| &h.name)),
            groups: positions(inventory.groups.iter().map(|g| &g.name)),
        })
    }
}

/// A copy may be changed before it is asked, so it starts without positions.
impl Clone for NameIndex {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// Says nothing that the lists do not say.
impl PartialEq for NameIndex {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl std::fmt::Debug for NameIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NameIndex")
    }
}

/// Below this many names looking through them is faster than a map.
const INDEXED_FROM: usize = 24;

fn named<'a, T>(
    all: &'a [T],
    name: &str,
    name_of: impl Fn(&T) -> &String,
    positions: impl FnOnce() -> &'a HashMap<String, usize>,
) -> Option<&'a T> {
    if all.len() >= INDEXED_FROM
        && let Some(hit) = positions().get(name).and_then(|position| all.get(*position))
        && name_of(hit) == name
    {
        return Some(hit);
    }
    all.iter().find(|one| name_of(one) == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: String) -> Host {
        Host {
            name,
            transport: TransportSpec::Local,
            groups: vec!["rack".to_owned()],
            endpoints: Vec::new(),
            state_dir: None,
            etc_dir: None,
        }
    }

    #[test]
    fn names_are_found_also_after_the_lists_were_changed() {
        let hosts = (0..100).map(|i| host(format!("n{i}"))).collect();
        let mut inventory = Inventory { hosts, ..Inventory::default() };
        assert_eq!(inventory.host("n57").map(|h| h.name.as_str()), Some("n57"));
        inventory.hosts.remove(3);
        inventory.hosts.push(host("late".to_owned()));
        for name in ["n2", "n57", "n99", "late"] {
            assert_eq!(inventory.host(name).map(|h| h.name.as_str()), Some(name));
        }
        assert_eq!(inventory.host("n3"), None);
        assert_eq!(inventory.clone(), inventory);
    }
}
