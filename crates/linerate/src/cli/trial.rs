//! `linerate try`: change what a remedy says, prove the effect beside an untouched control, put it back (or
//! keep it).

use std::path::PathBuf;

use linerate_model::exit::ExitCode;
use linerate_model::inventory::{Host, HostName};
use linerate_model::trial::{Effect, Trial, TrialStatus};

use super::{open, out, progress};
use crate::trial::machine::Course;
use crate::trial::{self, FleetActions, TrialOptions, choose, drive};
use linerate_fleet::Fleet;
use linerate_fleet::clock;
use linerate_fleet::progress::{Progress, ProgressPhase};
use linerate_report as report;
use linerate_store::Store;

/// Try a fix reversibly: baseline and changed interleaved, with an untouched control pair.
// Each is a flag of the command line.
#[allow(clippy::struct_excessive_bools)]
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate try nic-gro-overlay --on vs-2\n  linerate try tcp-rmem-small --on arc-3 --keep"
)]
pub(super) struct Args {
    /// Fix to try: the name after `Try` in the verdict
    remedy: String,
    /// Host to change; repeatable; defaults to all hosts that the fix names
    #[arg(long, value_name = "HOST")]
    on: Vec<HostName>,
    /// Run with the finding to fix; defaults to the last run
    #[arg(long)]
    run: Option<String>,
    /// Keep the change if it is a proven improvement
    #[arg(long)]
    keep: bool,
    /// Number of measurements, a multiple of four
    #[arg(long, default_value_t = Course::default().arms, value_parser = arms)]
    arms: usize,
    /// Duration of each transfer in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 0, hide_default_value = true)]
    transfer_ms: u32,
    /// Inventory file; defaults to the run's inventory
    #[arg(short, long, value_name = "FILE")]
    inventory: Option<PathBuf>,
    /// Print the planned changes and measurements without changing anything
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Hide progress output
    #[arg(short, long)]
    quiet: bool,
}

fn arms(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count @ 4..=64) if count % 4 == 0 => Ok(count),
        _ => Err(format!("{text} arms\nhint: 4, 8, 12, … up to 64")),
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let progress = progress::start(args.quiet, args.json);
    let store = Store::open_default()?;
    let row = store.find_run(args.run.as_deref())?;
    let mut snapshot = store.load_snapshot(&row.id)?;
    snapshot.inventory = open::inventory_of(args.inventory.as_deref(), &row, &store)?;
    let diagnosis = match store.load_diagnosis(&row.id)? {
        Some(diagnosis) => diagnosis,
        None => linerate_report::words::diagnose(&snapshot, &open::knowledge()?),
    };
    let options = TrialOptions {
        remedy: args.remedy.clone(),
        on: args.on.clone(),
        course: Course { arms: args.arms, keep: args.keep, ..Course::default() },
        transfer_ms: args.transfer_ms,
    };
    let id = crate::run_id::new_id();
    let planned = choose::plan(&snapshot, &diagnosis, &options, id.clone())?;
    if args.dry_run {
        show(&planned, args.json)?;
        return Ok(ExitCode::Ok);
    }
    // What cannot be recorded is not begun.
    store.save_trial(&planned, clock::now_ms())?;
    let inventory = snapshot.inventory.clone();
    let trial = open::runtime()?.block_on(async {
        let fleet = Fleet::open_told(&inventory, |h| takes_part(&planned, h), progress.as_ref()).await;
        fleet.gaps.iter().for_each(|g| out::note(&format!("{}: {}", g.what, g.reason)));
        let mut hands = FleetActions::new(&fleet, &inventory);
        let scene = drive::Scene { snapshot: &snapshot, diagnosis: &diagnosis };
        let mut watch = Watcher::new(&store, progress.as_ref());
        let done = trial::run(
            &mut hands,
            scene,
            &options,
            id,
            &mut |trial, step, left| watch.step(trial, step, left),
            open::interrupted(),
        )
        .await;
        hands.bye().await;
        fleet.bye().await;
        done
    })?;
    store.save_trial(&trial, clock::now_ms())?;
    show(&trial, args.json)?;
    Ok(code(&trial))
}

/// Saves each step in the store and tells the progress.
pub(super) struct Watcher<'a> {
    store: &'a Store,
    progress: &'a dyn Progress,
    steps: usize,
}

impl<'a> Watcher<'a> {
    pub(super) fn new(store: &'a Store, progress: &'a dyn Progress) -> Self {
        Self { store, progress, steps: 0 }
    }

    pub(super) fn step(&mut self, trial: &Trial, step: &str, left: usize) {
        if let Err(error) = self.store.save_trial(trial, clock::now_ms()) {
            self.progress.note(&format!("the trial could not be saved: {error}"));
        }
        if left + 1 > self.steps {
            self.steps = left + 1;
            let name = format!("trial of {}", trial.remedy.id);
            // A step is a transfer of about a second, or next to nothing.
            let expected_s = Some(left as f64);
            self.progress.begin(&ProgressPhase { name: &name, unit: "steps", total: self.steps, expected_s });
        }
        if left == 0 {
            self.progress.step(self.steps, "", None);
            self.progress.end();
        } else {
            self.progress.step(self.steps - left, step, Some(left as f64));
        }
    }
}

/// Whether a host is changed or measured in the trial.
pub(super) fn takes_part(trial: &Trial, host: &Host) -> bool {
    let pairs = std::iter::once(&trial.pair).chain(&trial.control);
    trial.remedy.changes.iter().any(|c| c.host == host.name)
        || pairs.into_iter().any(|(from, to)| *from == host.name || *to == host.name)
}

/// Prints a trial.
pub(super) fn show(trial: &Trial, json: bool) -> anyhow::Result<()> {
    if json {
        return out::json(&serde_json::json!({ "schema": linerate_model::SCHEMA, "trial": trial }));
    }
    out::print(&report::text::trial(trial, report::heat::Style::detect()))
}

/// The code that a trial deserves.
fn code(trial: &Trial) -> ExitCode {
    match trial.status {
        TrialStatus::UndoFailed => ExitCode::RollbackFailed,
        TrialStatus::Undone => ExitCode::RolledBack,
        TrialStatus::Kept => ExitCode::Ok,
        TrialStatus::Running | TrialStatus::Measured => {
            let better = trial.effect.as_ref().is_some_and(|e| e.effect == Effect::Better);
            if better { ExitCode::Ok } else { ExitCode::Findings }
        }
    }
}
