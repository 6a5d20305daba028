//! `linerate diagnose`: the reasoning again, on a stored run, a snapshot file, a case file, or on what other
//! tools printed or Prometheus stored.

use std::path::{Path, PathBuf};

use anyhow::Context;
use linerate_import::prometheus::StoredRange;
use linerate_knowledge::Knowledge;
use linerate_model::exit::ExitCode;
use linerate_model::finding::Diagnosis;
use linerate_model::snapshot::Snapshot;

use super::{import, open, out, progress, quantity};
use crate::prometheus::{self, Trusted};
use linerate_input as input;
use linerate_report as report;
use linerate_store::Store;

/// Diagnose a run, snapshot, case, output of other tools, or what Prometheus stored.
#[derive(Debug, clap::Args)]
#[command(
    group = clap::ArgGroup::new("evidence").args(["what", "prometheus"]),
    after_help = AFTER_HELP,
    after_long_help = import::INPUTS.to_owned() + AFTER_HELP
)]
pub(super) struct Args {
    /// Run ID, snapshot (.json), case (.toml), or files and folders with output of other tools; defaults to
    /// the last run
    #[arg(value_name = "RUN|FILE")]
    what: Vec<String>,
    /// Read what Prometheus stored of node_exporter
    #[arg(long, value_name = "URL", conflicts_with_all = ["host", "format", "layer"])]
    prometheus: Option<String>,
    /// How long ago, or from/to (UTC): 2026-11-20/2026-11-21
    #[arg(long, value_name = "TIME[/TIME]", requires = "prometheus", default_value = "24h", value_parser = range)]
    range: Range,
    /// Certificates to trust instead of those of this host (PEM), for https
    #[arg(long, value_name = "FILE", requires = "prometheus")]
    ca: Option<PathBuf>,
    #[command(flatten)]
    reading: import::Reading,
    /// Store the evidence as a run, for `show`, `diff` and `try`
    #[arg(long, requires = "evidence")]
    save: bool,
    /// Parent run of the stored run
    #[arg(long, value_name = "RUN", requires = "save")]
    parent: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print everything: evidence, other causes, advice, unused tests, all that could not be seen
    #[arg(short, long, conflicts_with = "json")]
    verbose: bool,
}

const AFTER_HELP: &str = "\
Examples:
  linerate diagnose                                  the last run that can be diagnosed
  linerate diagnose snapshot.json
  linerate diagnose mail.txt iperf3.json evidence/   output of other tools, a folder of it
  linerate diagnose --save sosreport-arc-1/          the same, stored as a run
  linerate diagnose --prometheus http://prom:9090    the last 24 hours of node_exporter
  xclip -o | linerate diagnose -                     a copied terminal session";

/// Begin and end of what is read of Prometheus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    from: quantity::Since,
    /// None for now.
    to: Option<quantity::Since>,
}

fn range(text: &str) -> Result<Range, String> {
    let (from, to) = match text.split_once('/') {
        Some((from, to)) => (from, Some(quantity::since(to)?)),
        None => (text, None),
    };
    Ok(Range { from: quantity::since(from)?, to })
}

/// Reads what Prometheus stored into a snapshot without a name.
fn stored(url: &str, args: &Args) -> anyhow::Result<Snapshot> {
    let now_ms = linerate_fleet::clock::now_ms();
    let from_ms = args.range.from.unix_ms(now_ms);
    let to_ms = args.range.to.map_or(now_ms, |to| to.unix_ms(now_ms)).min(now_ms);
    let range = StoredRange::new(from_ms, to_ms).map_err(anyhow::Error::msg)?;
    let trusted = |path: &PathBuf| -> anyhow::Result<Trusted> {
        Ok(Trusted { path: path.clone(), pem: input::text(path, input::CERTIFICATES_BYTES_MAX)? })
    };
    let trusted = args.ca.as_ref().map(trusted).transpose()?;
    prometheus::read(url, range, trusted, args.reading.known()?, &*progress::start(false, args.json))
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let knowledge = open::knowledge()?;
    if args.save {
        let paths: Vec<PathBuf> = args.what.iter().map(PathBuf::from).collect();
        let read = || match &args.prometheus {
            Some(url) => stored(url, args),
            None => import::read(&paths, &args.reading),
        };
        let (snapshot, diagnosis) = import::save(read, &args.reading, args.parent.as_deref(), &knowledge)?;
        show(args, &snapshot, &diagnosis)?;
        if !args.json {
            out::note(&format!("run {0}; all of it: linerate show {0}", snapshot.id));
        }
        return Ok(open::verdict_code(&snapshot, &diagnosis));
    }
    let (snapshot, diagnosis) = match &args.prometheus {
        Some(url) => {
            let snapshot = stored(url, args)?;
            let diagnosis = linerate_report::words::diagnose(&snapshot, &knowledge);
            (snapshot, diagnosis)
        }
        None => diagnosed(&args.what, &args.reading, &knowledge)?,
    };
    show(args, &snapshot, &diagnosis)?;
    Ok(open::verdict_code(&snapshot, &diagnosis))
}

fn show(args: &Args, snapshot: &Snapshot, diagnosis: &Diagnosis) -> anyhow::Result<()> {
    if args.json {
        return out::print(&report::json::imported(snapshot, diagnosis));
    }
    if args.verbose && args.save {
        out::print(&report::imported::account(snapshot, report::heat::Style::detect()))?;
    }
    open::print_verdict(snapshot, diagnosis, args.verbose, "-v")
}

fn diagnosed(
    what: &[String],
    reading: &import::Reading,
    knowledge: &Knowledge,
) -> anyhow::Result<(Snapshot, Diagnosis)> {
    let judged = |snapshot: Snapshot| {
        let diagnosis = linerate_report::words::diagnose(&snapshot, knowledge);
        (snapshot, diagnosis)
    };
    let paths: Vec<PathBuf> = what.iter().map(PathBuf::from).collect();
    let only = if let [path] = &paths[..] { Some(path) } else { None };
    let has = |extension: &str| only.filter(|p| p.extension().is_some_and(|e| e == extension));
    if let Some(path) = has("toml") {
        let text = input::text(path, input::CASE_BYTES_MAX)?;
        let case = linerate_cases::parse(&path.display().to_string(), &text)?;
        let diagnosis = linerate_report::words::written(linerate_cases::diagnose(&case, knowledge));
        return Ok((case.snapshot, diagnosis));
    }
    if let Some(path) = has("json") {
        let bytes = input::bytes(path, input::SNAPSHOT_BYTES_MAX)?;
        if is_snapshot(&bytes) {
            return Ok(judged(snapshot_of(path, &bytes)?));
        }
    }
    let is_there = |path: &PathBuf| path.exists() || path.as_os_str() == "-";
    if !paths.is_empty() && (paths.len() > 1 || paths.iter().all(is_there)) {
        return Ok(judged(import::read(&paths, reading)?));
    }
    let store = Store::open_to_read()?;
    let row =
        open::run_to_diagnose(&store, what.first().map(String::as_str)).map_err(|error| match only {
            // A name with a dot or a slash was meant as a file.
            Some(path) if path.to_string_lossy().contains(['.', '/']) => {
                anyhow::anyhow!("there is no file {}, and {error}", path.display())
            }
            _ => error.into(),
        })?;
    Ok(judged(open::snapshot_of(&store, &row)?))
}

/// What tells a snapshot from the JSON of iperf3 or fio; nothing of it is kept.
#[derive(serde::Deserialize)]
struct Marks {
    #[serde(rename = "inventory")]
    _inventory: serde::de::IgnoredAny,
    #[serde(rename = "schema")]
    _schema: serde::de::IgnoredAny,
}

fn is_snapshot(bytes: &[u8]) -> bool {
    let bytes = without_mark(bytes).trim_ascii_start();
    // A list of two values would pass for the two fields.
    bytes.starts_with(b"{") && serde_json::from_slice::<Marks>(bytes).is_ok()
}

/// Without the byte order mark that some editors write.
fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// The snapshot in a file.
fn snapshot_of(path: &Path, bytes: &[u8]) -> anyhow::Result<Snapshot> {
    let snapshot: Snapshot = serde_json::from_slice(without_mark(bytes))
        .with_context(|| format!("{} is not a snapshot", path.display()))?;
    anyhow::ensure!(
        snapshot.schema <= linerate_model::SCHEMA,
        "{} has schema {}, this program knows up to {}\nhint: use the newer linerate",
        path.display(),
        snapshot.schema,
        linerate_model::SCHEMA
    );
    Ok(snapshot)
}
