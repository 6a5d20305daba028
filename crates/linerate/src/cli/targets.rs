//! Which hosts a command is about: names that choose from an inventory, or that are reached over ssh. The
//! inventory is the file that was given, else the usual one that is there.

use std::path::{Path, PathBuf};

use linerate_model::inventory::{HostName, Inventory};

use super::place::End;
use super::usual::{to_type, usual};
use super::via::Hosts;
use super::{open, out};
use linerate_fleet::Fleet;
use linerate_inventory::{self as inventory, THIS_MACHINE};
use linerate_operator::observe::addresses::{self, Net};

/// Inventory of a command.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct InventoryFile {
    /// Inventory [default: $LINERATE_INVENTORY, ./cluster.toml, ~/.config/linerate/cluster.toml]
    #[arg(short, long, value_name = "FILE")]
    inventory: Option<PathBuf>,
}

/// Hosts that were chosen.
#[derive(Debug)]
pub(super) struct Chosen {
    pub(super) inventory: Inventory,
    /// The file that they are of.
    pub(super) file: Option<PathBuf>,
    /// The hosts in the order in which they were named, each with the namespace inside of it; empty where all
    /// hosts of a file are meant.
    pub(super) ends: Vec<End>,
}

impl Chosen {
    /// Whether a namespace inside a host was named.
    pub(super) fn has_netns(&self) -> bool {
        self.ends.iter().any(|end| end.netns.is_some())
    }

    /// Names of the hosts in the order in which they were named.
    pub(super) fn names(&self) -> Vec<HostName> {
        self.ends.iter().map(|end| end.host.clone()).collect()
    }
}

impl InventoryFile {
    /// The file that was given.
    pub(super) fn given(&self) -> Option<&Path> {
        self.inventory.as_deref()
    }

    /// The hosts of these words; of a file all without words.
    pub(super) fn choose(&self, words: &[String]) -> anyhow::Result<Chosen> {
        let mut ends = words.iter().map(|word| End::parse(word)).collect::<anyhow::Result<Vec<_>>>()?;
        let names: Vec<String> = ends.iter().map(|end| end.host.clone()).collect();
        if let Some(file) = &self.inventory {
            return Ok(Chosen { inventory: of_file(file, &names)?, file: self.inventory.clone(), ends });
        }
        let file = usual();
        if let Some(file) = &file {
            let whole = open::inventory(file, &[])?;
            let known = |name: &&String| whole.host(name).is_some();
            if names.is_empty() || names.iter().any(|name| known(&name)) {
                out::note(&format!("inventory {}", file.display()));
                return Ok(Chosen { inventory: of_file(file, &names)?, file: Some(file.clone()), ends });
            }
        }
        anyhow::ensure!(
            !names.is_empty(),
            "no hosts\nhint: name hosts, or an inventory with -i FILE, or put one at ./cluster.toml"
        );
        // A host and a namespace inside of it are one session.
        let mut once: Vec<String> = Vec::new();
        for (at, name) in names.iter().enumerate() {
            if ends[at].netns.is_none() || !once.contains(name) {
                once.push(name.clone());
            }
        }
        let inventory = inventory::named(&once)?;
        for end in &mut ends {
            if let Some(at) = once.iter().position(|name| *name == end.host) {
                end.host.clone_from(&inventory.hosts[at].name);
            }
        }
        Ok(Chosen { inventory, file: None, ends })
    }
}

/// The hosts of these names in a file; this machine need not be in it.
fn of_file(file: &Path, names: &[String]) -> anyhow::Result<Inventory> {
    let whole = open::inventory(file, &[])?;
    let is_own = |name: &&String| THIS_MACHINE.contains(&name.as_str()) && whole.host(name).is_none();
    let here: Vec<String> = names.iter().filter(is_own).cloned().collect();
    let listed: Vec<String> = names.iter().filter(|name| !is_own(name)).cloned().collect();
    if listed.is_empty() && !here.is_empty() {
        return Ok(inventory::named(&here)?);
    }
    let mut chosen = inventory::selected(whole, &listed, &file.display().to_string())?;
    if !here.is_empty() {
        chosen.hosts.extend(inventory::named(&here)?.hosts);
    }
    chosen.typed = to_type(file);
    Ok(chosen)
}

/// Hosts of a command.
#[derive(Debug, clap::Args)]
pub(super) struct Targets {
    /// Hosts: names of the inventory, or NAME, USER@NAME, NAME:PORT over ssh, or `local`; with HOST!NETNS a
    /// namespace on it; defaults to all of the inventory
    #[arg(value_name = "HOST")]
    hosts: Vec<String>,
    #[command(flatten)]
    inventory: InventoryFile,
}

impl Targets {
    /// The hosts, with the namespaces inside of them.
    pub(super) fn chosen(&self) -> anyhow::Result<Chosen> {
        self.inventory.choose(&self.hosts)
    }

    /// The hosts as machines: what concerns a whole host has no namespaces.
    pub(super) fn machines(&self) -> anyhow::Result<Chosen> {
        self.machines_with(std::iter::empty())
    }

    /// The same with more hosts before them.
    pub(super) fn machines_with(&self, first: impl Iterator<Item = String>) -> anyhow::Result<Chosen> {
        let words: Vec<String> = first.chain(self.hosts.iter().cloned()).collect();
        Ok(machines(self.inventory.choose(&words)?))
    }

    /// The inventory file that was given.
    pub(super) fn given(&self) -> Option<&Path> {
        self.inventory.given()
    }

    /// The words that name hosts.
    pub(super) fn named(&self) -> &[String] {
        &self.hosts
    }

    /// The same hosts as words of another command.
    pub(super) fn words(&self) -> String {
        let given = self.inventory.given();
        let file = given.iter().flat_map(|path| ["-i".to_owned(), out::word(&path.to_string_lossy())]);
        file.chain(self.hosts.iter().map(|host| out::word(host))).collect::<Vec<_>>().join(" ")
    }
}

/// The same with the hosts alone: drives, volumes and files of a host are those of all its namespaces.
pub(super) fn machines(mut chosen: Chosen) -> Chosen {
    for end in &mut chosen.ends {
        if end.netns.take().is_some() {
            out::note(&format!(
                "{0}: this command is about the whole host, not one namespace of it",
                end.host
            ));
        }
    }
    chosen
}

impl From<Chosen> for Hosts {
    fn from(chosen: Chosen) -> Self {
        Self::free(chosen.inventory, chosen.file.as_deref().map(open::absolute))
    }
}

/// Defaults for reaching and measuring hosts, where the inventory specifies nothing.
#[derive(Debug, Default, clap::Args)]
pub(super) struct Ways {
    /// Never use sudo on hosts; facts readable only by root are then missing
    #[arg(long, hide_short_help = true)]
    no_sudo: bool,
    /// Network to measure in, e.g. 10.0.0.0/24, if the inventory has no addresses
    #[arg(long, value_name = "NETWORK", hide_short_help = true)]
    net: Option<Net>,
}

impl Ways {
    /// Applies `--no-sudo`.
    pub(super) fn without_sudo(&self, inventory: &mut Inventory) {
        if self.no_sudo {
            inventory.without_sudo();
        }
    }

    /// Says what was learned on the way to the hosts, and asks them for their addresses where the inventory
    /// has none.
    pub(super) async fn settle(&self, fleet: &mut Fleet, inventory: &mut Inventory) {
        // This machine was named beside hosts of a file: only the hosts know where both are.
        if inventory.hosts.iter().any(|h| h.endpoints.is_empty() && THIS_MACHINE.contains(&h.name.as_str())) {
            inventory.hosts.iter_mut().for_each(|host| host.endpoints.clear());
        }
        if addresses::is_needed(inventory) {
            let how = addresses::fill(fleet, inventory, self.net).await;
            fleet.notes.extend(how);
        }
        fleet.notes.iter().for_each(|note| out::note(note));
    }
}
