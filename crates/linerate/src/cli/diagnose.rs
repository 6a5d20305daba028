//! `linerate diagnose`: the reasoning again, on a stored run, a snapshot file, a case file, or on what other
//! tools printed.

use std::path::{Path, PathBuf};

use anyhow::Context;
use linerate_knowledge::Knowledge;
use linerate_model::exit::ExitCode;
use linerate_model::finding::Diagnosis;
use linerate_model::snapshot::Snapshot;

use super::{import, open, out};
use linerate_input as input;
use linerate_report as report;
use linerate_store::Store;

/// Diagnose a stored run, a snapshot, a case, or the output of other tools.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate diagnose                      the last run\n  linerate diagnose snapshot.json\n  linerate diagnose cases/a3.toml\n  linerate diagnose mail.txt iperf3.json evidence/   same inputs as `linerate import`, without storing them\n  xclip -o | linerate diagnose -          a copied terminal session"
)]
pub(super) struct Args {
    /// Run ID, snapshot (.json), case (.toml), or files and folders with output of other tools; defaults to
    /// the last run
    #[arg(value_name = "RUN|FILE")]
    what: Vec<String>,
    #[command(flatten)]
    reading: import::Reading,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print everything: evidence, other causes, advice, unused tests, all that could not be seen
    #[arg(short, long, conflicts_with = "json")]
    verbose: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let knowledge = open::knowledge()?;
    let (snapshot, diagnosis) = diagnosed(&args.what, &args.reading, &knowledge)?;
    if args.json {
        out::print(&report::json::imported(&snapshot, &diagnosis))?;
    } else {
        open::print_verdict(&snapshot, &diagnosis, args.verbose)?;
    }
    Ok(open::verdict_code(&snapshot, &diagnosis))
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
        let case = linerate_diagnose::case::parse(&path.display().to_string(), &text)?;
        let diagnosis = linerate_report::words::written(linerate_diagnose::case::diagnose(&case, knowledge));
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
    let row = store.find_run(what.first().map(String::as_str)).map_err(|error| match only {
        // A name with a dot or a slash was meant as a file.
        Some(path) if path.to_string_lossy().contains(['.', '/']) => {
            anyhow::anyhow!("there is no file {}, and {error}", path.display())
        }
        _ => error.into(),
    })?;
    Ok(judged(store.load_snapshot(&row.id)?))
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
