//! `linerate measure`: one test between two hosts, or inside one, with everything that it shows.
//!
//! One file per kind of test; without a kind it is bulk TCP. To add one: a file beside this one with its arguments and its
//! `run`, and one line in [`Kind`].

mod quantity;
mod tcp;

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use anyhow::Context;
use linerate_model::exit::ExitCode;
use linerate_model::inventory::{Endpoint, HostName, Inventory, Layer};
use linerate_model::load::TestKind;
use linerate_model::plan::Test;
use linerate_model::sample::{Outcome, Sample};
use linerate_model::tuning::Tuning;

use super::{open, out};
use crate::fleet::Fleet;
use crate::inventory;
use crate::observe::measure::measure_tuned;

/// Run one test between two hosts of an inventory, or on the loopback of this machine (`local`).
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:\n  linerate measure -i cluster.toml arc-1 arc-2\n  linerate measure -i cluster.toml arc-1 arc-2 --streams 4 --both-ways --time 5s\n  linerate measure local --verify"
)]
pub(super) struct Args {
    #[command(subcommand)]
    kind: Option<Kind>,
    #[command(flatten)]
    tcp: tcp::Transfer,
}

/// What can be measured.
#[derive(Debug, clap::Subcommand)]
enum Kind {
    Tcp(tcp::Transfer),
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match args.kind.as_ref() {
        Some(Kind::Tcp(own)) => own.run(),
        None => args.tcp.run(),
    }
}

/// Between whom: the arguments that every kind has.
#[derive(Debug, clap::Args)]
struct Between {
    /// Sender and receiver, or `local`
    #[arg(value_name = "HOST", num_args = 1..=2, required = true)]
    hosts: Vec<String>,
    /// Inventory file; not needed for `local`
    #[arg(short, long, value_name = "FILE")]
    inventory: Option<PathBuf>,
    /// Measure in the overlay network
    #[arg(long)]
    overlay: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The two ends, found.
struct Ends {
    inventory: Inventory,
    from: HostName,
    to: HostName,
    layer: Layer,
}

impl Between {
    fn ends(&self) -> anyhow::Result<Ends> {
        let layer = if self.overlay { Layer::Overlay } else { Layer::Underlay };
        let (from, to) = match self.hosts.as_slice() {
            [only] if only == "local" => return Ok(local()),
            [from, to] => (from.clone(), to.clone()),
            _ => anyhow::bail!(
                "two hosts are needed, or `local`\nhint: linerate measure -i cluster.toml arc-1 arc-2"
            ),
        };
        let path = self
            .inventory
            .as_ref()
            .context("hosts have to be known\nhint: give their inventory with -i, or measure `local`")?;
        let inventory = inventory::load(path)?;
        for host in [&from, &to] {
            anyhow::ensure!(
                inventory.endpoint(host, layer).is_some(),
                "host `{host}` has no {layer} address in {}\nhint: known are: {}",
                path.display(),
                inventory
                    .hosts
                    .iter()
                    .filter(|h| h.endpoints.iter().any(|e| e.layer == layer))
                    .map(|h| h.name.as_str())
                    .collect::<Vec<_>>()
                    .join(", ")
            );
        }
        Ok(Ends { inventory, from, to, layer })
    }
}

/// Both ends on the loopback of this machine.
fn local() -> Ends {
    let mut inventory = inventory::localhost();
    let mut name = String::new();
    for host in &mut inventory.hosts {
        name.clone_from(&host.name);
        host.endpoints = vec![Endpoint {
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            layer: Layer::Underlay,
            netns: None,
            link_bps: None,
        }];
    }
    Ends { inventory, from: name.clone(), to: name, layer: Layer::Underlay }
}

/// Runs one test; `None` when it was interrupted.
fn sample(ends: &Ends, kind: TestKind, tuning: &Tuning) -> anyhow::Result<Option<Sample>> {
    let test = Test {
        id: 1,
        from: ends.from.clone(),
        to: ends.to.clone(),
        layer: ends.layer,
        kind,
        repeat: 0,
        serial: true,
        second_stage: false,
    };
    open::runtime()?.block_on(async {
        let fleet = Fleet::open(&ends.inventory, |h| h.name == ends.from || h.name == ends.to).await;
        open::with_fleet(fleet, async |fleet| Ok(measure_tuned(fleet, &ends.inventory, &test, tuning).await))
            .await
    })
}

/// Prints a sample and gives the code that it deserves.
fn tell(json: bool, sample: &Sample, words: impl Fn(&Sample) -> String) -> anyhow::Result<ExitCode> {
    if json {
        out::json(&serde_json::json!({ "schema": linerate_model::SCHEMA, "sample": sample }))?;
    }
    match &sample.outcome {
        Outcome::Measured(_) => {
            if !json {
                out::print(&words(sample))?;
            }
            Ok(ExitCode::Ok)
        }
        Outcome::NothingThrough { reason } => {
            out::note(&format!(
                "nothing got through from {} to {}: {reason}",
                sample.test.from, sample.test.to
            ));
            Ok(ExitCode::Findings)
        }
        Outcome::Invalid { reason } => anyhow::bail!("the test is worthless: {reason}"),
        Outcome::Gap { reason } => anyhow::bail!("the test could not run: {reason}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Whole {
        #[command(flatten)]
        args: Args,
    }

    fn parse(line: &str) -> Result<Args, clap::Error> {
        <Whole as clap::Parser>::try_parse_from(std::iter::once("measure").chain(line.split_whitespace()))
            .map(|whole| whole.args)
    }

    #[test]
    fn the_kind_may_be_left_out() {
        let plain = parse("a b -i c.toml").unwrap();
        assert!(plain.kind.is_none());
        assert_eq!(plain.tcp.between.hosts, ["a", "b"]);
        let Some(Kind::Tcp(named)) = parse("tcp a b -i c.toml").unwrap().kind else { panic!() };
        assert_eq!(named.between.hosts, ["a", "b"]);
        assert!(parse("").is_err());
    }

    #[test]
    fn local_needs_no_inventory_and_others_do() {
        let ends = parse("local").unwrap().tcp.between.ends().unwrap();
        assert_eq!(ends.from, ends.to);
        assert!(ends.inventory.endpoint(&ends.from, Layer::Underlay).is_some());
        assert!(parse("a b").unwrap().tcp.between.ends().is_err());
        assert!(parse("a").unwrap().tcp.between.ends().is_err());
    }
}
