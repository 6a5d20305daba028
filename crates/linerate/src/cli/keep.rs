//! `linerate keep`: a trial that was measured is made to stay, and checked once more.

use std::path::PathBuf;

use linerate_model::exit::ExitCode;
use linerate_model::trial::TrialStatus;

use super::{open, out, progress};
use crate::trial::{self, FleetActions, drive};
use linerate_fleet::Fleet;
use linerate_fleet::clock;
use linerate_store::Store;

/// Persist a tried change across reboots.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  linerate keep 20261121-083015-4f2a")]
pub(super) struct Args {
    /// Trial ID
    trial: String,
    /// Inventory file; defaults to the run's inventory
    #[arg(short, long, value_name = "FILE")]
    inventory: Option<PathBuf>,
    /// Kept set that gets the settings; defaults to kept.toml beside the inventory
    #[arg(long, value_name = "FILE")]
    into: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Hide progress output
    #[arg(short, long)]
    quiet: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let progress = progress::start(args.quiet, args.json);
    let store = Store::open_default()?;
    let stored = store.load_trial(&args.trial)?;
    let row = store.find_run(Some(&stored.run))?;
    let mut snapshot = store.load_snapshot(&row.id)?;
    snapshot.inventory = open::inventory_of(args.inventory.as_deref(), &row, &store)?;
    let diagnosis = store.load_diagnosis(&row.id)?.unwrap_or_default();
    let inventory = snapshot.inventory.clone();
    let trial = open::runtime()?.block_on(async {
        let fleet = Fleet::open_with_progress(
            &inventory,
            |h| super::watcher::takes_part(&stored, h),
            progress.as_ref(),
        )
        .await;
        fleet.gaps.iter().for_each(|g| out::note(&format!("{}: {}", g.what, g.reason)));
        let mut hands = FleetActions::new(&fleet, &inventory);
        let scene = drive::Scene { snapshot: &snapshot, diagnosis: &diagnosis };
        let mut watch = super::watcher::Watcher::new(&store, progress.as_ref());
        let trial = trial::keep(
            &mut hands,
            scene,
            stored,
            &mut |trial, step, left| watch.step(trial, step, left),
            open::interrupted(),
        )
        .await;
        hands.bye().await;
        fleet.bye().await;
        trial
    });
    store.save_trial(&trial, clock::now_ms())?;
    super::trial::show(&trial, args.json)?;
    if trial.status == TrialStatus::Kept {
        let inventory = args.inventory.as_deref().or(row.inventory_path.as_deref().filter(|p| p.is_file()));
        match super::drift::add_trial(args.into.as_deref(), inventory, &trial) {
            Ok(Some(path)) => {
                out::note(&format!("added to {}: `linerate drift` compares it", path.display()));
            }
            Ok(None) => {}
            // The change itself is kept.
            Err(error) => out::note(&format!("not added to a kept set: {error:#}")),
        }
    }
    Ok(match trial.status {
        TrialStatus::Kept => ExitCode::Ok,
        TrialStatus::UndoFailed => ExitCode::RollbackFailed,
        TrialStatus::Undone => ExitCode::RolledBack,
        TrialStatus::Running | TrialStatus::Measured => ExitCode::Findings,
    })
}
