//! `linerate facts`: what a host says about itself, now.

use std::fmt::Write;
use std::path::PathBuf;

use linerate_model::exit::ExitCode;
use linerate_model::fact::HostFacts;
use linerate_model::inventory::Inventory;

use super::via::{self, Hosts, Via};
use super::{open, out};
use crate::fleet::Fleet;
use crate::inventory;
use crate::observe::run::read_facts;

/// Read facts of a host now, all of them or those whose keys begin so.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate facts localhost sysctl.net.ipv4.tcp\n  linerate facts -i cluster.toml arc-1 nic.eth0 cpu"
)]
pub(super) struct Args {
    /// Host of the inventory, or `localhost`
    host: String,
    /// Beginnings of keys
    #[arg(value_name = "KEY")]
    keys: Vec<String>,
    /// Inventory file; not needed for `localhost`
    #[arg(short, long, value_name = "FILE", conflicts_with = "via")]
    inventory: Option<PathBuf>,
    #[command(flatten)]
    via: Via,
    /// Counters too
    #[arg(long)]
    counters: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The inventory that has the host.
async fn hosts(args: &Args) -> anyhow::Result<Option<Hosts>> {
    if args.inventory.is_none() && args.via.way.is_none() {
        return Ok(Some(Hosts { inventory: inventory::localhost(), path: None, job: None }));
    }
    let mut via = args.via.clone();
    via.nodelist.get_or_insert_with(|| args.host.clone());
    via::hosts(args.inventory.as_deref(), &via, None).await
}

async fn read(args: &Args) -> anyhow::Result<Option<HostFacts>> {
    let Some(Hosts { inventory, job, .. }) = hosts(args).await? else { return Ok(None) };
    let read = read_in(args, &inventory).await;
    Hosts::end(job).await;
    read
}

async fn read_in(args: &Args, inventory: &Inventory) -> anyhow::Result<Option<HostFacts>> {
    anyhow::ensure!(
        inventory.host(&args.host).is_some(),
        "no host `{}` in the inventory\nhint: known are: {}",
        args.host,
        inventory.hosts.iter().map(|h| h.name.as_str()).collect::<Vec<_>>().join(", ")
    );
    let fleet = Fleet::open(inventory, |h| h.name == args.host).await;
    open::with_fleet(fleet, async |fleet| {
        read_facts(fleet, inventory, &args.host, &args.keys).await.map_err(|reason| anyhow::anyhow!(reason))
    })
    .await
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let Some(facts) = open::runtime()?.block_on(read(args))? else { return Ok(open::after_interrupt()) };
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
