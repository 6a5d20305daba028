//! Who is there: hosts, groups of hosts, and the addresses between which is measured.
//!
//! These are the checked values; the file formats they come from live in the operator's `inventory` room.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::IpAddr;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agents::AgentsSpec;
use crate::download::DownloadSpec;
use crate::notify::NotifyTarget;
use crate::rounds::ThroughputRounds;

/// Name of a host; unique in an inventory.
pub type HostName = String;
/// Name of a group; unique in an inventory.
pub type GroupName = String;

/// A cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Inventory {
    /// Name of the cluster, for titles.
    pub name: String,
    /// Groups of any kind, nested by `parent`.
    #[serde(default)]
    pub groups: Vec<Group>,
    /// Hosts in the order of the file.
    pub hosts: Vec<Host>,
    /// A file of lines `{"from_ms":…,"to_ms":…,"reason":"…"}` (Unix milliseconds): spans in which somebody
    /// else knows that measurements were contended (a maintenance log; the lab's wires when they were late).
    /// Tests that overlap such a span are invalid and are repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbances: Option<PathBuf>,
    /// Where a watch delivers its alarms; never stored with a run, for an address may be a secret.
    #[serde(skip)]
    pub notify: Vec<NotifyTarget>,
    /// What a watch downloads; never stored with a run, for a URL may hold a secret.
    #[serde(skip)]
    pub downloads: Vec<DownloadSpec>,
    /// When a watch measures throughput; it is not stored with a run, which measures by itself.
    #[serde(skip)]
    pub throughput: Option<ThroughputRounds>,
    /// Hosts whose agents dial a watch; of no use to a run.
    #[serde(skip)]
    pub agents: Option<AgentsSpec>,
    /// The file as a command that follows has to name it in this folder; `None` where it is found unnamed.
    #[serde(skip)]
    pub typed: Option<PathBuf>,
    /// Where each name stands; nothing to fill in.
    #[serde(skip)]
    pub index: NameIndex,
}

/// Hosts that share something: a hypervisor, a rack, a switch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// In which folder of the host a private one is made for the node program that is copied over ssh; by
    /// default the first of several that will do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_dir: Option<PathBuf>,
}

/// Whether a folder of a host (`state_dir`, `etc_dir`, `cache_dir`) is the same one for every process of that
/// host. The guardian of a change runs in another working folder than the node.
///
/// # Errors
/// What is wrong with it.
pub fn check_folder(path: &Path) -> Result<(), &'static str> {
    if !path.is_absolute() {
        return Err("is not an absolute path");
    }
    if path.components().any(|component| component == Component::ParentDir) {
        return Err("contains `..`");
    }
    Ok(())
}

/// How the operator reaches a host. The list grows with the operator's `fleet` room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TransportSpec {
    /// The machine that `linerate` runs on.
    Local,
    /// A network namespace of the machine that `linerate` runs on.
    Netns {
        /// Path of the namespace, such as `/run/netns/blue`.
        path: PathBuf,
    },
    /// Over the system's `ssh` program, with its own configuration.
    Ssh(SshSpec),
    /// A node of a Slurm cluster: the node program is a step of a job.
    Slurm(SlurmSpec),
    /// Not at all: only an iperf3 server listens on its endpoints, which the other end of each test speaks
    /// to.
    Iperf3 {
        /// Its port.
        port: u16,
    },
}

/// Kind of a transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TransportKind {
    /// See [`TransportSpec::Local`].
    Local,
    /// See [`TransportSpec::Netns`].
    Netns,
    /// See [`TransportSpec::Ssh`].
    Ssh,
    /// See [`TransportSpec::Slurm`].
    Slurm,
    /// No node program runs there.
    Nothing,
}

impl std::fmt::Display for TransportKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.serialize(f)
    }
}

impl TransportSpec {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> TransportKind {
        match self {
            Self::Local => TransportKind::Local,
            Self::Netns { .. } => TransportKind::Netns,
            Self::Ssh(_) => TransportKind::Ssh,
            Self::Slurm(_) => TransportKind::Slurm,
            Self::Iperf3 { .. } => TransportKind::Nothing,
        }
    }
}

/// What `ssh` is asked for. What is left out comes from its configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SshSpec {
    /// A name, an alias of ssh's configuration, or an address.
    pub host: String,
    /// Account on the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Port of its sshd.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Whether the node program may be started with `sudo` where the account is not root.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub sudo: bool,
}

fn yes() -> bool {
    true
}

// Serde wants a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_yes(value: &bool) -> bool {
    *value
}

/// Longest host or user name that is handed to `ssh`.
const SSH_NAME_BYTES_MAX: usize = 255;

impl SshSpec {
    /// Reads `host`, `user@host`, `host:port` and `[2001:db8::1]:port`. An address with several colons and no
    /// brackets has no port. Refuses what `ssh`, or a command in its configuration, could take for anything
    /// but a name.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (user, rest) = match text.rsplit_once('@') {
            Some((user, rest)) => (Some(user.to_owned()), rest),
            None => (None, text),
        };
        let (host, port) = match rest.strip_prefix('[').and_then(|r| r.split_once(']')) {
            Some((host, "")) => (host, None),
            Some((host, port)) => (host, Some(port.strip_prefix(':').unwrap_or(port))),
            None => match rest.split_once(':') {
                Some((host, port)) if !port.contains(':') => (host, Some(port)),
                _ => (rest, None),
            },
        };
        let port = match port.map(str::parse::<u16>) {
            None => None,
            Some(Ok(port @ 1..)) => Some(port),
            Some(_) => return Err(format!("`{}` has no port between 1 and 65535", text.escape_debug())),
        };
        let spec = Self { host: host.to_owned(), user, port, sudo: true };
        spec.check()?;
        Ok(spec)
    }

    /// What is wrong with the names, if anything.
    pub fn check(&self) -> Result<(), String> {
        allowed("ssh host", &self.host, "-_.:%")?;
        self.user.as_deref().map_or(Ok(()), |user| allowed("ssh user", user, "-_.+@"))
    }
}

/// As [`SshSpec::parse`] reads it.
impl std::fmt::Display for SshSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        match self.port {
            Some(port) if self.host.contains(':') => write!(f, "[{}]:{port}", self.host),
            Some(port) => write!(f, "{}:{port}", self.host),
            None => f.write_str(&self.host),
        }
    }
}

/// Letters, digits and `more`; not empty, not long, and no option.
fn allowed(what: &str, text: &str, more: &str) -> Result<(), String> {
    let fit = !text.is_empty()
        && text.len() <= SSH_NAME_BYTES_MAX
        && !text.starts_with('-')
        && text.chars().all(|c| c.is_alphanumeric() || more.contains(c));
    if fit {
        return Ok(());
    }
    Err(format!(
        "{what} `{}` is not allowed: letters, digits and {more}, not beginning with -",
        text.escape_debug()
    ))
}

/// A node of a Slurm cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SlurmSpec {
    /// Slurm's name of the node.
    pub node: String,
    /// Partition to get it from; Slurm's default when `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    /// How steps are made; by the number of nodes when `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<SlurmSteps>,
    /// The job to run a step in. It ends with the command that has it, so it is never stored.
    #[serde(skip)]
    pub job: Option<SlurmJob>,
}

/// How the node programs of a Slurm job are started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SlurmSteps {
    /// One step per node, whose stdin and stdout are the session.
    Each,
    /// One step for all, whose node programs dial back.
    One,
}

/// A job that holds nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlurmJob {
    /// Number.
    pub id: u32,
    /// Where the node program lies on the node.
    pub program: PathBuf,
    /// Its SHA-256, in lower-case hexadecimal, by which it is checked there before it runs.
    pub hash: String,
}

/// One address of a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Endpoint {
    /// Where streams of this endpoint start and end.
    pub address: IpAddr,
    /// Which network it belongs to.
    pub layer: Layer,
    /// Network namespace inside the host in which the address lives, such as
    /// `/var/run/docker/netns/ingress_sbox`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netns: Option<PathBuf>,
    /// Rate of the link behind the address in bit/s, where known and not readable on the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_bps: Option<f64>,
}

/// Which network an endpoint belongs to. Only endpoints of the same layer are measured against each other.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
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

    /// Whether both hosts are on one machine: their traffic passes no NIC. A switch that they share is none.
    pub fn same_machine(&self, a: &str, b: &str) -> bool {
        let groups = self.groups_of(b);
        self.groups_of(a)
            .iter()
            .any(|g| g.machine.is_some() && groups.iter().any(|other| other.name == g.name))
    }

    /// All groups of a host, direct ones first, then their parents; each once. Stops at a cycle.
    pub fn groups_of(&self, host: &str) -> Vec<&Group> {
        let mut found: Vec<&Group> = Vec::new();
        let mut known: HashSet<&str> = HashSet::new();
        let mut todo: VecDeque<&str> =
            self.host(host).map_or(VecDeque::new(), |h| h.groups.iter().map(String::as_str).collect());
        while let Some(name) = todo.pop_front() {
            if let Some(group) = self.group(name).filter(|g| known.insert(&g.name)) {
                found.push(group);
                todo.extend(group.parent.as_deref());
            }
        }
        found
    }

    /// The hosts with endpoints that belong to the group, directly or through nested groups, in inventory
    /// order.
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
            TransportSpec::Local
            | TransportSpec::Netns { .. }
            | TransportSpec::Ssh(_)
            | TransportSpec::Slurm(_) => None,
        }
    }

    /// Whether a watch waits for the agent of a host instead of reaching it.
    pub fn has_agent(&self, host: &Host) -> bool {
        let is_named = |names: &Vec<String>| {
            names.is_empty()
                || names.contains(&host.name)
                || self.groups_of(&host.name).iter().any(|group| names.contains(&group.name))
        };
        let has_node = !matches!(host.transport, TransportSpec::Iperf3 { .. });
        has_node && self.agents.as_ref().is_some_and(|agents| is_named(&agents.hosts))
    }

    /// Forbids `sudo` on all hosts.
    pub fn without_sudo(&mut self) {
        for host in &mut self.hosts {
            if let TransportSpec::Ssh(spec) = &mut host.transport {
                spec.sudo = false;
            }
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

/// Positions of the names of an inventory, made at the first look-up. Each hit is checked against the list
/// and anything else is searched for, so an inventory that was changed after a look-up costs time but never
/// gives a wrong answer.
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

    #[test]
    fn words_of_the_command_line_name_a_host() {
        let read = |text: &str| {
            let spec = SshSpec::parse(text).unwrap();
            (spec.user.unwrap_or_default(), spec.host, spec.port.unwrap_or_default())
        };
        let is = |user: &str, host: &str, port: u16| (user.to_owned(), host.to_owned(), port);
        assert_eq!(read("arc-1"), is("", "arc-1", 0));
        assert_eq!(read("ops@arc-1:2222"), is("ops", "arc-1", 2222));
        assert_eq!(read("a@corp@arc-1"), is("a@corp", "arc-1", 0));
        assert_eq!(read("2001:db8::1"), is("", "2001:db8::1", 0));
        assert_eq!(read("ops@[2001:db8::1]:22"), is("ops", "2001:db8::1", 22));
        assert_eq!(read("[fe80::1%eth0]"), is("", "fe80::1%eth0", 0));
    }

    #[test]
    fn what_could_be_an_option_or_a_command_is_no_host() {
        for text in [
            "",
            "-oProxyCommand=x",
            "a@-x",
            "-l@a",
            "@a",
            "a b",
            "a;b",
            "$(a)",
            "`a`",
            "a\nb",
            "a:0",
            "a:x",
            "a:99999",
            "[a]x",
        ] {
            assert!(SshSpec::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_stored_host_keeps_its_shape() {
        let spec = TransportSpec::Ssh(SshSpec::parse("ops@arc-1").unwrap());
        let text = serde_json::to_string(&spec).unwrap();
        assert_eq!(text, r#"{"ssh":{"host":"arc-1","user":"ops"}}"#);
        assert_eq!(serde_json::from_str::<TransportSpec>(&text).unwrap(), spec);
    }

    fn host(name: String) -> Host {
        Host {
            name,
            transport: TransportSpec::Local,
            groups: vec!["rack".to_owned()],
            endpoints: Vec::new(),
            state_dir: None,
            etc_dir: None,
            cache_dir: None,
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
