//! The hosts whose block devices are meant.

use std::path::{Path, PathBuf};

use super::super::open;
use super::super::via::{self, Hosts, Via};
use linerate_inventory as inventory;

/// Hosts of a command that loads block devices.
#[derive(Debug, clap::Args)]
pub(super) struct LoadedHosts {
    /// Hosts to reach over ssh; defaults to this machine. With --inventory: names from the inventory;
    /// defaults to all of its hosts
    #[arg(value_name = "HOST")]
    pub(super) hosts: Vec<String>,
    /// Inventory file
    #[arg(short, long, value_name = "FILE", conflicts_with = "via")]
    pub(super) inventory: Option<PathBuf>,
    #[command(flatten)]
    pub(super) via: Via,
    /// Never use sudo on hosts
    #[arg(long)]
    no_sudo: bool,
}

impl LoadedHosts {
    /// The hosts themselves; `None` after an interrupt.
    pub(super) async fn open(&self) -> anyhow::Result<Option<Hosts>> {
        hosts(&self.via, self.inventory.as_deref(), &self.hosts, self.no_sudo).await
    }
}

/// The hosts whose block devices are meant: those of a job, of an inventory, those named, or this one. `None`
/// after an interrupt.
pub(super) async fn hosts(
    via: &Via,
    inventory: Option<&Path>,
    named: &[String],
    no_sudo: bool,
) -> anyhow::Result<Option<Hosts>> {
    if via.is_asked() {
        return via::hosts(via, None).await;
    }
    let mut chosen = match inventory {
        Some(path) => open::inventory(path, named)?,
        None if named.is_empty() => inventory::named(&["localhost".to_owned()])?,
        None => inventory::named(named)?,
    };
    if no_sudo {
        chosen.without_sudo();
    }
    Ok(Some(Hosts::free(chosen, inventory.map(open::absolute))))
}
