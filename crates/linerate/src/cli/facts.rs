//! `linerate facts`: what a host says about itself, now.

use std::fmt::Write;
use std::path::PathBuf;

use linerate_model::exit::ExitCode;

use super::place::{self, End};
use super::{open, out};
use crate::fleet::Fleet;
use crate::inventory;
use crate::observe::run::read_facts;

/// Read facts of a host now, all of them or those whose keys begin so.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate facts localhost sysctl.net.ipv4.tcp\n  linerate facts -i cluster.toml arc-1 nic.eth0 cpu\n  linerate facts -i cluster.toml 'arc-1!container:web' nic."
)]
pub(super) struct Args {
    /// Host of the inventory, or `localhost`; with `!container:NAME`, `!pid:1234` or `!netns:PATH` a namespace inside of it
    host: String,
    /// Beginnings of keys
    #[arg(value_name = "KEY")]
    keys: Vec<String>,
    /// Inventory file; not needed for `localhost`
    #[arg(short, long, value_name = "FILE")]
    inventory: Option<PathBuf>,
    /// Counters too
    #[arg(long)]
    counters: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let inventory = match &args.inventory {
        Some(path) => inventory::load(path)?,
        None => inventory::localhost(),
    };
    let end = End::parse(&args.host)?;
    anyhow::ensure!(
        inventory.host(&end.host).is_some(),
        "no host `{}` in the inventory\nhint: known are: {}",
        end.host,
        inventory.hosts.iter().map(|h| h.name.as_str()).collect::<Vec<_>>().join(", ")
    );
    let inventory = place::only(&inventory, &end);
    let prefix = end.prefix();
    let mut keys: Vec<String> = args.keys.iter().map(|key| format!("{prefix}{key}")).collect();
    if keys.is_empty() && end.place.is_some() {
        keys.push(prefix);
    }
    let read = open::runtime()?.block_on(async {
        let fleet = Fleet::open(&inventory, |h| h.name == end.host).await;
        open::with_fleet(fleet, async |fleet| {
            read_facts(fleet, &inventory, &end.host, &keys).await.map_err(|reason| anyhow::anyhow!(reason))
        })
        .await
    })?;
    let Some(facts) = read else { return Ok(open::after_interrupt()) };
    if args.json {
        out::json(&facts)?;
        return Ok(ExitCode::Ok);
    }
    let mut text = String::new();
    for (key, value) in &facts.readings {
        let _ = writeln!(text, "{key} = {value}");
    }
    for (key, value) in facts.counters.iter().filter(|_| args.counters) {
        let _ = writeln!(text, "{key} = {value} (counter)");
    }
    out::print(if text.is_empty() { "nothing begins so" } else { &text })?;
    for gap in &facts.gaps {
        out::note(&format!("not seen: {}: {}", gap.what, gap.reason));
    }
    Ok(ExitCode::Ok)
}
