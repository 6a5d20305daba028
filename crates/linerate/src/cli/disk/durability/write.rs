//! `linerate disk durability write`: records into a folder of a host, each acknowledgement into a list here,
//! until the power is cut.

use std::path::{Path, PathBuf};
use std::time::Duration;

use linerate_model::SCHEMA;
use linerate_model::durability::{self, Pattern, Promises, RECORDS_MAX, WritePlan};
use linerate_model::exit::ExitCode;

use super::super::super::{open, out, progress, quantity};
use super::host::Place;
use linerate_fleet::clock;
use linerate_operator::observe::durability::{WritePace, patterns, prepare, write};
use linerate_operator::observe::promises::List;
use linerate_report::durability as shown;

/// Most records per second.
const RATE_MAX: u32 = 100_000;

/// Write records to a folder and log each promise locally until the host loses power
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// Folder on the filesystem under test; must be empty or not exist
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    #[command(flatten)]
    place: Place,
    /// File for the list of promises, on another disk; `-` for stdout
    #[arg(long, value_name = "FILE")]
    promises: Option<PathBuf>,
    /// Write patterns, e.g. create,replace+fsync; defaults to all
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    patterns: Vec<String>,
    /// Maximum number of records
    #[arg(long, value_name = "NUMBER", default_value_t = 12_000, value_parser = clap::value_parser!(u32).range(1..=i64::from(RECORDS_MAX)))]
    records: u32,
    /// Records per second, e.g. 200/s
    #[arg(long, value_name = "RATE", default_value = "200/s", value_parser = records_per_s)]
    rate: u32,
    /// Time limit, at most 1h
    #[arg(short, long, default_value = "60s", value_parser = limit)]
    time: Duration,
    /// Number of files for each pattern that rewrites its files
    #[arg(long, value_name = "NUMBER", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=i64::from(durability::FILES_MAX)))]
    files: u32,
    /// Allow the list on the disk under test; a power cut may destroy it
    #[arg(long)]
    same_disk: bool,
    /// Print a line of JSON at the end
    #[arg(long)]
    json: bool,
}

pub(in crate::cli) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    open::runtime()?.block_on(run_async(args))
}

fn records_per_s(text: &str) -> Result<u32, String> {
    let rate = quantity::per_s(text)?;
    (rate <= RATE_MAX)
        .then_some(rate)
        .ok_or_else(|| format!("{text} is out of range\nhint: at most {RATE_MAX}/s"))
}

fn limit(text: &str) -> Result<Duration, String> {
    let time = quantity::duration(text)?;
    let fits = (Duration::from_secs(1)..=Duration::from_secs(3600)).contains(&time);
    fits.then_some(time).ok_or_else(|| format!("{text} is out of range\nhint: 1s to 1h"))
}

/// The patterns that are wanted, of those that the host knows.
fn chosen(args: &Args, known: Vec<Pattern>) -> anyhow::Result<Vec<String>> {
    if args.patterns.is_empty() {
        return Ok(known.into_iter().map(|p| p.name).collect());
    }
    for name in &args.patterns {
        anyhow::ensure!(
            known.iter().any(|p| p.name == *name),
            "there is no pattern {name:?} of writing\nhint: `linerate disk durability patterns` lists them"
        );
    }
    Ok(args.patterns.clone())
}

/// Sixteen hexadecimal digits.
fn new_run() -> std::io::Result<String> {
    Ok(clock::random::<8>()?.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}")))
}

async fn run_async(args: &Args) -> anyhow::Result<ExitCode> {
    let (inventory, host) = args.place.host(None)?;
    let plan = WritePlan { run: new_run()?, patterns: Vec::new(), files: args.files, records: args.records };
    let path =
        args.promises.clone().unwrap_or_else(|| format!("linerate-durability-{}.jsonl", plan.run).into());
    let to_stdout = path == Path::new("-");
    anyhow::ensure!(
        !(to_stdout && args.json),
        "the list of promises goes to stdout, so that --json has no room there"
    );
    let folder = open::absolute(&args.folder);
    anyhow::ensure!(
        to_stdout || args.same_disk || !Place::shares_a_disk(&inventory, &host, &path, &folder),
        "the list {} would lie on the file system under test, where a power cut may take it along\nhint: name a file on another disk with --promises, write to a pipe with `--promises -`, run it from another machine with --on, or give --same-disk",
        path.display()
    );
    let mut promises = Promises {
        schema: SCHEMA,
        host: host.clone(),
        folder,
        plan,
        patterns: Vec::new(),
        place: durability::FolderLocation::default(),
        start_ms: clock::now_ms(),
        acknowledged: 0,
        asked: 0,
        last_ms: 0,
        ended: String::new(),
    };
    let pace = WritePace { rate: args.rate, time: args.time };
    let progress = progress::start(false, false);
    let done = Place::with(&inventory, &host, async |link| {
        // The node's refusal comes before a list is begun.
        promises.plan.patterns = chosen(args, patterns(&link).await?)?;
        prepare(&link, &mut promises).await?;
        let mut list = List::begin(&path)?;
        list.head(&promises)?;
        out::note(&format!("{}: {}", promises.host, shown::place(&promises.place)));
        out::note("cut the power now, or stop it with Ctrl-C");
        write(&link, &mut promises, &mut list, pace, &*progress).await?;
        Ok(())
    });
    let Some(()) = done.await? else { return Ok(interrupted(&path, to_stdout)) };
    if args.json {
        out::json_line(&promises)?;
    } else {
        out::note(&shown::told(&promises));
        next(&path, to_stdout);
    }
    Ok(ExitCode::Ok)
}

fn next(path: &Path, to_stdout: bool) {
    let list = if to_stdout { "FILE".to_owned() } else { out::word(&path.display().to_string()) };
    out::note(&format!("when the host is back: linerate disk durability check --promises {list}"));
    out::note(&format!("to remove the files:   linerate disk durability check --promises {list} --clean"));
}

fn interrupted(path: &Path, to_stdout: bool) -> ExitCode {
    out::note("interrupted; the records are there, the list is kept");
    next(path, to_stdout);
    ExitCode::Interrupted
}
