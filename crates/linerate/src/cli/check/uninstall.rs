//! `linerate check uninstall`: gives hosts back what was there before `linerate check install`.

use std::cell::Cell;

use linerate_fleet::Fleet;
use linerate_fleet::slurm::Scontrol;
use linerate_model::exit::ExitCode;
use linerate_model::step::{InstallStep, InstalledFile, Step};
use linerate_report::steps;
use linerate_wire::message::BuildEntry;

use super::files;
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
    let was_run_by_slurm = Cell::new(false);
    let code = args.hosts.with(Needs::Sessions, async |fleet, _| {
        was_run_by_slurm.set(is_run_by_slurm(fleet).await);
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
    })?;
    if was_run_by_slurm.get() {
        print_slurm_conf()?;
    }
    Ok(code)
}

/// Whether slurmd runs the checks of a host. What cannot be read is reported by what reads it next.
async fn is_run_by_slurm(fleet: &Fleet) -> bool {
    let is_script = |step: &Step| {
        matches!(step, Step::Install(InstallStep::File { file: InstalledFile::SlurmCheck, .. }))
    };
    for host in fleet.hosts() {
        let entries = build::list(fleet, &host).await.unwrap_or_default();
        if entries.iter().any(|entry| entry.build == CHECK && entry.steps.iter().any(is_script)) {
            return true;
        }
    }
    false
}

/// slurmd reports a program that is gone as an error in every interval, and the node works on.
fn print_slurm_conf() -> anyhow::Result<()> {
    let in_force = Scontrol::new(None).ok().and_then(|mut slurm| slurm.config().ok()).unwrap_or_default();
    let left = files::slurm_conf_left(&in_force);
    if left.is_empty() {
        return Ok(());
    }
    out::print(&format!(
        "by hand, where slurm.conf is managed and no node has the checks any more, then `scontrol reconfigure`:\n{left}"
    ))
}

/// The steps of a build that an undo reverts: what was there before them stays.
fn undone(entry: BuildEntry) -> Vec<Step> {
    let BuildEntry { steps, was_there, .. } = entry;
    steps.into_iter().enumerate().filter(|(at, _)| !was_there.contains(at)).map(|(_, step)| step).collect()
}
