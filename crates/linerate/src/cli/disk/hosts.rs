//! The hosts whose block devices are meant.

use super::super::targets::{self, InventoryFile};
use super::super::via::{self, Hosts, Via};

/// Hosts of a command that loads block devices.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct LoadedHosts {
    /// Hosts: of the inventory, or over ssh; defaults to all of -i, without it to this machine
    #[arg(value_name = "HOST")]
    pub(in crate::cli) hosts: Vec<String>,
    #[command(flatten)]
    pub(in crate::cli) inventory: InventoryFile,
    #[command(flatten)]
    pub(in crate::cli) via: Via,
    /// Never use sudo on hosts
    #[arg(long, hide_short_help = true)]
    no_sudo: bool,
}

impl LoadedHosts {
    /// The hosts themselves; `None` after an interrupt.
    pub(in crate::cli) async fn open(&self) -> anyhow::Result<Option<Hosts>> {
        hosts(&self.via, &self.inventory, &self.hosts, self.no_sudo).await
    }
}

/// The hosts whose block devices are meant: those of a job, of an inventory, those named, or this one. `None`
/// after an interrupt.
pub(in crate::cli) async fn hosts(
    via: &Via,
    inventory: &InventoryFile,
    named: &[String],
    no_sudo: bool,
) -> anyhow::Result<Option<Hosts>> {
    if via.is_asked() {
        return via::hosts(via, None).await;
    }
    // A load on drives is for hosts that were named: an inventory that is there by itself names none.
    let here = ["localhost".to_owned()];
    let named = if named.is_empty() && inventory.given().is_none() { &here } else { named };
    let mut chosen = targets::machines(inventory.choose(named)?);
    if no_sudo {
        chosen.inventory.without_sudo();
    }
    Ok(Some(chosen.into()))
}
