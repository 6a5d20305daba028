//! `linerate try`: change what a remedy says, prove the effect beside an untouched control, put it back (or
//! keep it).

use std::path::{Path, PathBuf};
use std::time::Duration;

use linerate_model::exit::ExitCode;
use linerate_model::finding::{Diagnosis, Metric};
use linerate_model::inventory::HostName;
use linerate_model::snapshot::Snapshot;
use linerate_model::trial::{Effect, Trial, TrialStatus};

use super::sweep::Sweep;
use super::watcher::{self, Watcher, takes_part};
use super::{open, out, progress, quantity};
use crate::cli::documents::OneTrial;
use linerate_fleet::Fleet;
use linerate_operator::trial::machine::{Course, KeepWhen};
use linerate_operator::trial::sweep::{self, SweepOptions, SweepSetting};
use linerate_operator::trial::{self, FleetActions, TrialOptions, choose, drive};
use linerate_report as report;
use linerate_store::Store;

/// Try a fix reversibly: old and new value in turns, beside an untouched control pair
// Each is a flag of the command line.
#[allow(clippy::struct_excessive_bools)]
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate try nic-gro-overlay --on vs-2\n  linerate try tcp-rmem-small --on arc-3 --keep\n  linerate try --set nic.eth0.coalesce.rx-usecs=0,8,32,64 --on arc-3 --measure rtt-idle\n  linerate try --set nic.eth0.mtu=9000 --set nic.vx0.mtu=8950 --on arc-1 --on arc-2"
)]
pub(super) struct Args {
    /// Fix to try: the name after `Try` in the verdict
    #[arg(required_unless_present = "set")]
    remedy: Option<String>,
    /// Host to change; repeatable; defaults to all hosts that the fix names
    #[arg(long, value_name = "HOST")]
    on: Vec<HostName>,
    /// Try values of a setting without a finding, each against the present one; repeat for settings that
    /// change together
    #[arg(long, value_name = "KEY=VALUE[,VALUE…]", value_parser = setting, conflicts_with = "remedy", requires = "on")]
    set: Vec<SweepSetting>,
    /// Pair to measure with --set; defaults to the run's worst pair with a changed host
    #[arg(long, value_name = "FROM,TO", value_parser = ends, requires = "set")]
    pair: Option<(HostName, HostName)>,
    /// Value to compare with --set: throughput, retransmits, rtt-idle, rtt-loaded, loss, stalls, cpu-cost
    #[arg(long, value_name = "NAME", default_value = "throughput", value_parser = metric, requires = "set")]
    measure: Metric,
    /// Run with the finding to fix; defaults to the last run
    #[arg(long)]
    run: Option<String>,
    /// Keep the change if it is a proven improvement
    #[arg(long)]
    keep: bool,
    /// Number of measurements, a multiple of four
    #[arg(long, default_value_t = Course::default().arms, value_parser = arms)]
    arms: usize,
    /// Duration of each transfer, e.g. 500ms; defaults to what the pair needs
    #[arg(long, value_name = "TIME", value_parser = quantity::duration, conflicts_with = "transfer_ms")]
    transfer: Option<Duration>,
    /// The same in milliseconds, as it was given before
    #[arg(long, hide = true)]
    transfer_ms: Option<u32>,
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

pub(super) fn arms(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count @ 4..=64) if count % 4 == 0 => Ok(count),
        _ => Err(format!("{text} arms\nhint: 4, 8, 12, … up to 64")),
    }
}

fn setting(text: &str) -> Result<SweepSetting, String> {
    sweep::parse(text).map_err(|error| error.to_string())
}

pub(super) fn ends(text: &str) -> Result<(HostName, HostName), String> {
    let ends = text.split_once(',').filter(|(from, to)| !from.is_empty() && !to.is_empty() && from != to);
    let (from, to) = ends.ok_or_else(|| format!("'{text}' is no pair\nhint: such as arc-1,arc-2"))?;
    Ok((from.to_owned(), to.to_owned()))
}

/// Values that a test of a pair shows in both directions of a change.
const MEASURED: [(&str, Metric); 7] = [
    ("throughput", Metric::Throughput),
    ("retransmits", Metric::Retransmits),
    ("rtt-idle", Metric::RttIdle),
    ("rtt-loaded", Metric::RttLoaded),
    ("loss", Metric::Loss),
    ("stalls", Metric::Stalls),
    ("cpu-cost", Metric::CpuCost),
];

fn metric(text: &str) -> Result<Metric, String> {
    let found = MEASURED.iter().find(|(name, _)| *name == text);
    let names = || MEASURED.map(|(name, _)| name).join(", ");
    found.map(|(_, metric)| *metric).ok_or_else(|| format!("'{text}' is not measured\nhint: {}", names()))
}

impl Args {
    /// Duration of each transfer in milliseconds; 0 where the pair decides.
    fn transfer_ms(&self) -> u32 {
        self.transfer_ms.unwrap_or_else(|| quantity::whole_ms(self.transfer))
    }
}

/// The run of this id, else the last one, with the inventory in force and its diagnosis.
pub(super) fn scene(
    store: &Store,
    run: Option<&str>,
    inventory: Option<&Path>,
) -> anyhow::Result<(Snapshot, Diagnosis)> {
    let row = open::run_to_diagnose(store, run)?;
    let mut snapshot = store.load_snapshot(&row.id)?;
    snapshot.inventory = open::inventory_of(inventory, &row, store)?;
    let diagnosis = match store.load_diagnosis(&row.id)? {
        Some(diagnosis) => diagnosis,
        None => linerate_report::words::diagnose(&snapshot, &open::knowledge()?),
    };
    Ok((snapshot, diagnosis))
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let progress = progress::start(args.quiet, args.json);
    let store = Store::open_default()?;
    let (snapshot, diagnosis) = scene(&store, args.run.as_deref(), args.inventory.as_deref())?;
    let course = Course { arms: args.arms, keep: KeepWhen::better_if(args.keep), ..Course::default() };
    let Some(remedy) = args.remedy.clone() else {
        let options = SweepOptions {
            set: args.set.clone(),
            on: args.on.clone(),
            pair: args.pair.clone(),
            response: args.measure,
        };
        let (snapshot, diagnosis) = (&snapshot, &diagnosis);
        let (transfer_ms, dry_run) = (args.transfer_ms(), args.dry_run);
        let sweep = Sweep { snapshot, diagnosis, options, course, transfer_ms, dry_run };
        return sweep.run(&store, progress.as_ref(), args.json);
    };
    let options = TrialOptions { remedy, on: args.on.clone(), course, transfer_ms: args.transfer_ms() };
    let id = linerate_operator::run_id::new_id();
    let planned = choose::plan(&snapshot, &diagnosis, &options, id.clone())?;
    if args.dry_run {
        show(&planned, args.json)?;
        return Ok(ExitCode::Ok);
    }
    // What cannot be recorded is not begun.
    watcher::save(&store, &planned)?;
    let inventory = snapshot.inventory.clone();
    let trial = open::runtime()?.block_on(async {
        let fleet =
            Fleet::open_with_progress(&inventory, |h| takes_part(&planned, h), progress.as_ref()).await;
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
    // What was measured is shown also where the store went away meanwhile.
    let saved = watcher::save(&store, &trial);
    show(&trial, args.json)?;
    saved?;
    Ok(code(&trial))
}

/// Prints a trial.
pub(super) fn show(trial: &Trial, json: bool) -> anyhow::Result<()> {
    if json {
        let summary = report::verdict::of_trials(std::slice::from_ref(trial), None);
        return out::document(summary, OneTrial { trial });
    }
    out::print(&report::text::trial_brief(trial, report::heat::Style::detect()))
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
