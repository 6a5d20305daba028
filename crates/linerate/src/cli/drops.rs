//! `linerate drops`: which packets hosts drop, for which reason, and which hosts drop the same.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use linerate_diagnose::drops;
use linerate_fleet::{Fleet, clock};
use linerate_history::{DropsRecord, History};
use linerate_knowledge::drops::DropClasses;
use linerate_model::drops::{DropReport, DropRow};
use linerate_model::exit::ExitCode;
use linerate_model::inventory::{HostName, Inventory};
use linerate_model::units;
use linerate_report::drops as words;
use linerate_report::heat::Style;
use tokio::time::Instant;

use super::targets::{Chosen, Targets};
use super::{open, out, quantity};
use linerate_operator::observe::drops::DropWatch;

/// Count packets that hosts drop, by the kernel's reasons; find hosts that drop the same
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate drops vs-2 vs-4\n  linerate drops --for 10m -i cluster.toml\n  linerate drops local --for 10s --all\n\nWith root an eBPF program at skb:kfree_skb counts, which ends with the session. Without it\ncounters of devices, queues and protocols are read alone.\n\nExit codes: 0 no drops but harmless ones, 1 others, 3 not all hosts seen."
)]
pub(super) struct Args {
    #[command(flatten)]
    targets: Targets,
    /// How long to count, e.g. 10m
    #[arg(long = "for", value_name = "TIME", value_parser = quantity::duration, default_value = "1m")]
    time: Duration,
    /// List harmless drops too
    #[arg(short, long)]
    all: bool,
    /// Never use sudo on the hosts
    #[arg(long, hide_short_help = true)]
    no_sudo: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let Chosen { mut inventory, file, .. } = args.targets.machines()?;
    if args.no_sudo {
        inventory.without_sudo();
    }
    let start_ms = clock::now_ms();
    let Some((report, command)) = open::runtime()?.block_on(count(args, &inventory, file.as_deref()))? else {
        return Ok(open::after_interrupt());
    };
    let record = DropsRecord { cluster: inventory.name, start_ms, report, command };
    keep(&record);
    let report = record.report;
    if args.json {
        out::document(words::verdict(&report), &report)?;
    } else {
        out::print(&words::text(&report, args.all, Style::detect().width))?;
    }
    Ok(if !report.hosts.iter().flat_map(|host| &host.rows).all(DropRow::is_harmless) {
        ExitCode::Findings
    } else if report.gaps.is_empty() {
        ExitCode::Ok
    } else {
        ExitCode::PartlyBlind
    })
}

/// For the page. Without it the count is printed all the same.
fn keep(record: &DropsRecord) {
    let kept = History::open_default().and_then(|mut history| history.keep(record));
    if let Err(error) = kept {
        out::note(&format!("this count is not kept for `linerate serve`: {error}"));
    }
}

/// What was counted, and the command that counts again.
async fn count(
    args: &Args,
    inventory: &Inventory,
    file: Option<&Path>,
) -> anyhow::Result<Option<(DropReport, String)>> {
    let Some(mut fleet) = open::unless_interrupted(Fleet::open(inventory, |_| true)).await else {
        return Ok(None);
    };
    fleet.notes.iter().for_each(|note| out::note(note));
    fleet.named_by(file, inventory);
    // All hosts of a file need no names.
    let named = if args.targets.named().is_empty() { fleet.arguments(&[]) } else { fleet.all_arguments() };
    let classes = DropClasses::builtin()?;
    let endpoints =
        inventory.hosts.iter().flat_map(|host| host.endpoints.iter().map(move |end| (end.address, host)));
    let addresses: BTreeMap<IpAddr, HostName> =
        endpoints.map(|(address, host)| (address, host.name.clone())).collect();
    let begun =
        open::unless_interrupted(DropWatch::begin(&fleet, inventory, args.time, classes.clone())).await;
    let counted = match begun {
        Some(watch) => count_in(args, watch, &classes, &addresses).await.map(Some),
        None => Ok(None),
    };
    fleet.bye().await;
    let command = format!("linerate drops {named}");
    Ok(counted?.map(|report| (report, command.trim_end().to_owned())))
}

/// Counts until it is time to end; what was counted until Ctrl-C is reported too.
async fn count_in(
    args: &Args,
    mut watch: DropWatch,
    classes: &DropClasses,
    addresses: &BTreeMap<IpAddr, HostName>,
) -> anyhow::Result<DropReport> {
    if watch.hosts() == 0 {
        let reasons: Vec<String> =
            watch.gaps.iter().map(|gap| format!("{}: {}", gap.what, gap.reason)).collect();
        anyhow::bail!("no host can be counted on: {}", reasons.join("; "));
    }
    out::note(&format!(
        "counting on {} for {}; Ctrl-C ends it early",
        units::counted(watch.hosts(), "host"),
        units::span_s(args.time.as_secs_f64())
    ));
    let until = Instant::now() + args.time.max(watch.every());
    while Instant::now() + watch.every() / 2 < until && watch.hosts() > 0 {
        if open::unless_interrupted(watch.interval()).await.is_none() {
            break;
        }
    }
    let mut report = drops::report(&watch.seen(), classes, addresses, watch.every_s());
    // Facts matter only where there is a group, and can be read while the sessions are open.
    if !report.groups.is_empty() {
        drops::add_shared(&mut report, &watch.facts().await, classes);
    }
    report.gaps = std::mem::take(&mut watch.gaps);
    Ok(report)
}
