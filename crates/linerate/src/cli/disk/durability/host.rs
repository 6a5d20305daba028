//! The one host that a command is about: this machine, a host over ssh, or one of an inventory.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use linerate_model::inventory::{Inventory, TransportSpec};

use super::super::super::targets::{self, InventoryFile};
use super::super::super::{open, out};
use linerate_fleet::{Fleet, NodeLink};

/// Host of a command.
#[derive(Debug, clap::Args)]
pub(super) struct Place {
    /// Host, reached over ssh or as the inventory specifies; defaults to this machine
    #[arg(long, value_name = "HOST")]
    on: Option<String>,
    #[command(flatten)]
    inventory: InventoryFile,
    /// Never use sudo on the host
    #[arg(long)]
    no_sudo: bool,
}

impl Place {
    /// The inventory and the name of the host. `known` is the host of a list of promises.
    pub(super) fn host(&self, known: Option<&str>) -> anyhow::Result<(Inventory, String)> {
        let wanted: Vec<String> = match self.on.as_deref().or(known) {
            Some(host) => vec![host.to_owned()],
            None if self.inventory.given().is_some() => Vec::new(),
            None => vec!["localhost".to_owned()],
        };
        let mut inventory = targets::machines(self.inventory.choose(&wanted)?).inventory;
        if self.no_sudo {
            inventory.without_sudo();
        }
        let names = || inventory.hosts.iter().map(|h| h.name.as_str()).collect::<Vec<_>>().join(", ");
        anyhow::ensure!(
            inventory.hosts.len() == 1,
            "the inventory has {} hosts\nhint: name one with --on: {}",
            inventory.hosts.len(),
            names()
        );
        let name = inventory.hosts.first().map(|h| h.name.clone()).context("the inventory has no host")?;
        Ok((inventory, name))
    }

    /// Opens a session with the host and works with it; ends it in every case. `None` when it was
    /// interrupted.
    pub(super) async fn with<T>(
        inventory: &Inventory,
        name: &str,
        work: impl AsyncFnOnce(Arc<NodeLink>) -> anyhow::Result<T>,
    ) -> anyhow::Result<Option<T>> {
        let Some(fleet) = open::unless_interrupted(Fleet::open(inventory, |host| host.name == name)).await
        else {
            return Ok(None);
        };
        fleet.notes.iter().for_each(|note| out::note(note));
        open::with_fleet(fleet, async |fleet| work(fleet.link(name)?).await).await
    }

    /// Whether the host is this machine, and a path of ours and one of it are on one file system.
    pub(super) fn shares_a_disk(inventory: &Inventory, name: &str, ours: &Path, its: &Path) -> bool {
        use std::os::unix::fs::MetadataExt as _;
        let here = inventory
            .host(name)
            .is_some_and(|h| matches!(h.transport, TransportSpec::Local | TransportSpec::Netns { .. }));
        // Neither of both is there yet.
        let device = |path: &Path| path.ancestors().find_map(|p| Some(std::fs::metadata(p).ok()?.dev()));
        here && device(&open::absolute(ours)).is_some_and(|ours| Some(ours) == device(its))
    }
}
