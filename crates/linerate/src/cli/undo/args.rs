//! Options of `linerate undo`, and the hosts that they mean.

use std::path::Path;

use crate::cli::hosts::Hosts;
use crate::cli::open;
use crate::cli::targets::Chosen;
use linerate_store::Store;

/// Undo a trial, a volume or a replica; without a name, list what is open
#[derive(Debug, clap::Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
#[command(
    after_help = "Examples:\n  linerate undo                                  what is open, each with its command\n  linerate undo 20261121-083015-4f2a             the trial of this ID: old values are restored\n  linerate undo data --yes=data store-1          the volume of `disk plan --apply`\n  linerate undo r0 --yes=r0 store-1 store-2      the replica of `drbd up`; its data stays\n\nA volume stays if it is mounted, in use, or holds what the build did not create; --discard NAME removes such\ncontent unless it is in use. Old file content stays on the drives; the output names drives that are not empty."
)]
pub(in crate::cli) struct Args {
    /// Trial ID, or name of a volume or replica
    pub(super) name: Option<String>,
    #[command(flatten)]
    pub(super) hosts: Hosts,
    /// List what is open; all names are hosts
    #[arg(long, conflicts_with_all = ["all", "yes", "discard"])]
    pub(super) list: bool,
    /// Undo all trials that are still open on any host
    #[arg(long, conflicts_with_all = ["yes", "discard"])]
    pub(super) all: bool,
    /// Confirm non-interactively by repeating the name of the volume or replica
    #[arg(long, alias = "really", value_name = "NAME")]
    pub(super) yes: Option<String>,
    /// Also remove content or keep metadata that the build did not create; takes the name
    #[arg(long, value_name = "NAME")]
    pub(super) discard: Option<String>,
    /// The name is that of a volume
    #[arg(long, hide = true, conflicts_with = "replica")]
    pub(super) volume: bool,
    /// The name is that of a replica
    #[arg(long, hide = true)]
    pub(super) replica: bool,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

impl Args {
    /// The inventory file that was given.
    pub(super) fn given(&self) -> Option<&Path> {
        self.hosts.given()
    }

    /// The hosts to ask for what is open: those named, else those of the last run.
    pub(super) fn hosts_to_ask(&self, store: &Store) -> anyhow::Result<Chosen> {
        let first = self.name.iter().cloned();
        let chosen = self.hosts.with_first(first);
        if self.name.is_some() || self.given().is_some() {
            return chosen;
        }
        chosen.or_else(|none| {
            let Ok(row) = store.find_diagnosable(None) else { return Err(none) };
            let inventory = open::inventory_of(None, &row, store)?;
            Ok(Chosen { inventory, file: row.inventory_path, ends: Vec::new() })
        })
    }
}
