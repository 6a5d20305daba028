//! `linerate watch`: what is lost between hosts, and what changes on them, as it happens.

use std::sync::Arc;
use std::time::Duration;

use linerate_fleet::{Fleet, clock};
use linerate_model::exit::ExitCode;
use linerate_model::fact_change::SeenBy;
use linerate_model::inventory::Inventory;
use linerate_model::watch::WatchEvent;
use linerate_report::heat::Style;
use linerate_report::watch as words;
use tokio::time::Instant;

use super::changes::Log;
use super::documents::WatchLine;
use super::targets::{self, InventoryFile};
use super::{open, out, quantity};
use crate::observe::addresses;
use crate::watch::{Output, Watch};

/// Watch hosts: report loss between them and changes of settings as they happen
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate watch -i cluster.toml\n  linerate watch -i cluster.toml --for 7d\n  linerate watch arc-1 arc-2 arc-3 --json\n\nEach host probes eight others once a second, 64 bytes in each direction: at most 50 kbit/s a host. A host whose\nsession is lost is taken up again. Nothing listens on a host once the watch has ended."
)]
pub(super) struct Args {
    /// Hosts; defaults to all of the inventory
    #[arg(value_name = "HOST")]
    hosts: Vec<String>,
    /// Exit after this time, e.g. 30m, 7d; without it at Ctrl-C
    #[arg(long = "for", value_name = "TIME", value_parser = quantity::duration)]
    time: Option<Duration>,
    #[command(flatten)]
    inventory: InventoryFile,
    /// Never use sudo on the hosts
    #[arg(long, hide_short_help = true)]
    no_sudo: bool,
    /// Print JSON, one event a line
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut inventory = targets::machines(args.inventory.choose(&args.hosts)?).inventory;
    if args.no_sudo {
        inventory.without_sudo();
    }
    open::runtime()?.block_on(watch(args, inventory))
}

async fn watch(args: &Args, mut inventory: Inventory) -> anyhow::Result<ExitCode> {
    let Some(mut fleet) = open::unless_interrupted(Fleet::open(&inventory, |_| true)).await else {
        return Ok(open::after_interrupt());
    };
    fleet.notes.iter().for_each(|note| out::note(note));
    if addresses::is_needed(&inventory) {
        addresses::fill(&mut fleet, &mut inventory, None).await.iter().for_each(|how| out::note(how));
    }
    fleet.named_by(args.inventory.given(), &inventory);
    // All hosts of a file need no names.
    let named = if args.hosts.is_empty() { fleet.arguments(&[]) } else { fleet.all_arguments() };
    let fleet = Arc::new(fleet);
    let ended = match Watch::begin(&fleet, &inventory) {
        Ok(watch) => follow(args, &inventory.name, &named, watch).await,
        Err(error) => Err(error),
    };
    // Sessions that are just being opened end with the runtime.
    for host in fleet.hosts() {
        fleet.leave(&host).await;
    }
    ended
}

/// Prints and logs until it is time to end.
async fn follow(args: &Args, cluster: &str, named: &str, mut watch: Watch) -> anyhow::Result<ExitCode> {
    let until = args.time.map(|time| Instant::now() + time);
    let mut log = Log::new(cluster, Vec::new(), SeenBy::Watch);
    out::note(&format!("watching {} hosts; Ctrl-C ends it", watch.totals().hosts));
    loop {
        let reported = tokio::select! {
            reported = watch.next() => reported,
            () = open::interrupted() => break,
            () = open::passed(until) => break,
        };
        for one in reported {
            match one {
                Output::Read { host, facts, has_booted } => {
                    if let Some(notice) = log.begin(&host, &facts, has_booted) {
                        report(args, named, &watch.changed(host, notice))?;
                    }
                }
                Output::Event(event) => {
                    report(args, named, &event)?;
                    if let WatchEvent::Changed { host, notice } = event {
                        log.notice(&host, notice);
                    }
                }
            }
        }
    }
    out::note(&words::totals(watch.totals()));
    Ok(match watch.totals() {
        totals if totals.alarms > 0 => ExitCode::Findings,
        totals if totals.gaps > 0 => ExitCode::PartlyBlind,
        _ => ExitCode::Ok,
    })
}

fn report(args: &Args, named: &str, event: &WatchEvent) -> anyhow::Result<()> {
    let at_ms = clock::now_ms();
    if args.json {
        return out::document_line(WatchLine { at_ms, event });
    }
    let text = words::event(event, at_ms, Style::detect().width);
    if !text.is_empty() {
        out::print(text.trim_end())?;
    }
    if matches!(event, WatchEvent::Opened { .. }) {
        out::note(&format!("hint: linerate survey {named}"));
    }
    Ok(())
}
