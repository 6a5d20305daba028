//! `linerate disk …`: what concerns block devices. One file per command beside this one.

mod bench;
mod builds;
mod durability;
mod plan;
mod undo;
mod watch;

use std::path::Path;

use linerate_model::exit::ExitCode;

use super::open;
use super::via::{self, Hosts, Via};
use crate::inventory;

/// Block devices: watch them, measure them, plan volumes over many of them, and see what they keep when the power is cut.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Watch(watch::Args),
    Durability(durability::Args),
    Plan(Box<plan::Args>),
    Builds(builds::Args),
    Undo(undo::Args),
    // Much larger than the others.
    Bench(Box<bench::Args>),
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::Watch(args) => watch::run(args),
        Command::Durability(args) => durability::run(args),
        Command::Plan(args) => plan::run(args),
        Command::Builds(args) => builds::run(args),
        Command::Undo(args) => undo::run(args),
        Command::Bench(args) => bench::run(args),
    }
}

/// The hosts whose block devices are meant: those of a job, of an inventory, those named, or this one. `None` after an interrupt.
async fn hosts(
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
