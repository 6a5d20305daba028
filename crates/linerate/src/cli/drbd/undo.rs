//! `linerate drbd undo`: what `up` built is taken back, from the journals on the hosts.

use linerate_model::exit::ExitCode;

use super::super::out;
use super::hosts::{Hosts, Needs, really};
use super::up::build_of;
use crate::build;

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
}

pub(in crate::cli) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let warning =
        format!("{} is not replicated any more after this, and its metadata are gone", args.resource);
    really(&args.resource, args.really.as_deref(), &warning)?;
    args.hosts.with(Needs::Sessions, async |fleet, _| {
        let mut failed = false;
        for host in fleet.hosts().iter().rev() {
            match build::undo(fleet, host, &build_of(&args.resource)).await {
                Ok(lines) => lines.iter().try_for_each(|line| out::print(&format!("{host}: {line}")))?,
                Err(error) => {
                    failed = true;
                    out::say_error(&anyhow::Error::new(error));
                }
            }
        }
        Ok(if failed { ExitCode::RollbackFailed } else { ExitCode::Ok })
    })
}
