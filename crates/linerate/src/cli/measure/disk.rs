//! `linerate measure disk`: what the disks of hosts do under a load made on purpose, beside what they should.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use linerate_model::disk_load::{DiskPhase, DiskTarget, Durable};
use linerate_model::exit::ExitCode;
use linerate_model::fact::Gap;
use linerate_model::kind::DiskPlan;
use linerate_model::sample::Outcome;
use linerate_model::snapshot::Snapshot;
use linerate_model::tuning::Tuning;

use crate::cli::disk::hosts::LoadedHosts;
use crate::cli::documents::DiskBench;
use crate::cli::via::Hosts;
use crate::cli::{open, out, progress, quantity};
use linerate_fleet::Fleet;
use linerate_operator::observe::bench;
use linerate_operator::observe::context::Context;
use linerate_report as report;
use linerate_report::bench as shown;
use linerate_store::Store;

/// Where a file is made when nobody says where: on most hosts the disk of the system, and never memory.
const FOLDER: &str = "/var/tmp";

/// Benchmark disks: throughput, latency, bottleneck, and expected volume performance
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("inventory", |inventory| inventory.conflicts_with("via")),
    after_help = "Examples:\n  linerate measure disk                                   a temporary file in /var/tmp, five tests\n  linerate measure disk --in /srv store-1 store-2         two hosts in parallel, over ssh\n  linerate measure disk --read sda --do random-read --depth 64\n  linerate measure disk --write-to sdx                    a provably empty drive; prompts for its name\n\nWithout --write-to, only an unnamed temporary file is written; it is removed afterwards, even after a crash.\nA figure in brackets is not evidence about the drive; the note below it gives the reason."
)]
pub(super) struct Args {
    #[command(flatten)]
    on: LoadedHosts,
    /// Folder for the temporary test file
    #[arg(long = "in", value_name = "FOLDER", default_value = FOLDER, conflicts_with_all = ["read", "write_to"])]
    folder: PathBuf,
    /// Run read-only tests on this file or block device; it may be in use
    #[arg(long, value_name = "PATH", conflicts_with = "write_to")]
    read: Option<PathBuf>,
    /// Write to this block device; refused unless it is provably empty and unused
    #[arg(long, value_name = "DEVICE")]
    write_to: Option<PathBuf>,
    /// Confirm non-interactively by repeating the device name
    #[arg(long = "yes", alias = "really", value_name = "DEVICE", requires = "write_to")]
    really: Option<String>,
    /// Size of the test file, or of the tested part of the device
    #[arg(short, long, value_name = "BYTES", default_value = "1G", value_parser = quantity::file_size)]
    size: u64,
    /// Tests to run, comma-separated
    #[arg(long = "do", value_name = "TEST", value_enum, value_delimiter = ',')]
    tests: Vec<Kind>,
    /// Time limit of each test
    #[arg(short, long, default_value = "5s", value_parser = quantity::duration)]
    time: Duration,
    #[command(flatten)]
    shape: Shape,
    /// Print samples as JSON, each test with its expected result
    #[arg(long)]
    json: bool,
    /// Also write one HTML file with histograms and time series
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    html: Option<PathBuf>,
    /// Hide progress output
    #[arg(short, long, hide_short_help = true)]
    quiet: bool,
}

/// Parameters of all tests, in place of the defaults of each.
#[derive(Debug, clap::Args)]
struct Shape {
    /// Request size [default: 4K random and safe, 1M sequential]
    #[arg(short, long, value_name = "BYTES", value_parser = quantity::block)]
    block: Option<u32>,
    /// Queue depth per thread [default: 32 random, 8 sequential, 1 safe]
    #[arg(short, long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=4096))]
    depth: Option<u16>,
    /// Number of threads
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256), hide_short_help = true)]
    threads: u16,
    /// Percentage of reads in the mixed test
    #[arg(long, value_name = "PERCENT", default_value_t = 70, value_parser = clap::value_parser!(u8).range(0..=100), hide_short_help = true)]
    reads: u8,
    /// Use the kernel's page cache; results served from the cache are detected and not counted as evidence
    #[arg(long, hide_short_help = true)]
    cached: bool,
    /// Writes per flush in the safe test
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..), hide_short_help = true)]
    flush_every: u32,
    /// Method of making writes durable in the safe test
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Safe::Fdatasync, hide_short_help = true)]
    safe: Safe,
    /// Completions to reap per wait; higher values reduce CPU use and increase latency
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=4096), hide_short_help = true)]
    batch: u16,
    /// Stop each test after this number of requests
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..), hide_short_help = true)]
    requests: Option<u64>,
    /// I/O method [default: the best one available on the host]
    #[arg(long, value_name = "METHOD", value_parser = ["io_uring", "calls"], hide_short_help = true)]
    by: Option<String>,
}

/// Kinds of tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    /// Small random reads
    RandomRead,
    /// Small random writes
    RandomWrite,
    /// Large sequential reads
    SeqRead,
    /// Large sequential writes
    SeqWrite,
    /// Small durable writes (safe from power loss), one at a time
    SafeWrite,
    /// Small random reads and writes
    Mixed,
}

/// The usual tests.
const USUAL: [Kind; 5] =
    [Kind::RandomRead, Kind::RandomWrite, Kind::SeqRead, Kind::SeqWrite, Kind::SafeWrite];

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Safe {
    /// Flush file content and the metadata required to read it
    Fdatasync,
    /// Flush file content and all metadata
    Fsync,
    /// Make each write durable (O_DSYNC)
    Dsync,
}

impl Shape {
    fn phase(&self, kind: Kind) -> DiskPhase {
        let (random, reads, block, depth) = match kind {
            Kind::RandomRead => (true, 100, 4 << 10, 32),
            Kind::RandomWrite => (true, 0, 4 << 10, 32),
            Kind::SeqRead => (false, 100, 1 << 20, 8),
            Kind::SeqWrite => (false, 0, 1 << 20, 8),
            Kind::SafeWrite => (false, 0, 4 << 10, 1),
            Kind::Mixed => (true, self.reads, 4 << 10, 32),
        };
        let durable = match (kind, self.safe) {
            (Kind::SafeWrite, Safe::Fdatasync) => Durable::Data(self.flush_every),
            (Kind::SafeWrite, Safe::Fsync) => Durable::Full(self.flush_every),
            (Kind::SafeWrite, Safe::Dsync) => Durable::Each,
            _ => Durable::Never,
        };
        DiskPhase {
            random,
            reads,
            block_bytes: self.block.unwrap_or(block),
            depth: self.depth.unwrap_or(depth),
            threads: self.threads,
            direct: !self.cached,
            durable,
            batch: self.batch,
        }
    }
}

impl Args {
    fn is_for_one_host(&self) -> bool {
        match (self.on.hosts.len(), self.on.inventory.given()) {
            (1, _) | (0, None) => !self.on.via.is_asked(),
            _ => false,
        }
    }

    fn plan(&self) -> anyhow::Result<DiskPlan> {
        let tests: Vec<Kind> = match (self.tests.is_empty(), &self.read) {
            (false, _) => self.tests.clone(),
            (true, None) => USUAL.to_vec(),
            (true, Some(_)) => vec![Kind::RandomRead, Kind::SeqRead],
        };
        let phases: Vec<DiskPhase> = tests.iter().map(|kind| self.shape.phase(*kind)).collect();
        let target = match (&self.read, &self.write_to) {
            (Some(path), _) => {
                anyhow::ensure!(
                    phases.iter().all(|p| !p.writes()),
                    "{} is only read, and a test would write it\nhint: --do random-read,seq-read",
                    path.display()
                );
                DiskTarget::Existing { path: device(path) }
            }
            (None, Some(path)) => {
                let path = device(path);
                anyhow::ensure!(
                    self.is_for_one_host(),
                    "--write-to is for one host at a time: {} is another drive on each\nhint: name one host, or none for this machine",
                    path.display()
                );
                let really = match &self.really {
                    Some(name) => name.clone(),
                    None => ask(&path)?,
                };
                DiskTarget::Empty { path, really, bytes: self.size }
            }
            (None, None) => DiskTarget::Folder { path: self.folder.clone(), bytes: self.size },
        };
        Ok(DiskPlan {
            target,
            phases,
            phase_ms: self.time.as_millis().min(3_600_000) as u32,
            bytes_max: None,
            requests_max: self.shape.requests,
            way: self.shape.by.clone(),
        })
    }
}

/// `sdx` is `/dev/sdx`.
fn device(path: &Path) -> PathBuf {
    if path.components().count() == 1 && !path.exists() {
        Path::new("/dev").join(path)
    } else {
        path.to_owned()
    }
}

/// Asks for the name of a device that is going to be written.
fn ask(path: &Path) -> anyhow::Result<String> {
    let shown = path.display();
    anyhow::ensure!(
        std::io::stdin().is_terminal() && std::io::stderr().is_terminal(),
        "{shown} is written only after its name was typed, and there is no terminal\nhint: --yes with its name, such as --yes=sdx"
    );
    write!(std::io::stderr(), "{shown} will be written, if it holds nothing. Type its name to go on: ")?;
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    Ok(line.trim().to_owned())
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let plan = args.plan()?;
    open::runtime()?.block_on(async {
        let Some(Hosts { inventory, job, .. }) = args.on.open().await? else {
            return Ok(open::after_interrupt());
        };
        let done = measure(args, &plan, &inventory).await;
        Hosts::end(job).await;
        done
    })
}

async fn measure(
    args: &Args,
    plan: &DiskPlan,
    inventory: &linerate_model::inventory::Inventory,
) -> anyhow::Result<ExitCode> {
    let progress = progress::start(args.quiet, args.json);
    let mut store = Store::open_default()?;
    let opened = Fleet::open_with_progress(inventory, |_| true, progress.as_ref());
    let Some(fleet) = open::unless_interrupted(opened).await else { return Ok(open::after_interrupt()) };
    fleet.notes.iter().for_each(|note| out::note(note));
    let tuning = Tuning::default();
    let mut context = Context { store: &mut store, progress: progress.as_ref(), tuning: &tuning };
    let done = open::with_fleet(fleet, async |fleet| {
        anyhow::ensure!(!fleet.hosts().is_empty(), "no host can be measured: {}", Gap::reasons(&fleet.gaps));
        Ok(bench::run(fleet, inventory, plan, report::single::disks_headline, &mut context).await?)
    });
    let Some((snapshot, diagnosis)) = done.await? else { return Ok(open::after_interrupt()) };
    if let Some(path) = &args.html {
        let material =
            report::Material { snapshot: &snapshot, diagnosis: &diagnosis, trials: &[], reveal: None };
        std::fs::write(path, report::Format::render(&report::html::Html, &material))
            .map_err(|e| anyhow::anyhow!("cannot write {}: {e}", path.display()))?;
    }
    if args.json {
        let shown = DiskBench {
            run: &snapshot.id,
            tests: shown::told(&snapshot),
            samples: &snapshot.samples,
            gaps: &snapshot.gaps,
        };
        out::document(report::verdict::of(&snapshot, &diagnosis), shown)?;
    } else {
        out::print(&report::text::page(&snapshot, &diagnosis, report::heat::Style::detect()))?;
        if !snapshot.id.is_empty() {
            out::note(&format!("run {0}: `linerate show {0} --html` draws it", snapshot.id));
        }
    }
    Ok(code(&snapshot))
}

/// What could not be measured at all, what falls short, what is no evidence: in this order.
fn code(snapshot: &Snapshot) -> ExitCode {
    let told = shown::told(snapshot);
    let ended = |outcome: &Outcome| match outcome {
        Outcome::Measured(m) => m.tx.as_ref().is_some_and(|tx| tx.stopped.is_none()),
        _ => false,
    };
    if told.is_empty() {
        ExitCode::CouldNotRun
    } else if told.iter().any(shown::BenchPhaseView::is_low) {
        ExitCode::Findings
    } else if !snapshot.gaps.is_empty()
        || snapshot.samples.iter().any(|s| !ended(&s.outcome))
        || told.iter().any(|t| !t.is_evidence())
    {
        ExitCode::PartlyBlind
    } else {
        ExitCode::Ok
    }
}
