//! `linerate rollout`: carries what was proven on one host to others, in waves; each host is measured beside
//! an untouched pair, and a wave that does harm is undone as a whole. What is planned is here, the waves in
//! `rollout/waves.rs`.

mod waves;

use std::path::PathBuf;
use std::time::Duration;

use linerate_kept::profile::GroupResult;
use linerate_kept::rollout::{self, HostResult, NotCarried, Rollout, RolloutWave, WaveStatus};
use linerate_knowledge::profile::{Profile, SettingGroup};
use linerate_model::exit::ExitCode;
use linerate_model::finding::Diagnosis;
use linerate_model::inventory::HostName;
use linerate_model::snapshot::Snapshot;
use linerate_model::trial::{Trial, TrialStatus};

use super::documents::RolloutShown;
use super::{open, out, profile, progress, quantity, trial};
use linerate_operator::trial::machine::Course;
use linerate_operator::trial::profile::{nic_of, remedy_id};
use linerate_report as report;
use linerate_store::{Rollouts, Store};
use waves::Waves;

/// Carry a proven trial or profile to more hosts in waves; undo a wave that does harm
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate rollout 20261121-083015-4f2a --to arc-4 arc-5 arc-6 arc-7\n  linerate rollout esnet-transfer-100g --to dtn-3 dtn-4 --wave 1 --yes\n  linerate rollout --resume 20261121-091244-03be --yes\n\nWithout --yes the plan is printed and nothing is written. Waves have 1, 2, 4, … hosts. Each host is measured\nbefore and after; what is kept survives reboots, and `linerate undo` lists it."
)]
pub(super) struct Args {
    /// Proven trial, or profile with proven groups
    #[arg(value_name = "TRIAL|PROFILE", required_unless_present = "resume", requires = "to")]
    source: Option<String>,
    /// Hosts to change
    #[arg(long, value_name = "HOST", num_args = 1.., requires = "source")]
    to: Vec<HostName>,
    /// Hosts in each wave; defaults to 1, 2, 4, …
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..), conflicts_with = "resume")]
    wave: Option<u16>,
    /// Resume a rollout with the wave at which it ended
    #[arg(long, value_name = "ID", conflicts_with = "source")]
    resume: Option<String>,
    /// Change hosts; without it only the plan is printed
    #[arg(long)]
    yes: bool,
    /// Run with the pairs of the hosts; defaults to the last run
    #[arg(long, conflicts_with = "resume")]
    run: Option<String>,
    /// Number of measurements of each host, a multiple of four
    #[arg(long, default_value_t = Course::default().arms, value_parser = trial::arms, conflicts_with = "resume")]
    arms: usize,
    /// Duration of each transfer, e.g. 500ms; defaults to what the pair needs
    #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
    transfer: Option<Duration>,
    /// Inventory file; defaults to the run's inventory
    #[arg(short, long, value_name = "FILE")]
    inventory: Option<PathBuf>,
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
    let rollouts = Rollouts::open_default()?;
    let resumed: Option<Rollout> = args.resume.as_ref().map(|id| rollouts.load_plan(id)).transpose()?;
    let run = resumed.as_ref().map(|rollout| rollout.run.as_str()).or(args.run.as_deref());
    let (snapshot, diagnosis) = trial::scene(&store, run, args.inventory.as_deref())?;
    let rollout = match resumed {
        Some(rollout) => rollout,
        None => planned(args, &store, &snapshot, &diagnosis)?,
    };
    let (waves, ended) = if args.yes {
        rollouts.save_plan(&rollout.id, &rollout)?;
        let work = Waves {
            rollout: &rollout,
            snapshot: &snapshot,
            diagnosis: &diagnosis,
            transfer_ms: quantity::whole_ms(args.transfer),
            store: &store,
            rollouts: &rollouts,
            progress: progress.as_ref(),
        };
        open::runtime()?.block_on(work.run())?
    } else {
        (waves::journal(&rollouts, &rollout)?, Ok(()))
    };
    print(&rollouts, &rollout, &waves, !args.yes, args.json)?;
    ended?;
    Ok(if args.yes { code(&waves) } else { ExitCode::Ok })
}

/// Prints a rollout as its journals have it.
pub(super) fn show(rollouts: &Rollouts, rollout: &Rollout, json: bool) -> anyhow::Result<()> {
    print(rollouts, rollout, &waves::journal(rollouts, rollout)?, false, json)
}

fn print(
    rollouts: &Rollouts,
    rollout: &Rollout,
    waves: &[RolloutWave],
    is_dry_run: bool,
    json: bool,
) -> anyhow::Result<()> {
    let folder = (!is_dry_run).then(|| rollouts.folder(&rollout.id));
    if json {
        let document = RolloutShown { rollout, is_dry_run, waves, folder: folder.as_deref() };
        return out::document(report::rollout::verdict(rollout, waves), document);
    }
    out::print(&report::rollout::text(rollout, waves, is_dry_run, report::heat::Style::detect()))?;
    if let Some(folder) = folder {
        out::note(&format!("journals: {}", folder.display()));
    }
    Ok(())
}

/// A new rollout.
fn planned(
    args: &Args,
    store: &Store,
    snapshot: &Snapshot,
    diagnosis: &Diagnosis,
) -> anyhow::Result<Rollout> {
    let source = args.source.clone().unwrap_or_default();
    for (at, host) in args.to.iter().enumerate() {
        anyhow::ensure!(
            snapshot.inventory.host(host).is_some(),
            "no host {host} in the inventory\nhint: `linerate inventory` lists them"
        );
        anyhow::ensure!(!args.to[..at].contains(host), "{host} was named twice\nhint: name each host once");
    }
    // A name of a profile is no id of a trial, which begins with a date.
    let (trials, groups) = match profile::named::find(&source) {
        Ok(profile) => proven_groups(store, &profile)?,
        Err(_) => proven_trial(store, &source)?,
    };
    let first = trials.first().ok_or_else(|| anyhow::anyhow!("nothing is proven"))?;
    Ok(Rollout {
        id: linerate_operator::run_id::new_id(),
        source,
        trials: trials.iter().map(|trial| trial.id.clone()).collect(),
        run: diagnosis.run.clone(),
        metric: first.response,
        receives: rollout::receives(first),
        groups,
        waves: rollout::waves(&args.to, args.wave.map(usize::from)),
        arms: args.arms,
    })
}

type Proven = (Vec<Trial>, Vec<linerate_knowledge::profile::ProfileGroup>);

/// The newest trial of each group of a profile, where it is proven and was not undone since.
fn proven_groups(store: &Store, profile: &Profile) -> anyhow::Result<Proven> {
    let rows = store.list_trials()?;
    let (mut trials, mut proven): (Vec<Trial>, Vec<SettingGroup>) = (Vec::new(), Vec::new());
    for group in &profile.groups {
        let id = remedy_id(&profile.id, group.group);
        let Some(row) = rows.iter().find(|row| row.remedy == id) else { continue };
        let trial = store.load_trial(&row.id)?;
        let stands = matches!(trial.status, TrialStatus::Measured | TrialStatus::Kept);
        if stands && GroupResult::of(&trial) == GroupResult::Proven {
            trials.push(trial);
            proven.push(group.group);
        }
    }
    anyhow::ensure!(
        !trials.is_empty(),
        "no group of {0} is proven\nhint: `linerate profile try {0} --on HOST` measures them",
        profile.id
    );
    Ok((trials, rollout::groups_of(profile, &proven)))
}

/// The settings of a trial.
fn proven_trial(store: &Store, id: &str) -> anyhow::Result<Proven> {
    let trial = store.load_trial(id)?;
    let snapshot = store.load_snapshot(&trial.run)?;
    let nic = |host: &str| nic_of(&snapshot.inventory, host, snapshot.facts.get(host)?);
    match rollout::settings_of(&trial, nic) {
        Ok(groups) => Ok((vec![trial], groups)),
        Err(NotCarried::NotProven) => anyhow::bail!(
            "trial {} is not proven to be better\nhint: `linerate runs` lists trials with their results",
            trial.id
        ),
        Err(NotCarried::OfOneHost(key)) => anyhow::bail!(
            "trial {}: {key} belongs to its host alone\nhint: try it on each host with `linerate try`",
            trial.id
        ),
    }
}

/// The code that a rollout deserves.
fn code(waves: &[RolloutWave]) -> ExitCode {
    let mut hosts = waves.iter().flat_map(|wave| &wave.hosts);
    if hosts.any(|host| host.result == HostResult::UndoFailed) {
        ExitCode::RollbackFailed
    } else if waves.iter().any(|wave| wave.status == WaveStatus::Undone) {
        ExitCode::RolledBack
    } else if waves.iter().all(|wave| wave.status == WaveStatus::Done) {
        ExitCode::Ok
    } else {
        ExitCode::Interrupted
    }
}
