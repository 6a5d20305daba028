//! `linerate facts`: what a host says about itself, now.

use std::fmt::Write;

use linerate_model::exit::ExitCode;
use linerate_model::fact::HostFacts;
use linerate_model::fact_change::SeenBy;
use linerate_model::inventory::Inventory;
use linerate_model::printable::{lines_of_error, one_line};

use super::place::{self, End};
use super::targets::InventoryFile;
use super::via::{self, Hosts, Via};
use super::{open, out};
use linerate_fleet::{Fleet, clock};
use linerate_inventory as inventory;
use linerate_operator::observe::run::read_facts;
use linerate_store::{FactReading, ReadScope, Store};

/// Print a host's facts, optionally only keys with a prefix.
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("inventory", |inventory| inventory.conflicts_with("via")),
    after_help = "Examples:\n  linerate facts local sysctl.net.ipv4.tcp\n  linerate facts ops@arc-1 nic.eth0\n  linerate facts -i cluster.toml arc-1 nic.eth0 cpu\n  linerate facts -i cluster.toml 'arc-1!container:web' nic."
)]
pub(super) struct Args {
    /// Host of the inventory or over ssh; `local` is this machine; append `!container:NAME`, `!pid:1234` or
    /// `!netns:PATH` for a namespace on it
    host: String,
    /// Key prefixes; defaults to all keys
    #[arg(value_name = "KEY")]
    keys: Vec<String>,
    #[command(flatten)]
    inventory: InventoryFile,
    #[command(flatten)]
    via: Via,
    /// Include counters
    #[arg(long)]
    counters: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Never use sudo on the host; facts readable only by root are then missing
    #[arg(long)]
    no_sudo: bool,
}

/// The inventory that has the host. Its name in there goes into `end`.
async fn hosts(args: &Args, end: &mut End) -> anyhow::Result<Option<Hosts>> {
    if args.via.is_asked() {
        let mut via = args.via.clone();
        via.nodelist.get_or_insert_with(|| end.host.clone());
        return via::hosts(&via, None).await;
    }
    let mut chosen = args.inventory.choose(std::slice::from_ref(&end.host))?;
    end.host = chosen.names().remove(0);
    if args.no_sudo {
        chosen.inventory.without_sudo();
    }
    Ok(Some(chosen.into()))
}

async fn read(args: &Args) -> anyhow::Result<Option<HostFacts>> {
    let mut end = End::parse(&args.host)?;
    let Some(Hosts { inventory, job, .. }) = hosts(args, &mut end).await? else { return Ok(None) };
    let read = read_in(args, &inventory, &end).await;
    Hosts::end(job).await;
    read
}

async fn read_in(args: &Args, inventory: &Inventory, end: &End) -> anyhow::Result<Option<HostFacts>> {
    let host = &end.host;
    let inventory = inventory::selected(inventory.clone(), std::slice::from_ref(host), "command line")?;
    let inventory = place::only(&inventory, end);
    let prefix = end.prefix();
    let mut keys: Vec<String> = args.keys.iter().map(|key| format!("{prefix}{key}")).collect();
    if keys.is_empty() && end.netns.is_some() {
        keys.push(prefix);
    }
    let opened = open::unless_interrupted(Fleet::open(&inventory, |h| h.name == *host)).await;
    let Some(fleet) = opened else { return Ok(None) };
    fleet.notes.iter().for_each(|note| out::note(note));
    fleet
        .gaps
        .iter()
        .filter(|_| !fleet.hosts().is_empty())
        .for_each(|g| out::note(&format!("{}: {}", g.what, g.reason)));
    let started_ms = clock::now_ms();
    let read = open::with_fleet(fleet, async |fleet| {
        read_facts(fleet, &inventory, host, &keys).await.map_err(|reason| anyhow::anyhow!(reason))
    })
    .await?;
    if let Some(facts) = &read {
        let scope = if keys.is_empty() { ReadScope::All } else { ReadScope::Below(&keys) };
        let reading = FactReading {
            cluster: &inventory.name,
            started_ms,
            ended_ms: clock::now_ms(),
            seen_by: SeenBy::Facts,
            scope,
            who: None,
        };
        // What was read is printed in any case.
        if let Err(error) = Store::open_default().and_then(|mut s| s.log_facts(&reading, [(host, facts)])) {
            out::note(&format!("changes are not recorded: {error}"));
        }
    }
    Ok(read)
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let Some(facts) = open::runtime()?.block_on(read(args))? else { return Ok(open::after_interrupt()) };
    if args.json {
        out::json(&facts)?;
        return Ok(ExitCode::Ok);
    }
    let mut text = String::new();
    for (key, value) in &facts.readings {
        let _ = writeln!(text, "{} = {}", one_line(key), one_line(&value.to_string()));
    }
    for (key, value) in facts.counters.iter().filter(|_| args.counters) {
        let _ = writeln!(text, "{} = {value} (counter)", one_line(key));
    }
    if text.is_empty() {
        out::note(&none(&args.host, &args.keys));
    } else {
        out::print(&text)?;
    }
    for gap in &facts.gaps {
        out::note(&format!("not seen: {}: {}", one_line(&gap.what.to_string()), lines_of_error(&gap.reason)));
    }
    // As `grep` has it.
    Ok(if text.is_empty() { ExitCode::Findings } else { ExitCode::Ok })
}

/// What is printed where no fact is left.
fn none(host: &str, prefixes: &[String]) -> String {
    let host = one_line(host);
    if prefixes.is_empty() {
        return format!("no facts on {host}");
    }
    let prefixes: Vec<String> = prefixes.iter().map(|p| format!("`{}`", one_line(p))).collect();
    format!(
        "no fact of {host} starts with {}\nhint: `linerate facts {host}` lists all",
        prefixes.join(" or ")
    )
}

#[cfg(test)]
mod tests {
    use super::none;

    #[test]
    fn prefixes_without_facts_are_named_with_the_host() {
        assert_eq!(
            none("one", &["nic.eth9".to_owned()]),
            "no fact of one starts with `nic.eth9`\nhint: `linerate facts one` lists all"
        );
        let two = ["a".to_owned(), "b\u{1b}".to_owned()];
        assert_eq!(
            none("one", &two),
            "no fact of one starts with `a` or `b\\u{1b}`\nhint: `linerate facts one` lists all"
        );
        assert_eq!(none("one", &[]), "no facts on one");
    }
}
