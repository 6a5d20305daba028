//! What the commands of one test between two hosts share: who, where the result goes, the run in the store.

use std::path::{Path, PathBuf};
use std::time::Duration;

use linerate_model::exit::ExitCode;
use linerate_model::finding::Diagnosis;
use linerate_model::inventory::{HostName, Inventory, Layer};
use linerate_model::kind::TestKind;
use linerate_model::plan::Test;
use linerate_model::snapshot::Snapshot;
use linerate_model::tuning::Tuning;

use super::place::{self, End};
use super::targets::Ways;
use super::{events, open, out, progress};
use crate::observe::addresses;
use crate::observe::context::Context;
use crate::observe::single;
use linerate_fleet::Fleet;
use linerate_inventory as inventory;
use linerate_report::{self as report, Material};
use linerate_store::Store;

/// What takes longer is told while it runs.
const NEEDS_PROGRESS: Duration = Duration::from_secs(2);

/// Output of a measurement.
#[derive(Debug, clap::Args)]
pub(super) struct Output {
    /// Print samples as JSON
    #[arg(long)]
    json: bool,
    /// Also write one HTML file with histograms and time series
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Two hosts.
#[derive(Debug, clap::Args)]
pub(super) struct Pair {
    /// Sender: a host of the inventory; without an inventory, a host to reach over ssh, or `local` for both
    /// ends on this machine's loopback. `HOST!container:NAME`, `HOST!pid:1234` and `HOST!netns:PATH` select a
    /// namespace on a host
    from: String,
    /// Receiver; omit with `local`
    to: Option<String>,
    /// Inventory file
    #[arg(short, long, value_name = "FILE")]
    inventory: Option<PathBuf>,
    /// Measure between the addresses of the overlay network
    #[arg(long)]
    overlay: bool,
    #[command(flatten)]
    ways: Ways,
    #[command(flatten)]
    output: Output,
}

impl Pair {
    /// Runs a test of this kind and prints it.
    pub(super) fn run(&self, kind: impl Into<TestKind>) -> anyhow::Result<ExitCode> {
        self.run_tuned(kind.into(), &Tuning::default())
    }

    /// The same with options of the transfer.
    pub(super) fn run_tuned(&self, kind: TestKind, tuning: &Tuning) -> anyhow::Result<ExitCode> {
        if self.output.json {
            events::want();
        }
        let to = match &self.to {
            Some(to) => to,
            None if self.inventory.is_none() && self.from == "local" => &self.from,
            None => anyhow::bail!(
                "two hosts are needed: from `{}` to whom?\nhint: or `local` without an inventory",
                self.from
            ),
        };
        let mut ends = [End::parse(&self.from)?, End::parse(to)?];
        let (mut inventory, names) =
            inventory_for(self.inventory.as_deref(), &[&ends[0].host, &ends[1].host])?;
        self.ways.without_sudo(&mut inventory);
        if ends.iter().any(|end| end.place.is_some()) {
            for (end, name) in ends.iter_mut().zip(&names) {
                end.host.clone_from(name);
            }
            let tests = [test(1, &ends[0].host, &ends[1].host, Layer::Overlay, kind)];
            return run_with(inventory, &tests, tuning, Some(&self.ways), &self.output, Some(&ends));
        }
        let layer = if self.overlay { Layer::Overlay } else { Layer::Underlay };
        for host in names.iter().filter(|_| !addresses::is_needed(&inventory)) {
            anyhow::ensure!(
                inventory.endpoint(host, layer).is_some(),
                "host {host} has no {layer} endpoint in the inventory\nhint: add `[[host.endpoint]]` with its address"
            );
        }
        let [from, to] = &names[..] else { anyhow::bail!("two hosts are needed") };
        let test = test(1, from, to, layer, kind);
        run(inventory, &[test], tuning, Some(&self.ways), &self.output)
    }
}

/// The inventory of a command and the names in it of these hosts: of the file, of this machine's loopback
/// (`local`), or of hosts to reach over ssh.
pub(super) fn inventory_for(
    file: Option<&Path>,
    hosts: &[&str],
) -> anyhow::Result<(Inventory, Vec<HostName>)> {
    let words: Vec<String> = hosts.iter().map(|h| (*h).to_owned()).collect();
    let Some(path) = file else {
        if words.iter().all(|word| word == "local") {
            return Ok((inventory::loopback(), words));
        }
        let inventory = inventory::named(&words)?;
        let names = inventory.hosts.iter().map(|h| h.name.clone()).collect();
        return Ok((inventory, names));
    };
    let inventory = open::inventory(path, &[])?;
    for host in &words {
        anyhow::ensure!(
            inventory.host(host).is_some(),
            "no host `{host}` in the inventory\nhint: known are: {}",
            inventory.hosts.iter().map(|h| h.name.as_str()).collect::<Vec<_>>().join(", "),
        );
    }
    Ok((inventory, words))
}

/// A test by itself.
pub(super) fn test(id: u32, from: &str, to: &str, layer: Layer, kind: TestKind) -> Test {
    let (from, to) = (from.to_owned(), to.to_owned());
    Test { id, ..Test::new(from, to, layer, kind) }
}

/// Runs tests, stores them as a run, prints them. Without `ways` the tests need no addresses of the hosts.
pub(super) fn run(
    inventory: Inventory,
    tests: &[Test],
    tuning: &Tuning,
    ways: Option<&Ways>,
    output: &Output,
) -> anyhow::Result<ExitCode> {
    run_with(inventory, tests, tuning, ways, output, None)
}

/// The same between ends of which at least one is a place inside a host.
fn run_with(
    mut inventory: Inventory,
    tests: &[Test],
    tuning: &Tuning,
    ways: Option<&Ways>,
    output: &Output,
    ends: Option<&[End; 2]>,
) -> anyhow::Result<ExitCode> {
    let mut store = Store::open_default()?;
    let short = single::expected(tests, tuning) < NEEDS_PROGRESS;
    let progress = progress::start(short && !output.json, output.json);
    let mut context = Context { store: &mut store, progress: &*progress, tuning };
    let needed = |name: &String| tests.iter().any(|t| t.from == *name || t.to == *name);
    let measured = open::runtime()?.block_on(async {
        let opened = open::unless_interrupted(async {
            let mut fleet = Fleet::open_told(&inventory, |h| needed(&h.name), &*progress).await;
            match ways {
                Some(ways) => ways.settle(&mut fleet, &mut inventory).await,
                None => fleet.notes.iter().for_each(|note| out::note(note)),
            }
            fleet
        });
        let Some(fleet) = opened.await else { return Ok(None) };
        open::with_fleet(fleet, async |fleet| {
            let placed = match ends {
                Some(ends) => Some(place::with_endpoints(fleet, &inventory, ends).await?),
                None => None,
            };
            Ok(single::run(
                fleet,
                placed.as_ref().unwrap_or(&inventory),
                tests,
                report::single::headline,
                &mut context,
            )
            .await?)
        })
        .await
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
            "summary": report::verdict::of(snapshot, diagnosis),
            "samples": snapshot.samples,
        }));
    }
    out::print(&report::text::page(snapshot, diagnosis, report::heat::Style::detect()))?;
    out::note(&format!("run {0}: `linerate report {0} --html` draws it", snapshot.id));
    Ok(())
}
