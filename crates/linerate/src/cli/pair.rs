//! What the commands of one test between two hosts share: who, where the result goes, the run in the store.

use std::path::{Path, PathBuf};
use std::time::Duration;

use linerate_model::exit::ExitCode;
use linerate_model::finding::Diagnosis;
use linerate_model::inventory::{Inventory, Layer};
use linerate_model::load::TestKind;
use linerate_model::plan::Test;
use linerate_model::snapshot::Snapshot;
use linerate_model::tuning::Tuning;

use super::{open, out, progress};
use crate::fleet::Fleet;
use crate::inventory;
use crate::observe::single::{self, Way};
use crate::report::{self, Material};
use crate::store::Store;

/// What takes longer is told while it runs.
const NEEDS_PROGRESS: Duration = Duration::from_secs(2);

/// Where a result goes.
#[derive(Debug, clap::Args)]
pub(super) struct Output {
    /// Print the samples as JSON
    #[arg(long)]
    json: bool,
    /// Write one HTML file with histograms and series too
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Two hosts.
#[derive(Debug, clap::Args)]
pub(super) struct Pair {
    /// Sender: a host of the inventory, or `local` for both ends on this machine's loopback
    from: String,
    /// Receiver; left out with `local`
    to: Option<String>,
    /// Inventory file; not needed for `local`
    #[arg(short, long, value_name = "FILE")]
    inventory: Option<PathBuf>,
    /// Between the addresses of the overlay network
    #[arg(long)]
    overlay: bool,
    #[command(flatten)]
    output: Output,
}

impl Pair {
    /// Runs a test of this kind and prints it.
    pub(super) fn run(&self, kind: TestKind) -> anyhow::Result<ExitCode> {
        self.run_tuned(kind, &Tuning::default())
    }

    /// The same with options of the transfer.
    pub(super) fn run_tuned(&self, kind: TestKind, tuning: &Tuning) -> anyhow::Result<ExitCode> {
        let to = match &self.to {
            Some(to) => to,
            None if self.inventory.is_none() => &self.from,
            None => anyhow::bail!(
                "two hosts are needed: from `{}` to whom?\nhint: or `local` without an inventory",
                self.from
            ),
        };
        let inventory = inventory_for(self.inventory.as_deref(), &[&self.from, to])?;
        let layer = if self.overlay { Layer::Overlay } else { Layer::Underlay };
        for host in [&self.from, to] {
            anyhow::ensure!(
                inventory.endpoint(host, layer).is_some(),
                "host {host} has no {layer} endpoint in the inventory\nhint: add `[[host.endpoint]]` with its address"
            );
        }
        run(&inventory, &[test(1, &self.from, to, layer, kind)], tuning, &self.output)
    }
}

/// The inventory of a command, in which all these hosts must be.
pub(super) fn inventory_for(file: Option<&Path>, hosts: &[&str]) -> anyhow::Result<Inventory> {
    let inventory = match file {
        Some(path) => inventory::load(path)?,
        None => inventory::loopback(),
    };
    for host in hosts {
        anyhow::ensure!(
            inventory.host(host).is_some(),
            "no host `{host}` in the inventory\nhint: known are: {}{}",
            inventory.hosts.iter().map(|h| h.name.as_str()).collect::<Vec<_>>().join(", "),
            if file.is_none() { "; others need -i FILE" } else { "" }
        );
    }
    Ok(inventory)
}

/// A test by itself.
pub(super) fn test(id: u32, from: &str, to: &str, layer: Layer, kind: TestKind) -> Test {
    let (from, to) = (from.to_owned(), to.to_owned());
    Test { id, from, to, layer, kind, repeat: 0, serial: true, second_stage: false }
}

/// Runs tests, stores them as a run, prints them.
pub(super) fn run(
    inventory: &Inventory,
    tests: &[Test],
    tuning: &Tuning,
    output: &Output,
) -> anyhow::Result<ExitCode> {
    let mut store = Store::open_default()?;
    let progress = progress::start(single::expected(tests, tuning) < NEEDS_PROGRESS);
    let mut way = Way { store: &mut store, progress: &*progress, tuning };
    let needed = |name: &String| tests.iter().any(|t| t.from == *name || t.to == *name);
    let measured = open::runtime()?.block_on(async {
        let fleet = Fleet::open(inventory, |h| needed(&h.name)).await;
        open::with_fleet(fleet, async |fleet| Ok(single::run(fleet, inventory, tests, &mut way).await?)).await
    })?;
    let Some((snapshot, diagnosis)) = measured else { return Ok(open::after_interrupt()) };
    print(&snapshot, &diagnosis, output)?;
    Ok(report::single::exit_code(&snapshot.samples))
}

fn print(snapshot: &Snapshot, diagnosis: &Diagnosis, output: &Output) -> anyhow::Result<()> {
    if let Some(path) = &output.html {
        let page = report::html::Html;
        let material = Material { snapshot, diagnosis, trials: &[], reveal: None };
        std::fs::write(path, report::Format::render(&page, &material))
            .map_err(|e| anyhow::anyhow!("cannot write {}: {e}", path.display()))?;
    }
    if output.json {
        return out::json(&serde_json::json!({
            "schema": linerate_model::SCHEMA,
            "run": snapshot.id,
            "samples": snapshot.samples,
        }));
    }
    out::print(&report::text::page(snapshot, diagnosis, report::heat::Style::detect()))?;
    out::note(&format!("run {0}: `linerate report {0} --html` draws it", snapshot.id));
    Ok(())
}
