//! `linerate disk bench`: what the disks of hosts do under a load made on purpose, beside what they should.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use linerate_model::disk_load::{DiskPhase, DiskPlan, DiskTarget, Durable};
use linerate_model::exit::ExitCode;
use linerate_model::sample::Outcome;
use linerate_model::snapshot::Snapshot;
use linerate_model::tuning::Tuning;

use super::super::via::{Hosts, Via};
use super::super::{open, out, progress, quantity, survey};
use crate::observe::bench;
use crate::observe::context::Context;
use linerate_fleet::Fleet;
use linerate_report as report;
use linerate_report::bench as shown;
use linerate_store::Store;

/// Where a file is made when nobody says where: on most hosts the disk of the system, and never memory.
const FOLDER: &str = "/var/tmp";

/// Measure disks: rates, how long requests take, what binds, and what the volume should reach
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate disk bench                                   a file of its own in /var/tmp, five tests\n  linerate disk bench --in /srv store-1 store-2         two hosts at the same time, over ssh\n  linerate disk bench --read sda --do random-read --depth 64\n  linerate disk bench --write-to sdx                    a drive that provably holds nothing; asks for its name\n\nNothing but a file of its own is written, which has no name and is gone afterwards, also after a crash.\nA figure in brackets is no evidence about the drive: the sentence below says why."
)]
pub(in crate::cli) struct Args {
    /// Hosts to reach over ssh; without one this machine. With --inventory names of its hosts; without one
    /// all of them
    #[arg(value_name = "HOST")]
    hosts: Vec<String>,
    /// Inventory file
    #[arg(short, long, value_name = "FILE", conflicts_with = "via")]
    inventory: Option<PathBuf>,
    #[command(flatten)]
    via: Via,
    /// Make the file in this folder
    #[arg(long = "in", value_name = "FOLDER", default_value = FOLDER, conflicts_with_all = ["read", "write_to"])]
    folder: PathBuf,
    /// Only read this file or block device, which may be in use
    #[arg(long, value_name = "PATH", conflicts_with = "write_to")]
    read: Option<PathBuf>,
    /// Write to this block device, if it provably holds nothing and nobody uses it
    #[arg(long, value_name = "DEVICE")]
    write_to: Option<PathBuf>,
    /// Name of that device once more, instead of the question for it
    #[arg(long, value_name = "DEVICE", requires = "write_to")]
    really: Option<String>,
    /// Size of the file, or of the part of the device
    #[arg(short, long, value_name = "BYTES", default_value = "1G", value_parser = quantity::file_size)]
    size: u64,
    /// Tests
    #[arg(long = "do", value_name = "TEST", value_enum, value_delimiter = ',')]
    tests: Vec<Kind>,
    /// Longest time of each test
    #[arg(short, long, default_value = "5s", value_parser = survey::duration)]
    time: Duration,
    #[command(flatten)]
    shape: Shape,
    /// Print the samples as JSON, each test beside what should be reached
    #[arg(long)]
    json: bool,
    /// Write one HTML file with histograms and series too
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// No progress
    #[arg(short, long)]
    quiet: bool,
    /// Never use sudo on hosts
    #[arg(long)]
    no_sudo: bool,
}

/// What all tests have, instead of what each usually has.
#[derive(Debug, clap::Args)]
struct Shape {
    /// Size of a request [default: 4K at random places and safe, 1M in a row]
    #[arg(short, long, value_name = "BYTES", value_parser = quantity::block)]
    block: Option<u32>,
    /// Requests under way of each thread [default: 32 at random places, 8 in a row, 1 safe]
    #[arg(short, long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=4096))]
    depth: Option<u16>,
    /// Threads
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: u16,
    /// Share of reads of the mixed test, percent
    #[arg(long, value_name = "PERCENT", default_value_t = 70, value_parser = clap::value_parser!(u8).range(0..=100))]
    reads: u8,
    /// Through the cache of the kernel; what the cache answers is recognised and is no evidence
    #[arg(long)]
    cached: bool,
    /// Writes before a flush in the safe test
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    flush_every: u32,
    /// What makes writes safe in the safe test
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Safe::Fdatasync)]
    safe: Safe,
    /// Ends of requests that are waited for at a time: more cost less CPU and more time
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=4096))]
    batch: u16,
    /// End each test after so many requests
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,
    /// Way of making requests [default: the best that the host allows]
    #[arg(long, value_name = "WAY", value_parser = ["io_uring", "calls"])]
    by: Option<String>,
}

/// Kinds of tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    /// Small reads at random places
    RandomRead,
    /// Small writes at random places
    RandomWrite,
    /// Large reads in a row
    SeqRead,
    /// Large writes in a row
    SeqWrite,
    /// Small writes that are safe from a loss of power, one after the other
    SafeWrite,
    /// Small reads and writes at random places
    Mixed,
}

/// The usual tests.
const USUAL: [Kind; 5] =
    [Kind::RandomRead, Kind::RandomWrite, Kind::SeqRead, Kind::SeqWrite, Kind::SafeWrite];

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Safe {
    /// Content, and what is needed to find it
    Fdatasync,
    /// All that belongs to the file
    Fsync,
    /// Every write by itself
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
        match (self.hosts.len(), &self.inventory) {
            (1, _) | (0, None) => !self.via.is_asked(),
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
        "nobody is there to be asked whether {shown} may be written\nhint: --really with its name, such as --really sdx"
    );
    write!(std::io::stderr(), "{shown} will be written, if it holds nothing. Type its name to go on: ")?;
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    Ok(line.trim().to_owned())
}

pub(in crate::cli) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let plan = args.plan()?;
    open::runtime()?.block_on(async {
        let Some(Hosts { inventory, job, .. }) =
            super::hosts::hosts(&args.via, args.inventory.as_deref(), &args.hosts, args.no_sudo).await?
        else {
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
    let opened = Fleet::open_told(inventory, |_| true, progress.as_ref());
    let Some(fleet) = open::unless_interrupted(opened).await else { return Ok(open::after_interrupt()) };
    fleet.notes.iter().for_each(|note| out::note(note));
    let tuning = Tuning::default();
    let mut context = Context { store: &mut store, progress: progress.as_ref(), tuning: &tuning };
    let done = open::with_fleet(fleet, async |fleet| {
        anyhow::ensure!(
            !fleet.hosts().is_empty(),
            "no host can be measured: {}",
            fleet.gaps.iter().map(|g| format!("{}: {}", g.what, g.reason)).collect::<Vec<_>>().join("; ")
        );
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
        out::json(&serde_json::json!({
            "schema": linerate_model::SCHEMA,
            "run": snapshot.id,
            "tests": shown::told(&snapshot),
            "samples": snapshot.samples,
            "gaps": snapshot.gaps,
        }))?;
    } else {
        out::print(&report::text::page(&snapshot, &diagnosis, report::heat::Style::detect()))?;
        out::note(&format!("run {0}: `linerate report {0} --html` draws it", snapshot.id));
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
    } else if told.iter().any(shown::Told::is_low) {
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
