//! What the readers of other people's formats collect: hosts, nested groups, connection methods, and remarks
//! about everything that was left out. Turns it into checked groups and hosts.
//!
//! A group of another format may have several parents, ours have one: the first stays, and the members of the
//! group become direct members of the others.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::PathBuf;

use linerate_model::agents::AgentsSpec;
use linerate_model::download::DownloadSpec;
use linerate_model::inventory::{
    Endpoint, Group, GroupName, Host, HostName, Inventory, Layer, SshSpec, TransportSpec,
};
use linerate_model::notify::NotifyTarget;
use linerate_model::rounds::ThroughputRounds;
use schemars::JsonSchema;
use serde::Serialize;

use linerate_input::quoted;

use super::error::{Flaw, shown};

/// Longest name of a host or group: they stand in file names and matrix headings.
const NAME_BYTES_MAX: usize = 64;
/// Most hosts of an inventory.
pub const HOSTS_MAX: usize = 65_536;
/// Most groups.
const GROUPS_MAX: usize = 4096;
/// Most memberships of hosts in groups, direct ones.
const MEMBERSHIPS_MAX: usize = 1 << 20;
/// Remarks that are kept; more are only counted.
const REMARKS_MAX: usize = 1000;

/// What is known about reaching a host over ssh.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SshAccess {
    /// What `ssh` is called with when it is not the name of the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// User there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Port of its ssh server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
}

/// How a host is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ConnectMethod {
    /// Given by the inventory.
    Known(TransportSpec),
    /// Formats that know no transport of ours mean machines with an ssh server.
    Ssh(SshAccess),
}

/// The transport of a host that a stray format named. Only this function turns a [`ConnectMethod`] into what
/// the fleet works with.
pub fn transport_of(host: &str, method: &ConnectMethod) -> Result<TransportSpec, Flaw> {
    match method {
        ConnectMethod::Known(spec) => Ok(spec.clone()),
        ConnectMethod::Ssh(reach) => {
            let spec = SshSpec {
                host: reach.address.clone().unwrap_or_else(|| host.to_owned()),
                user: reach.user.clone(),
                port: reach.port,
                sudo: true,
            };
            spec.check().map_err(|what| Flaw::new(what, "a name that `ssh` takes"))?;
            Ok(TransportSpec::Ssh(spec))
        }
    }
}

/// A host as it was understood.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct HostRead {
    /// Name.
    pub name: HostName,
    /// How it is reached.
    pub way: ConnectMethod,
    /// Groups that it is a direct member of.
    pub groups: Vec<GroupName>,
    /// Addresses to measure between.
    pub endpoints: Vec<Endpoint>,
    /// Where the node keeps its journal, when not in the usual folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_dir: Option<PathBuf>,
    /// What stands for `/etc`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub etc_dir: Option<PathBuf>,
    /// In which folder of the host the node program is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_dir: Option<PathBuf>,
}

/// Something about a line that a person should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ListRemark {
    /// Line, 1-based; 0 when the line is unknown.
    pub line: usize,
    /// What stands there.
    pub what: String,
    /// Why it was left out, or what it means.
    pub why: String,
}

/// What was understood of a text.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Understood {
    /// Format that it was read as.
    pub format: &'static str,
    /// Name of the cluster; may be empty.
    pub name: String,
    /// Groups, nested by `parent`.
    pub groups: Vec<Group>,
    /// Hosts in the order of the text.
    pub hosts: Vec<HostRead>,
    /// See [`Inventory::disturbances`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disturbances: Option<PathBuf>,
    /// See [`Inventory::notify`].
    #[serde(skip)]
    pub notify: Vec<NotifyTarget>,
    /// See [`Inventory::downloads`].
    #[serde(skip)]
    pub downloads: Vec<DownloadSpec>,
    /// See [`Inventory::throughput`].
    #[serde(skip)]
    pub throughput: Option<ThroughputRounds>,
    /// See [`Inventory::agents`].
    #[serde(skip)]
    pub agents: Option<AgentsSpec>,
    /// What was left out, and why.
    pub ignored: Vec<ListRemark>,
    /// Worth knowing, but without a key in an inventory.
    pub notes: Vec<ListRemark>,
}

impl Understood {
    /// An inventory of our own.
    pub(super) fn ours(format: &'static str, inventory: Inventory) -> Self {
        let host = |host: Host| HostRead {
            name: host.name,
            way: ConnectMethod::Known(host.transport),
            groups: host.groups,
            endpoints: host.endpoints,
            state_dir: host.state_dir,
            etc_dir: host.etc_dir,
            cache_dir: host.cache_dir,
        };
        Self {
            format,
            name: inventory.name,
            groups: inventory.groups,
            hosts: inventory.hosts.into_iter().map(host).collect(),
            disturbances: inventory.disturbances,
            notify: inventory.notify,
            downloads: inventory.downloads,
            throughput: inventory.throughput,
            agents: inventory.agents,
            ignored: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// The inventory to work with.
    pub fn into_inventory(self) -> Result<Inventory, Flaw> {
        let host = |host: HostRead| {
            Ok(Host {
                transport: transport_of(&host.name, &host.way)?,
                name: host.name,
                groups: host.groups,
                endpoints: host.endpoints,
                state_dir: host.state_dir,
                etc_dir: host.etc_dir,
                cache_dir: host.cache_dir,
            })
        };
        Ok(Inventory {
            name: self.name,
            groups: self.groups,
            hosts: self.hosts.into_iter().map(host).collect::<Result<_, Flaw>>()?,
            disturbances: self.disturbances,
            notify: self.notify,
            downloads: self.downloads,
            throughput: self.throughput,
            agents: self.agents,
            ..Inventory::default()
        })
    }
}

/// A group under construction.
#[derive(Debug, Default)]
struct GroupDraft {
    name: GroupName,
    kind: String,
    line: usize,
    parents: Vec<usize>,
    children: Vec<usize>,
    hosts: Vec<usize>,
}

/// An inventory under construction.
#[derive(Debug, Default)]
pub(super) struct Draft {
    hosts: Vec<HostRead>,
    host_index: BTreeMap<HostName, usize>,
    groups: Vec<GroupDraft>,
    group_index: BTreeMap<GroupName, usize>,
    members: BTreeSet<(usize, usize)>,
    owners: BTreeMap<IpAddr, usize>,
    ignored: Vec<ListRemark>,
    ignored_more: usize,
    notes: Vec<ListRemark>,
}

impl Draft {
    /// The host of this name, made when it is new.
    pub(super) fn host(&mut self, name: &str) -> Result<&mut HostRead, Flaw> {
        let index = self.host_number(name)?;
        Ok(&mut self.hosts[index])
    }

    /// What is known about reaching a host.
    pub(super) fn reach(&mut self, name: &str) -> Result<&mut SshAccess, Flaw> {
        let host = self.host(name)?;
        if let ConnectMethod::Known(_) = host.way {
            host.way = ConnectMethod::Ssh(SshAccess::default());
        }
        match &mut host.way {
            ConnectMethod::Ssh(reach) => Ok(reach),
            ConnectMethod::Known(_) => unreachable!("it was made one above"),
        }
    }

    /// Whether a host of this name is there.
    pub(super) fn has_host(&self, name: &str) -> bool {
        self.host_index.contains_key(name)
    }

    /// The host that has an address.
    pub(super) fn owner(&self, address: IpAddr) -> Option<&str> {
        self.owners.get(&address).map(|host| self.hosts[*host].name.as_str())
    }

    /// Names of all hosts, in order.
    pub(super) fn host_names(&self) -> Vec<HostName> {
        self.hosts.iter().map(|host| host.name.clone()).collect()
    }

    fn host_number(&mut self, name: &str) -> Result<usize, Flaw> {
        if let Some(index) = self.host_index.get(name) {
            return Ok(*index);
        }
        name_fits("host", name)?;
        if self.hosts.len() >= HOSTS_MAX {
            return Err(Flaw::new(format!("more than {HOSTS_MAX} hosts"), "survey a part of the cluster"));
        }
        self.hosts.push(HostRead {
            name: name.to_owned(),
            way: ConnectMethod::Ssh(SshAccess::default()),
            groups: Vec::new(),
            endpoints: Vec::new(),
            state_dir: None,
            etc_dir: None,
            cache_dir: None,
        });
        self.host_index.insert(name.to_owned(), self.hosts.len() - 1);
        Ok(self.hosts.len() - 1)
    }

    /// Makes sure that a group is there. A later kind counts.
    pub(super) fn group(&mut self, name: &str, kind: &str, line: usize) -> Result<(), Flaw> {
        self.group_number(name, kind, line).map(drop)
    }

    fn group_number(&mut self, name: &str, kind: &str, line: usize) -> Result<usize, Flaw> {
        if let Some(index) = self.group_index.get(name) {
            return Ok(*index);
        }
        name_fits("group", name)?;
        if self.groups.len() >= GROUPS_MAX {
            return Err(Flaw::new(format!("more than {GROUPS_MAX} groups"), "survey a part of the cluster"));
        }
        self.groups.push(GroupDraft {
            name: name.to_owned(),
            kind: kind.to_owned(),
            line,
            ..GroupDraft::default()
        });
        self.group_index.insert(name.to_owned(), self.groups.len() - 1);
        Ok(self.groups.len() - 1)
    }

    /// Makes a host a member of a group.
    pub(super) fn join(&mut self, host: &str, group: &str, kind: &str, line: usize) -> Result<(), Flaw> {
        let (host, group) = (self.host_number(host)?, self.group_number(group, kind, line)?);
        self.join_numbers(host, group)
    }

    fn join_numbers(&mut self, host: usize, group: usize) -> Result<(), Flaw> {
        if self.members.len() >= MEMBERSHIPS_MAX {
            let what = format!("more than {MEMBERSHIPS_MAX} memberships of hosts in groups");
            return Err(Flaw::new(what, "survey a part of the cluster"));
        }
        if self.members.insert((host, group)) {
            self.groups[group].hosts.push(host);
            let name = self.groups[group].name.clone();
            self.hosts[host].groups.push(name);
        }
        Ok(())
    }

    /// Puts a group into another one.
    pub(super) fn nest(&mut self, group: &str, parent: &str, kind: &str, line: usize) -> Result<(), Flaw> {
        let (child, parent) = (self.group_number(group, kind, line)?, self.group_number(parent, kind, line)?);
        if !self.groups[child].parents.contains(&parent) {
            self.groups[child].parents.push(parent);
            self.groups[parent].children.push(child);
        }
        Ok(())
    }

    /// Gives a host an address in the network of the machines; one that cannot be measured to is remarked.
    pub(super) fn address(&mut self, host: &str, address: IpAddr, line: usize) -> Result<(), Flaw> {
        let number = self.host_number(host)?;
        let owner = self.owners.get(&address).copied();
        let why = match owner {
            Some(other) if other == number => return Ok(()),
            Some(other) => format!("the address of host {} already", self.hosts[other].name),
            None => {
                if let Some(why) = unfit(address) {
                    why.to_owned()
                } else if let Some(first) = self.hosts[number].endpoints.first() {
                    format!("{} is measured: one address per host and layer", first.address)
                } else {
                    self.owners.insert(address, number);
                    self.hosts[number].endpoints.push(Endpoint {
                        address,
                        layer: Layer::Underlay,
                        netns: None,
                        link_bps: None,
                    });
                    return Ok(());
                }
            }
        };
        self.ignore(line, format!("{address} of {host}"), why);
        Ok(())
    }

    /// An address or a name to reach a host at: an address is measured to as well.
    pub(super) fn reached_at(&mut self, host: &str, text: &str, line: usize) -> Result<(), Flaw> {
        if let Ok(address) = text.parse() {
            self.address(host, address, line)?;
        }
        let reach = self.reach(host)?;
        if text != host {
            reach.address = Some(text.to_owned());
        }
        Ok(())
    }

    /// Remarks that something was left out.
    pub(super) fn ignore(&mut self, line: usize, what: impl Into<String>, why: impl Into<String>) {
        if self.ignored.len() < REMARKS_MAX {
            self.ignored.push(ListRemark { line, what: shown(&what.into()), why: shown(&why.into()) });
        } else {
            self.ignored_more += 1;
        }
    }

    /// Remarks what has no key in an inventory.
    pub(super) fn note(&mut self, line: usize, what: impl Into<String>, why: impl Into<String>) {
        if self.notes.len() < REMARKS_MAX {
            self.notes.push(ListRemark { line, what: shown(&what.into()), why: shown(&why.into()) });
        }
    }

    /// All hosts of a group, also of the groups in it.
    fn hosts_in(&self, group: usize) -> BTreeSet<usize> {
        let (mut seen, mut hosts) = (BTreeSet::from([group]), BTreeSet::new());
        let mut todo = vec![group];
        while let Some(at) = todo.pop() {
            hosts.extend(&self.groups[at].hosts);
            todo.extend(self.groups[at].children.iter().filter(|child| seen.insert(**child)));
        }
        hosts
    }

    /// Names of the hosts of a group, also of the groups in it, in their order.
    pub(super) fn members(&self, group: &str) -> Vec<HostName> {
        let hosts = self.group_index.get(group).map_or_else(BTreeSet::new, |group| self.hosts_in(*group));
        hosts.into_iter().map(|host| self.hosts[host].name.clone()).collect()
    }

    /// The groups in an order in which parents come first, or a group that contains itself with its line.
    pub(super) fn parents_first(&self) -> Result<Vec<GroupName>, (usize, Flaw)> {
        let mut missing: Vec<usize> = self.groups.iter().map(|group| group.parents.len()).collect();
        let mut order: Vec<usize> = (0..self.groups.len()).filter(|group| missing[*group] == 0).collect();
        let mut next = 0;
        while let Some(group) = order.get(next).copied() {
            next += 1;
            for child in &self.groups[group].children {
                missing[*child] -= 1;
                if missing[*child] == 0 {
                    order.push(*child);
                }
            }
        }
        let Some(left) = missing.iter().position(|missing| *missing > 0) else {
            return Ok(order.into_iter().map(|group| self.groups[group].name.clone()).collect());
        };
        // Every group that is left has a parent that is left: going up long enough ends inside the cycle.
        let up = |group: usize| self.groups[group].parents.iter().copied().find(|p| missing[*p] > 0);
        let inside = (0..self.groups.len()).fold(left, |at, _| up(at).unwrap_or(at));
        let mut cycle = vec![self.groups[inside].name.clone()];
        let mut at = inside;
        while let Some(parent) = up(at) {
            cycle.push(self.groups[parent].name.clone());
            if parent == inside || cycle.len() > 12 {
                break;
            }
            at = parent;
        }
        let what = format!("group `{}` contains itself: {}", cycle[0], cycle.join(" in "));
        Err((self.groups[inside].line, Flaw::new(what, "take it out of one of the groups above it")))
    }

    /// What was understood. Fails at a group that contains itself.
    pub(super) fn finish(mut self, format: &'static str) -> Result<Understood, (usize, Flaw)> {
        self.parents_first()?;
        for host in &self.hosts {
            fits_ssh(host).map_err(|flaw| (0, flaw))?;
        }
        for child in 0..self.groups.len() {
            for parent in self.groups[child].parents.iter().skip(1).copied().collect::<Vec<_>>() {
                let line = self.groups[child].line;
                for host in self.hosts_in(child) {
                    self.join_numbers(host, parent).map_err(|flaw| (line, flaw))?;
                }
                let (child, parent) = (self.groups[child].name.clone(), self.groups[parent].name.clone());
                let why = format!("is in {parent} too: its hosts are direct members there");
                self.note(line, format!("group {child}"), why);
            }
        }
        if self.ignored_more > 0 {
            let what = format!("{} more", self.ignored_more);
            self.ignored.push(ListRemark { line: 0, what, why: format!("only {REMARKS_MAX} are listed") });
        }
        let parent = |group: &GroupDraft| Some(self.groups[*group.parents.first()?].name.clone());
        let groups = self
            .groups
            .iter()
            .map(|group| Group {
                name: group.name.clone(),
                kind: group.kind.clone(),
                parent: parent(group),
                ..Group::default()
            })
            .collect();
        Ok(Understood {
            format,
            name: String::new(),
            groups,
            hosts: self.hosts,
            disturbances: None,
            notify: Vec::new(),
            downloads: Vec::new(),
            throughput: None,
            agents: None,
            ignored: self.ignored,
            notes: self.notes,
        })
    }
}

/// Refuses what `ssh` could take for an option, or a shell for a command.
fn fits_ssh(host: &HostRead) -> Result<(), Flaw> {
    let ConnectMethod::Ssh(reach) = &host.way else { return Ok(()) };
    let address = reach.address.as_deref().unwrap_or(&host.name);
    for (what, text, more) in [
        ("address", address, "-_.:%"),
        // A user of a directory may be written as a mail address.
        ("user", reach.user.as_deref().unwrap_or("root"), "-_.+@"),
    ] {
        let fits = !text.is_empty()
            && !text.starts_with('-')
            && text.len() <= 255
            && text.chars().all(|c| c.is_alphanumeric() || more.contains(c));
        if !fits {
            let found = format!("the {what} of host `{}` is `{}`", host.name, shown(text));
            return Err(Flaw::new(found, format!("letters, digits and {more}, not beginning with -")));
        }
    }
    Ok(())
}

/// Whether a text can be the name of a host or group.
pub(super) fn name_fits(kind: &str, text: &str) -> Result<(), Flaw> {
    let fit = !text.is_empty()
        && text.len() <= NAME_BYTES_MAX
        && text.chars().all(|c| c.is_alphanumeric() || "-_.:@".contains(c));
    if fit {
        return Ok(());
    }
    Err(Flaw::new(
        format!("{kind} name `{}` is not allowed", quoted(text)),
        format!("letters, digits and -_.:@, 1 to {NAME_BYTES_MAX} bytes"),
    ))
}

/// Why an address is not one that other hosts can measure to.
pub(super) fn unfit(address: IpAddr) -> Option<&'static str> {
    let link_local = match address {
        IpAddr::V4(v4) => v4.is_link_local() || v4.is_broadcast(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    if address.is_loopback() {
        Some("a loopback address: other hosts cannot reach it")
    } else if address.is_unspecified() || address.is_multicast() || link_local {
        Some("not the address of one host")
    } else {
        None
    }
}
