//! `linerate check uninstall`: gives hosts back what was there before `linerate check install`.

use linerate_model::exit::ExitCode;
use linerate_model::step::Step;
use linerate_report::steps;
use linerate_wire::message::BuildEntry;

use crate::cli::hosts::{Hosts, Needs};
use crate::cli::{builds, out};
use linerate_operator::build::{self, CHECK};

/// Undo `check install` on hosts (dry run).
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  linerate check uninstall --yes arc-1 arc-2")]
pub(super) struct Args {
    #[command(flatten)]
    hosts: Hosts,
    /// Act; without it nothing is written
    #[arg(long)]
    yes: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    args.hosts.with(Needs::Sessions, async |fleet, _| {
        if args.yes {
            let taken = builds::take_back(fleet, CHECK, None).await?;
            taken.show()?;
            return Ok(taken.code());
        }
        for host in fleet.hosts() {
            let entries = build::list(fleet, &host).await?;
            let done: Vec<Step> =
                entries.into_iter().filter(|entry| entry.build == CHECK).flat_map(undone).collect();
            let state = if done.is_empty() { "nothing is installed" } else { "" };
            out::print(&format!("{host}: {state}\n{}", steps::undo_text(done.iter())))?;
        }
        out::note("dry run: nothing was written; --yes undoes it");
        Ok(ExitCode::Ok)
    })
}

/// The steps of a build that an undo reverts: what was there before them stays.
fn undone(entry: BuildEntry) -> Vec<Step> {
    let BuildEntry { steps, was_there, .. } = entry;
    steps.into_iter().enumerate().filter(|(at, _)| !was_there.contains(at)).map(|(_, step)| step).collect()
}
