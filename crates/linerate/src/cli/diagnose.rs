//! `linerate diagnose`: the reasoning again, on a stored run, a snapshot file, a case file, or on what other tools printed.

use std::path::{Path, PathBuf};

use anyhow::Context;
use linerate_diagnose::Knowledge;
use linerate_model::exit::ExitCode;
use linerate_model::finding::Diagnosis;
use linerate_model::snapshot::Snapshot;

use super::{import, open, out};
use crate::report;
use crate::store::Store;

/// Diagnose a stored run, a snapshot, a case, or files with what other tools printed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate diagnose                      the last run\n  linerate diagnose snapshot.json\n  linerate diagnose cases/a3.toml\n  linerate diagnose mail.txt iperf3.json evidence/   what `linerate import` reads, without storing it\n  xclip -o | linerate diagnose -          a session that you copied"
)]
pub(super) struct Args {
    /// A run, a snapshot (.json), a case (.toml), or files and folders of any tool; the last run when it is left out
    #[arg(value_name = "RUN|FILE")]
    what: Vec<String>,
    #[command(flatten)]
    reading: import::Reading,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let knowledge = open::knowledge()?;
    let (snapshot, diagnosis) = diagnosed(&args.what, &args.reading, &knowledge)?;
    if args.json {
        out::print(&report::json::imported(&snapshot, &diagnosis))?;
    } else {
        out::print(&report::text::page(&snapshot, &diagnosis, report::heat::Style::detect()))?;
    }
    Ok(open::verdict_code(&snapshot, &diagnosis))
}

fn diagnosed(
    what: &[String],
    reading: &import::Reading,
    knowledge: &Knowledge,
) -> anyhow::Result<(Snapshot, Diagnosis)> {
    let judged = |snapshot: Snapshot| {
        let diagnosis = linerate_diagnose::diagnose(&snapshot, knowledge);
        (snapshot, diagnosis)
    };
    let paths: Vec<PathBuf> = what.iter().map(PathBuf::from).collect();
    let only = if let [path] = &paths[..] { Some(path) } else { None };
    let has = |extension: &str| only.filter(|p| p.extension().is_some_and(|e| e == extension));
    if let Some(path) = has("toml") {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let case = linerate_diagnose::case::parse(&path.display().to_string(), &text)?;
        let diagnosis = linerate_diagnose::case::diagnose(&case, knowledge);
        return Ok((case.snapshot, diagnosis));
    }
    if let Some(path) = has("json").filter(|path| is_snapshot(path)) {
        return Ok(judged(read_snapshot(path)?));
    }
    let is_there = |path: &PathBuf| path.exists() || path.as_os_str() == "-";
    if !paths.is_empty() && (paths.len() > 1 || paths.iter().all(is_there)) {
        return Ok(judged(import::read(&paths, reading)?));
    }
    let store = Store::open_default()?;
    let row = store.find_run(what.first().map(String::as_str)).map_err(|error| match only {
        // A name with a dot or a slash was meant as a file.
        Some(path) if path.to_string_lossy().contains(['.', '/']) => {
            anyhow::anyhow!("there is no file {}, and {error}", path.display())
        }
        _ => error.into(),
    })?;
    Ok(judged(store.load_snapshot(&row.id)?))
}

/// Whether a JSON file is one of our own, not one of iperf3 or fio.
fn is_snapshot(path: &Path) -> bool {
    let Ok(bytes) = std::fs::read(path) else { return true };
    match serde_json::from_slice::<serde_json::Value>(&bytes) {
        Ok(value) => value.get("inventory").is_some() && value.get("schema").is_some(),
        Err(_) => false,
    }
}

/// A snapshot file.
pub(super) fn read_snapshot(path: &Path) -> anyhow::Result<Snapshot> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let snapshot: Snapshot =
        serde_json::from_slice(&bytes).with_context(|| format!("{} is not a snapshot", path.display()))?;
    anyhow::ensure!(
        snapshot.schema <= linerate_model::SCHEMA,
        "{} has schema {}, this program knows up to {}\nhint: use the newer linerate",
        path.display(),
        snapshot.schema,
        linerate_model::SCHEMA
    );
    Ok(snapshot)
}
