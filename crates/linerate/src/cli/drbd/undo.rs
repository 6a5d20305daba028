//! `linerate drbd undo`: what `up` built is taken back, from the journals on the hosts.

use linerate_model::exit::ExitCode;

use super::super::builds;
use super::super::hosts::{Hosts, Needs};
use super::up::build_of;

/// Take back what `up` built: resource down, metadata wiped, file as it was. The data on the devices stay
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  linerate drbd undo r0 --really r0 store-1 store-2")]
pub(in crate::cli) struct Args {
    /// Name of the resource
    resource: String,
    #[command(flatten)]
    hosts: Hosts,
    /// The name of the resource once more, instead of typing it when asked
    #[arg(long, value_name = "RESOURCE")]
    really: Option<String>,
    /// Leave metadata that are not those of this build as they are, and undo the rest: the name of the
    /// resource
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
