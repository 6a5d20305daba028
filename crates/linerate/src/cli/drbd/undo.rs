//! `linerate drbd undo`: what `up` built is taken back, from the journals on the hosts.

use linerate_model::exit::ExitCode;

use super::super::builds;
use super::super::hosts::{Hosts, Needs};
use super::up::build_of;

/// Revert `up`: stop the resource, wipe its metadata, restore its file. Keeps the data on the devices
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  linerate drbd undo r0 --really r0 store-1 store-2")]
pub(in crate::cli) struct Args {
    /// Name of the resource
    resource: String,
    #[command(flatten)]
    hosts: Hosts,
    /// Confirm non-interactively by repeating the resource name
    #[arg(long, value_name = "RESOURCE")]
    really: Option<String>,
    /// Keep metadata that this build did not create, and undo the rest; takes the resource name
    #[arg(long, value_name = "RESOURCE")]
    discard: Option<String>,
}

pub(in crate::cli) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let warning =
        format!("{} is not replicated any more after this, and its metadata are gone", args.resource);
    let discard = args.discard.as_deref();
    builds::confirm(&args.resource, args.really.as_deref(), discard, &warning)?;
    args.hosts.with(Needs::Sessions, async |fleet, _| {
        let taken = builds::take_back(fleet, &build_of(&args.resource), discard).await?;
        taken.show()?;
        Ok(taken.code())
    })
}
