//! What the commands of one test between two hosts share: who, where the result goes, the run in the store.

use std::path::PathBuf;
use std::time::Duration;

use linerate_model::exit::ExitCode;
use linerate_model::finding::Diagnosis;
use linerate_model::inventory::{Inventory, Layer};
use linerate_model::kind::TestKind;
use linerate_model::plan::Test;
use linerate_model::snapshot::Snapshot;
use linerate_model::tuning::Tuning;

use super::place::{self, End};
use super::targets::{Chosen, InventoryFile, Ways};
use super::{events, open, out, progress};
use crate::cli::documents::SingleTest;
use linerate_fleet::Fleet;
use linerate_inventory::{self as inventory, THIS_MACHINE};
use linerate_operator::observe::addresses;
use linerate_operator::observe::context::Context;
use linerate_operator::observe::single;
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
    /// Print every turn and probe too
    #[arg(short, long, conflicts_with = "json", hide_short_help = true)]
    verbose: bool,
    /// Also write one HTML file with histograms and time series
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    html: Option<PathBuf>,
}

/// Two hosts.
#[derive(Debug, clap::Args)]
pub(super) struct Pair {
    /// Sender: a host of the inventory or over ssh; `local` is this machine, alone its loopback;
    /// HOST!container:NAME, HOST!pid:1234 and HOST!netns:PATH are namespaces on a host
    from: String,
    /// Receiver; omit with `local`
    to: Option<String>,
    #[command(flatten)]
    inventory: InventoryFile,
    /// Send from the receiver to the sender instead
    #[arg(short = 'R', long)]
    reverse: bool,
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
            None if THIS_MACHINE.contains(&self.from.as_str()) => &self.from,
            None => anyhow::bail!(
                "two hosts are needed: from `{0}` to which one?\nhint: name the receiver behind {0}; one name is enough for `local`",
                self.from
            ),
        };
        let words = if self.reverse { [to, &self.from] } else { [&self.from, to] }.map(String::clone);
        let mut chosen = chosen(&self.inventory, &words)?;
        self.ways.without_sudo(&mut chosen.inventory);
        let [from, to] = &chosen.names()[..] else { anyhow::bail!("two hosts are needed") };
        if chosen.has_netns() {
            let tests = [test(1, from, to, Layer::Overlay, kind)];
            let ends = Some(&chosen.ends[..]);
            return run_with(chosen.inventory, &tests, tuning, Some(&self.ways), &self.output, ends);
        }
        let layer = if self.overlay { Layer::Overlay } else { Layer::Underlay };
        let is_listed = |name: &&String| !THIS_MACHINE.contains(&name.as_str());
        for host in [from, to].iter().filter(|name| is_listed(name)) {
            anyhow::ensure!(
                addresses::is_needed(&chosen.inventory) || chosen.inventory.endpoint(host, layer).is_some(),
                "host {host} has no {layer} endpoint in the inventory\nhint: add `[[host.endpoint]]` with its address"
            );
        }
        let test = test(1, from, to, layer, kind);
        run(chosen.inventory, &[test], tuning, Some(&self.ways), &self.output)
    }
}

/// The hosts of these words; this machine alone is its loopback.
pub(super) fn chosen(file: &InventoryFile, words: &[String]) -> anyhow::Result<Chosen> {
    let is_own = |word: &String| THIS_MACHINE.contains(&word.as_str());
    if words.iter().all(is_own) {
        let inventory = inventory::loopback();
        let name = inventory.hosts.first().map_or_else(String::new, |host| host.name.clone());
        let ends = words.iter().map(|_| End { host: name.clone(), netns: None }).collect();
        return Ok(Chosen { inventory, file: None, ends });
    }
    file.choose(words)
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

/// The same between ends, at least one a namespace inside a host.
fn run_with(
    mut inventory: Inventory,
    tests: &[Test],
    tuning: &Tuning,
    ways: Option<&Ways>,
    output: &Output,
    ends: Option<&[End]>,
) -> anyhow::Result<ExitCode> {
    let mut store = Store::open_default()?;
    let short = single::expected(tests, tuning) < NEEDS_PROGRESS;
    let progress = progress::start(short && !output.json, output.json);
    let mut context = Context { store: &mut store, progress: &*progress, tuning };
    let needed = |name: &String| tests.iter().any(|t| t.from == *name || t.to == *name);
    let measured = open::runtime()?.block_on(async {
        let opened = open::unless_interrupted(async {
            let mut fleet = Fleet::open_with_progress(&inventory, |h| needed(&h.name), &*progress).await;
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
        return out::document(
            report::verdict::of(snapshot, diagnosis),
            SingleTest { run: &snapshot.id, samples: &snapshot.samples },
        );
    }
    let page = if output.verbose { report::text::page } else { report::text::brief };
    out::print(&page(snapshot, diagnosis, report::heat::Style::detect()))?;
    if !snapshot.id.is_empty() {
        out::note(&format!("run {0}: `linerate show {0} --html` draws it", snapshot.id));
    }
    Ok(())
}
