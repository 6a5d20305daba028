//! `linerate keep`: a trial that was measured is made to stay, and checked once more.

mod planned;

use std::path::PathBuf;

use anyhow::Context as _;
use linerate_model::exit::ExitCode;
use linerate_model::trial::TrialStatus;

use super::drift::{self, KeptLocation};
use super::{open, out, progress};
use linerate_fleet::Fleet;
use linerate_operator::trial::{self, FleetActions, drive};
use linerate_store::Store;

/// Persist a tried change across reboots.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate keep 20261121-083015-4f2a --dry-run   print the files and lines, write nothing\n  linerate keep 20261121-083015-4f2a"
)]
pub(super) struct Args {
    /// Trial ID
    trial: String,
    /// Inventory file; defaults to the run's inventory
    #[arg(short, long, value_name = "FILE")]
    inventory: Option<PathBuf>,
    /// Kept set that gets the settings; defaults to kept.toml beside the inventory, else the one in
    /// PostgreSQL
    #[arg(long, value_name = "FILE")]
    into: Option<PathBuf>,
    /// Print the files that would be written on each host, and their lines, without writing anything
    #[arg(long)]
    dry_run: bool,
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
    let file = args.inventory.as_deref().or(row.inventory_path.as_deref());
    if args.dry_run {
        let kept = KeptLocation::for_trial(args.into.as_deref(), file, &snapshot.inventory.name)?;
        let kept = kept.as_ref().map(KeptLocation::name);
        return planned::run(&stored, &snapshot.inventory, kept.as_deref(), args.json);
    }
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
    let saved = super::watcher::save(&store, &trial);
    super::trial::show(&trial, args.json)?;
    let added = match trial.status {
        TrialStatus::Kept => drift::add_trial(args.into.as_deref(), file, &inventory.name, &trial),
        _ => Ok(None),
    };
    if let Ok(Some(name)) = &added {
        out::note(&format!("added to {name}: `linerate drift` compares it"));
    }
    saved?;
    // The change itself is kept.
    added.with_context(|| {
        format!(
            "{0} is kept on its hosts, but in no kept set\nhint: `linerate keep {0}` adds it later",
            trial.id
        )
    })?;
    Ok(match trial.status {
        TrialStatus::Kept => ExitCode::Ok,
        TrialStatus::UndoFailed => ExitCode::RollbackFailed,
        TrialStatus::Undone => ExitCode::RolledBack,
        TrialStatus::Running | TrialStatus::Measured => ExitCode::Findings,
    })
}
