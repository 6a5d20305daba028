//! `linerate profile try`: one trial per group of a profile, each beside an untouched pair; only what is
//! proven stays, and only where that was asked for.

use std::path::PathBuf;
use std::time::Duration;

use linerate_kept::profile::{GroupOutcome, GroupResult, HostProfile};
use linerate_knowledge::profile::{Profile, SettingGroup};
use linerate_model::exit::ExitCode;
use linerate_model::finding::Diagnosis;
use linerate_model::inventory::HostName;
use linerate_model::snapshot::Snapshot;
use linerate_model::trial::{Trial, TrialStatus};

use super::super::documents::ProfileTried;
use super::super::sequence::{MadeTrials, Sequence};
use super::super::watcher::takes_part;
use super::super::{open, out, progress, quantity, trial};
use super::{diff, named};
use linerate_fleet::Fleet;
use linerate_fleet::progress::Progress;
use linerate_operator::trial::FleetActions;
use linerate_operator::trial::drive::Scene;
use linerate_operator::trial::machine::{Course, KeepWhen};
use linerate_operator::trial::profile::{ProfileOptions, plan};
use linerate_report as report;
use linerate_store::{Store, StoreError};

/// Try a profile: one reversible trial per group of settings, beside an untouched control pair
// Each is a flag of the command line.
#[allow(clippy::struct_excessive_bools)]
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate profile try esnet-transfer-100g --on dtn-1 dtn-2 --dry-run\n  linerate profile try esnet-transfer-100g --on dtn-1 dtn-2 --group buffers qdisc\n  linerate profile try tuned-network-latency --on arc-3 --keep-proven --yes\n\nNeeds a survey with the hosts. Old and new values take turns; nothing stays changed without --keep-proven."
)]
pub(in crate::cli) struct Args {
    /// Name of the profile, or a file of your own that ends in .toml
    name: String,
    /// Hosts to change together; with two or more, a pair between them is measured
    #[arg(long, value_name = "HOST", required = true, num_args = 1..)]
    on: Vec<HostName>,
    /// Groups to try; defaults to all
    #[arg(long, value_name = "GROUP", num_args = 1.., value_parser = group)]
    group: Vec<SettingGroup>,
    /// Pair to measure; defaults to the worst of the run between changed hosts, or with one
    #[arg(long, value_name = "FROM,TO", value_parser = trial::ends)]
    pair: Option<(HostName, HostName)>,
    /// Run with the hosts; defaults to the last run
    #[arg(long)]
    run: Option<String>,
    /// Keep each group that is proven better, also across reboots; later groups are tried on top of it
    #[arg(long, requires = "yes")]
    keep_proven: bool,
    /// Confirm --keep-proven
    #[arg(long)]
    yes: bool,
    /// Also try groups that may cut connectivity, e.g. the MTU
    #[arg(long)]
    disruptive: bool,
    /// Number of measurements of each group, a multiple of four
    #[arg(long, default_value_t = Course::default().arms, value_parser = trial::arms)]
    arms: usize,
    /// Duration of each transfer, e.g. 500ms; defaults to what the pair needs
    #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
    transfer: Option<Duration>,
    /// Inventory file; defaults to the run's inventory
    #[arg(short, long, value_name = "FILE")]
    inventory: Option<PathBuf>,
    /// Print the planned trials without changing or measuring anything
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Hide progress output
    #[arg(short, long)]
    quiet: bool,
}

/// A group by its word, as profiles write it.
fn group(text: &str) -> Result<SettingGroup, String> {
    serde_json::from_value(text.into())
        .map_err(|_| format!("unknown group: {text}\nhint: `linerate profile show NAME` lists the groups"))
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let profile = named::find(&args.name)?;
    let progress = progress::start(args.quiet, args.json);
    let store = Store::open_default()?;
    let (snapshot, diagnosis) = trial::scene(&store, args.run.as_deref(), args.inventory.as_deref())?;
    let (outcomes, saved) = open::runtime()?.block_on(async {
        let planned = planned(args, &profile, &snapshot, &diagnosis).await?;
        if args.dry_run || planned.iter().all(|outcome| outcome.trial.is_none()) {
            return anyhow::Ok((planned, Ok(())));
        }
        Ok(measure(args, &snapshot, &diagnosis, planned, &store, progress.as_ref()).await)
    })?;
    if args.json {
        let trials: Vec<Trial> = outcomes.iter().filter_map(|outcome| outcome.trial.clone()).collect();
        let summary = report::verdict::of_trials(&trials, None);
        out::document(summary, ProfileTried { profile: &profile.id, groups: &outcomes })?;
    } else {
        let style = report::heat::Style::detect();
        out::print(&report::profile::tried(&profile, &args.on, &outcomes, style))?;
    }
    saved?;
    Ok(code(&outcomes))
}

/// What there is to try, by the values that the hosts have now.
async fn planned(
    args: &Args,
    profile: &Profile,
    snapshot: &Snapshot,
    diagnosis: &Diagnosis,
) -> anyhow::Result<Vec<GroupOutcome>> {
    let inventory = &snapshot.inventory;
    let fleet = Fleet::open(inventory, |host| args.on.contains(&host.name)).await;
    let (facts, gaps) = diff::read(&fleet, inventory, |name| args.on.contains(name)).await;
    fleet.bye().await;
    if let Some(gap) = gaps.first() {
        anyhow::bail!("{}: {}", gap.what, gap.reason);
    }
    let compared: Vec<HostProfile> =
        facts.iter().map(|(name, facts)| diff::beside(profile, inventory, diagnosis, name, facts)).collect();
    for host in compared.iter().filter(|host| host.is_for_speed == Some(false)) {
        let speed = host.speed_gbits.unwrap_or_default();
        out::note(&format!("{}: {speed} Gbit/s, which the profile {} is not for", host.host, profile.id));
    }
    let options = ProfileOptions {
        on: args.on.clone(),
        groups: args.group.clone(),
        pair: args.pair.clone(),
        disruptive: args.disruptive,
    };
    Ok(plan(inventory, diagnosis, profile, &compared, &options, &linerate_operator::run_id::new_id())?)
}

async fn measure(
    args: &Args,
    snapshot: &Snapshot,
    diagnosis: &Diagnosis,
    planned: Vec<GroupOutcome>,
    store: &Store,
    progress: &dyn Progress,
) -> (Vec<GroupOutcome>, Result<(), StoreError>) {
    let inventory = &snapshot.inventory;
    let trials: Vec<Trial> = planned.iter().filter_map(|outcome| outcome.trial.clone()).collect();
    let takes = |host: &_| trials.iter().any(|trial| takes_part(trial, host));
    let fleet = Fleet::open_with_progress(inventory, takes, progress).await;
    fleet.gaps.iter().for_each(|g| out::note(&format!("{}: {}", g.what, g.reason)));
    let mut hands = FleetActions::new(&fleet, inventory);
    let sequence = Sequence {
        scene: Scene { snapshot, diagnosis },
        course: Course { arms: args.arms, keep: KeepWhen::better_if(args.keep_proven), ..Course::default() },
        transfer_ms: quantity::whole_ms(args.transfer),
        store,
        progress,
    };
    let MadeTrials { trials: done, saved } = sequence.each(&mut hands, trials.clone()).await;
    hands.bye().await;
    fleet.bye().await;
    let ended = |mut outcome: GroupOutcome| {
        let id = outcome.trial.as_ref().map(|trial| trial.id.clone());
        if let Some(trial) = done.iter().find(|trial| Some(&trial.id) == id.as_ref()) {
            outcome.result = GroupResult::of(trial);
            outcome.trial = Some(trial.clone());
        }
        outcome
    };
    (planned.into_iter().map(ended).collect(), saved)
}

/// The code that the results deserve: 0 where something is proven, or all is in force or only planned.
fn code(outcomes: &[GroupOutcome]) -> ExitCode {
    let has = |result: GroupResult| outcomes.iter().any(|outcome| outcome.result == result);
    let status = |status: TrialStatus| {
        outcomes.iter().filter_map(|outcome| outcome.trial.as_ref()).any(|trial| trial.status == status)
    };
    if status(TrialStatus::UndoFailed) {
        ExitCode::RollbackFailed
    } else if has(GroupResult::Failed) {
        ExitCode::RolledBack
    } else if has(GroupResult::Proven)
        || !(has(GroupResult::NoEffect) || has(GroupResult::Harm) || has(GroupResult::NotShown))
    {
        ExitCode::Ok
    } else {
        ExitCode::Findings
    }
}
