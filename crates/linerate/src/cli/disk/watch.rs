//! `linerate disk watch`: what the block devices of many hosts do now, as a live screen, a table per
//! interval, or lines of JSON; and what is wrong with them, when it begins and when it ends.

mod shown;

use std::path::{Path, PathBuf};
use std::time::Duration;

use linerate_model::SCHEMA;
use linerate_model::disk::DiskEpisodes;
use linerate_model::disk_user::DiskUserKind;
use linerate_model::exit::ExitCode;
use linerate_model::fact::Gap;
use linerate_model::fact_change::SeenBy;
use linerate_model::finding::Diagnosis;
use linerate_model::inventory::Inventory;
use linerate_model::snapshot::Snapshot;

use self::shown::Output;
use super::super::targets::InventoryFile;
use super::super::via::{Hosts, Via};
use super::super::{open, out, quantity};
use linerate_fleet::Fleet;
use linerate_fleet::clock;
use linerate_operator::observe::disk_watch::DiskWatch;
use linerate_report::disk_watch as report;
use linerate_store::{FactReading, ReadScope, Store};

/// Monitor block devices of hosts by familiar names; flag slow, full or uneven ones
// Each switch of the command line is one.
#[allow(clippy::struct_excessive_bools)]
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("inventory", |inventory| inventory.conflicts_with("via")),
    after_help = "Examples:\n  linerate disk watch\n  linerate disk watch -d 5s --count 12 store-1 store-2\n  linerate disk watch --inventory cluster.toml --json | jq .disks\n  linerate disk watch --by cgroup store-1\n  linerate disk watch --inventory cluster.toml store-1 > night.log\n\nPercentages in brackets mark devices that process many requests in parallel: busy does not mean saturated."
)]
pub(in crate::cli) struct Args {
    /// Hosts: of the inventory, or over ssh; defaults to all of -i, without it to this machine
    #[arg(value_name = "HOST")]
    hosts: Vec<String>,
    /// Time between samples, e.g. 500ms, 2s
    #[arg(short = 'd', long, value_name = "TIME", default_value = "2s", value_parser = interval)]
    interval: Duration,
    /// Exit after this number of samples; defaults to running until Ctrl-C
    #[arg(short, long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    count: Option<u32>,
    #[command(flatten)]
    inventory: InventoryFile,
    #[command(flatten)]
    via: Via,
    /// Include idle devices, and volume members that are not used on their own
    #[arg(short, long)]
    all: bool,
    /// Name who causes the load: the processes, control groups or users that read and write most
    #[arg(long, value_name = "WHAT", value_enum)]
    by: Option<By>,
    /// Print a line of JSON per interval and host, and per finding that begins or ends; the last line has all
    /// findings
    #[arg(long)]
    json: bool,
    /// Never use sudo on hosts
    #[arg(long)]
    no_sudo: bool,
    /// Use only the kernel's built-in counters: no eBPF program at tracepoints, and only mean latencies
    #[arg(long)]
    no_percentiles: bool,
}

/// What the load is added up by.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum By {
    Process,
    Cgroup,
    User,
}

impl By {
    fn kind(self) -> DiskUserKind {
        match self {
            Self::Process => DiskUserKind::Process,
            Self::Cgroup => DiskUserKind::Cgroup,
            Self::User => DiskUserKind::User,
        }
    }
}

fn interval(text: &str) -> Result<Duration, String> {
    let limits = Duration::from_millis(200)..=Duration::from_secs(3600);
    let interval = quantity::duration(text).ok().filter(|interval| limits.contains(interval));
    interval.ok_or_else(|| format!("`{text}` is no interval\nhint: 200ms to 1h"))
}

pub(in crate::cli) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    open::runtime()?.block_on(watch(args))
}

async fn watch(args: &Args) -> anyhow::Result<ExitCode> {
    let Some(Hosts { inventory, path, job }) =
        super::hosts::hosts(&args.via, &args.inventory, &args.hosts, args.no_sudo).await?
    else {
        return Ok(open::after_interrupt());
    };
    let done = watch_in(args, &inventory, path).await;
    Hosts::end(job).await;
    done
}

async fn watch_in(args: &Args, inventory: &Inventory, path: Option<PathBuf>) -> anyhow::Result<ExitCode> {
    let Some(fleet) = open::unless_interrupted(Fleet::open(inventory, |_| true)).await else {
        return Ok(open::after_interrupt());
    };
    fleet.notes.iter().for_each(|note| out::note(note));
    let ended = watch_over(args, inventory, path.as_deref(), &fleet).await;
    fleet.bye().await;
    ended
}

async fn watch_over(
    args: &Args,
    inventory: &Inventory,
    path: Option<&Path>,
    fleet: &Fleet,
) -> anyhow::Result<ExitCode> {
    let begun = open::unless_interrupted(DiskWatch::begin(
        fleet,
        inventory,
        !args.no_percentiles,
        args.by.map(By::kind),
    ))
    .await;
    let Some((mut watch, events)) = begun else { return Ok(open::after_interrupt()) };
    let gaps = |gaps: &[Gap]| gaps.iter().map(|g| format!("{}: {}", g.what, g.reason)).collect::<Vec<_>>();
    anyhow::ensure!(watch.has_seen_any(), "no host can be watched: {}", gaps(&watch.all_gaps()).join("; "));
    let start_ms = clock::now_ms();
    let output = Output { json: args.json, all: args.all, no_percentiles: args.no_percentiles };
    output.begin(&watch)?;
    output.events(&watch, &events)?;
    // An end by Ctrl-C is the usual one: what was seen until then is shown and stored.
    let ended = tokio::select! {
        ended = intervals(args, &mut watch, output) => ended,
        () = open::interrupted() => Ok(()),
    };
    ended?;
    let events = watch.finish();
    output.events(&watch, &events)?;
    let findings = findings(&watch);
    output.end(&watch, &findings, inventory.typed.as_deref())?;
    let gaps = watch.all_gaps();
    if watch.hosts.iter().any(|host| !host.stored.intervals().is_empty()) {
        keep(&watch, start_ms, inventory, &findings, path)?;
    }
    Ok(match (findings.is_empty(), gaps.is_empty()) {
        (false, _) => ExitCode::Findings,
        (true, true) => ExitCode::Ok,
        (true, false) => ExitCode::PartlyBlind,
    })
}

async fn intervals(args: &Args, watch: &mut DiskWatch<'_>, output: Output) -> anyhow::Result<()> {
    let mut tick = tokio::time::interval(args.interval);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    tick.tick().await;
    let mut done = 0;
    while args.count.is_none_or(|count| done < count) {
        tick.tick().await;
        let events = watch.interval().await;
        output.events(watch, &events)?;
        output.tables(watch, &findings(watch))?;
        done += 1;
    }
    Ok(())
}

/// Findings of all hosts over the whole watch.
fn findings(watch: &DiskWatch<'_>) -> Vec<DiskEpisodes> {
    watch.hosts.iter().flat_map(|host| host.history.all()).collect()
}

/// Stores the run.
fn keep(
    watch: &DiskWatch<'_>,
    start_ms: u64,
    inventory: &Inventory,
    findings: &[DiskEpisodes],
    path: Option<&Path>,
) -> anyhow::Result<()> {
    let mut store = Store::open_default()?;
    let thinned = |host: &&linerate_operator::observe::disk_watch::WatchedHost| host.stored.stride() > 1;
    let left_out =
        watch.hosts.iter().filter(thinned).map(|host| {
            format!("intervals of host {}: one of {} is stored", host.name, host.stored.stride())
        });
    let overflowed = watch.hosts.iter().filter(|host| host.history.has_overflowed());
    let left_out = left_out.chain(overflowed.map(|host| format!("more findings of host {}", host.name)));
    let mut disks: Vec<_> = watch.hosts.iter().flat_map(|host| host.stored.intervals()).cloned().collect();
    disks.sort_by_key(|interval| interval.at_ms);
    let snapshot = Snapshot {
        schema: SCHEMA,
        id: linerate_operator::run_id::new_id(),
        start_ms,
        inventory: inventory.clone(),
        facts: watch
            .hosts
            .iter()
            .filter_map(|host| Some((host.name.clone(), host.watched.as_ref()?.facts.clone())))
            .collect(),
        disks,
        gaps: watch.all_gaps(),
        left_out: left_out.collect(),
        ..Snapshot::default()
    };
    snapshot.left_out.iter().for_each(|what| out::note(&format!("left out: {what}")));
    let seconds = watch.hosts.iter().map(|host| host.seen_s).fold(0.0, f64::max);
    let unseen = shown::unseen(watch);
    let diagnosis = Diagnosis {
        schema: SCHEMA,
        run: snapshot.id.clone(),
        headline: report::headline(seconds, findings, shown::reach(watch, &unseen, &snapshot.gaps)),
        notes: findings.iter().map(report::sentence).collect(),
        blind: snapshot.gaps.clone(),
        ..Diagnosis::default()
    };
    store.begin_run(&snapshot, path)?;
    store.add_facts(&snapshot.id, snapshot.facts.iter())?;
    let reading = FactReading {
        cluster: &snapshot.inventory.name,
        started_ms: snapshot.start_ms,
        ended_ms: clock::now_ms(),
        seen_by: SeenBy::Run(snapshot.id.clone()),
        scope: ReadScope::Part,
        who: None,
    };
    store.log_facts(&reading, &snapshot.facts)?;
    store.set_measurement(&snapshot.id)?;
    store.finish(&snapshot, &diagnosis)?;
    out::note(&format!("run {0}: `linerate show {0}` prints it", snapshot.id));
    Ok(())
}
