//! Which hosts a command is about: an inventory file, or names on the command line that are reached over ssh.

use std::path::{Path, PathBuf};

use linerate_model::inventory::Inventory;

use super::via::Hosts;
use super::{open, out};
use crate::observe::addresses::{self, Net};
use linerate_fleet::Fleet;
use linerate_inventory as inventory;

/// Hosts of a command.
#[derive(Debug, clap::Args)]
pub(super) struct Targets {
    /// Hosts to reach over ssh: NAME, USER@NAME, NAME:PORT, or an alias from the ssh configuration; with
    /// --inventory, names from the inventory
    #[arg(value_name = "HOST", required_unless_present = "inventory")]
    hosts: Vec<String>,
    /// Inventory file; without HOST, selects all of its hosts
    #[arg(short, long, value_name = "FILE")]
    inventory: Option<PathBuf>,
}

impl Targets {
    /// The inventory of the file or of the names.
    pub(super) fn inventory(&self) -> anyhow::Result<Inventory> {
        Ok(match &self.inventory {
            Some(path) => open::inventory(path, &self.hosts)?,
            None => inventory::named(&self.hosts)?,
        })
    }

    /// The inventory file.
    pub(super) fn file(&self) -> Option<&Path> {
        self.inventory.as_deref()
    }

    /// The same hosts as words of another command.
    pub(super) fn words(&self) -> String {
        let file =
            self.inventory.iter().flat_map(|path| ["-i".to_owned(), out::word(&path.to_string_lossy())]);
        file.chain(self.hosts.iter().map(|host| out::word(host))).collect::<Vec<_>>().join(" ")
    }

    /// The same with where it came from.
    pub(super) fn hosts(&self) -> anyhow::Result<Hosts> {
        Ok(Hosts::free(self.inventory()?, self.inventory.as_deref().map(open::absolute)))
    }
}

/// Defaults for reaching and measuring hosts, where the inventory specifies nothing.
#[derive(Debug, Default, clap::Args)]
pub(super) struct Ways {
    /// Never use sudo on hosts; facts readable only by root are then missing
    #[arg(long)]
    no_sudo: bool,
    /// Network to measure in, e.g. 10.0.0.0/24, if the inventory has no addresses
    #[arg(long, value_name = "NETWORK")]
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
        if addresses::is_needed(inventory) {
            let how = addresses::fill(fleet, inventory, self.net).await;
            fleet.notes.extend(how);
        }
        fleet.notes.iter().for_each(|note| out::note(note));
    }
}
