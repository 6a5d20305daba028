//! `linerate undo`: a trial, a volume or a replica is taken back; alone it lists what can be.

mod listed;
mod replica;
mod trials;
mod volume;

use std::path::Path;

use linerate_model::exit::ExitCode;

use super::hosts::{Hosts, Needs};
use super::targets::Chosen;
use super::{builds, open, out};
use crate::build::{DISK, DRBD};
use linerate_store::Store;

/// Undo a trial, a volume or a replica; without a name, list what is open
#[derive(Debug, clap::Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
#[command(
    after_help = "Examples:\n  linerate undo                                  what is open, each with its command\n  linerate undo 20261121-083015-4f2a             the trial of this ID: old values are restored\n  linerate undo data --yes=data store-1          the volume of `disk plan --apply`\n  linerate undo r0 --yes=r0 store-1 store-2      the replica of `drbd up`; its data stays\n\nA volume stays if it is mounted, in use, or holds what the build did not create; --discard NAME removes such\ncontent unless it is in use. Old file content stays on the drives; the output names drives that are not empty."
)]
pub(super) struct Args {
    /// Trial ID, or name of a volume or replica
    name: Option<String>,
    #[command(flatten)]
    hosts: Hosts,
    /// List what is open; all names are hosts
    #[arg(long, conflicts_with_all = ["all", "yes", "discard"])]
    list: bool,
    /// Undo all trials that are still open on any host
    #[arg(long, conflicts_with_all = ["yes", "discard"])]
    all: bool,
    /// Confirm non-interactively by repeating the name of the volume or replica
    #[arg(long, alias = "really", value_name = "NAME")]
    yes: Option<String>,
    /// Also remove content or keep metadata that the build did not create; takes the name
    #[arg(long, value_name = "NAME")]
    discard: Option<String>,
    /// The name is that of a volume
    #[arg(long, hide = true, conflicts_with = "replica")]
    volume: bool,
    /// The name is that of a replica
    #[arg(long, hide = true)]
    replica: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    /// The inventory file that was given.
    fn given(&self) -> Option<&Path> {
        self.hosts.given()
    }

    /// The hosts to ask for what is open: those named, else those of the last run.
    fn hosts_to_ask(&self, store: &Store) -> anyhow::Result<Chosen> {
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

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let store = Store::open_default()?;
    let name = match &args.name {
        Some(name) if !args.list && !args.all => name,
        _ if args.all => return trials::all(args, &store),
        _ => return listed::list(args, &store),
    };
    if args.volume {
        return volume::run(args, name);
    }
    if args.replica {
        return replica::run(args, name);
    }
    if let Ok(trial) = store.load_trial(name) {
        return trials::one(args, &store, trial);
    }
    match kind_of(args, name)? {
        Some(Kind::Volume) => volume::run(args, name),
        Some(Kind::Replica) => replica::run(args, name),
        None => Ok(open::after_interrupt()),
    }
}

/// What a build is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Volume,
    Replica,
}

/// What of this name was built on the hosts; `None` when it was interrupted.
fn kind_of(args: &Args, name: &str) -> anyhow::Result<Option<Kind>> {
    if args.hosts.is_none_named() {
        anyhow::bail!(
            "no trial `{name}` in the store\nhint: `linerate undo` lists what is open; a volume or replica needs its hosts: `linerate undo {} HOST`",
            out::word(name)
        );
    }
    let mut kinds = Vec::new();
    let code = args.hosts.with(Needs::Sessions, async |fleet, _| {
        let all = builds::all(fleet).await?;
        for (prefix, kind) in [(DISK, Kind::Volume), (DRBD, Kind::Replica)] {
            if all.iter().any(|build| build.build == format!("{prefix}{name}")) {
                kinds.push(kind);
            }
        }
        Ok(ExitCode::Ok)
    })?;
    match (kinds.as_slice(), code) {
        (_, ExitCode::Interrupted) => Ok(None),
        ([kind], _) => Ok(Some(*kind)),
        ([], _) => anyhow::bail!(
            "no volume or replica `{name}` on these hosts, and no trial: it was undone, or never begun\nhint: `linerate undo --list {}` lists what is there",
            args.hosts.words()
        ),
        _ => anyhow::bail!(
            "a volume and a replica are called `{name}`\nhint: --volume or --replica says which one is meant"
        ),
    }
}
