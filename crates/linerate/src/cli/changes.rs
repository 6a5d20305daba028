//! `linerate changes`: what changed on hosts between readings, by the log of the store, or from now on.

mod follow;

use std::time::Duration;

use linerate_fleet::clock;
use linerate_model::exit::ExitCode;
use linerate_model::printable::one_line;
use linerate_model::units;
use linerate_report::changes;
use linerate_report::heat::Style;
use linerate_store::Store;

use super::quantity::{self, Since};
use super::targets::{self, InventoryFile};
use super::{open, out};
use crate::cli::documents::Changes;

pub(in crate::cli) use follow::Log;

/// List changes of facts on hosts, newest first.
// Each is a flag of the command line.
#[allow(clippy::struct_excessive_bools)]
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate changes\n  linerate changes vs-4 --since 2d\n  linerate changes --key sysctl.net --since 2026-11-24\n  linerate changes --follow -i cluster.toml\n\nEach survey, `linerate facts HOST` and `linerate disk watch` compares what it reads with the reading before."
)]
pub(super) struct Args {
    /// Hosts; defaults to all
    #[arg(value_name = "HOST")]
    hosts: Vec<String>,
    /// How long ago, e.g. 12h, 7d, or a date (UTC), e.g. 2026-11-24, 2026-11-24T18:00
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = quantity::since)]
    since: Since,
    /// Only keys with this prefix
    #[arg(long, value_name = "PREFIX", default_value = "", hide_default_value = true)]
    key: String,
    /// Report changes on these hosts as they happen, until Ctrl-C
    #[arg(short, long, conflicts_with = "since")]
    follow: bool,
    /// With --follow: exit after this time, e.g. 10m
    #[arg(long = "for", value_name = "TIME", value_parser = quantity::duration, requires = "follow")]
    time: Option<Duration>,
    /// With --follow: name who writes sysctls and, probably, who changes links, by eBPF (root, Linux 6.1)
    #[arg(long, requires = "follow")]
    writers: bool,
    #[command(flatten)]
    inventory: InventoryFile,
    /// Never use sudo on the hosts
    #[arg(long, hide_short_help = true)]
    no_sudo: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.follow {
        let mut inventory = targets::machines(args.inventory.choose(&args.hosts)?).inventory;
        if args.no_sudo {
            inventory.without_sudo();
        }
        let keys = if args.key.is_empty() { Vec::new() } else { vec![args.key.clone()] };
        return open::runtime()?.block_on(follow::run(
            &inventory,
            follow::Wanted { keys, writers: args.writers },
            args.time,
            args.json,
        ));
    }
    let since_ms = args.since.unix_ms(clock::now_ms());
    let log = Store::open_to_read()?.list_changes(&args.hosts, since_ms, &args.key)?;
    if args.json {
        out::listing(Changes { since_ms, log: &log })?;
        return Ok(ExitCode::Ok);
    }
    if log.changes.is_empty() && log.unlisted.is_empty() {
        let of = if args.hosts.is_empty() {
            String::new()
        } else {
            format!(" on {}", one_line(&args.hosts.join(", ")))
        };
        out::print(&format!("no changes seen{of} since {} UTC", units::date_minute(since_ms)))?;
        return Ok(ExitCode::Ok);
    }
    let all: Vec<changes::OfCluster<'_>> =
        log.changes.iter().map(|one| (one.cluster.as_str(), &one.change)).collect();
    let unlisted: Vec<(&str, u64, u64)> =
        log.unlisted.iter().map(|one| (one.host.as_str(), one.seen_ms, one.count)).collect();
    out::print(&changes::text(&all, &unlisted, Style::detect().width))?;
    Ok(ExitCode::Ok)
}
