//! `linerate diagnose`: the reasoning again, on a stored run, a snapshot file or a case file.

use std::path::{Path, PathBuf};

use anyhow::Context;
use linerate_diagnose::Knowledge;
use linerate_model::exit::ExitCode;
use linerate_model::finding::Diagnosis;
use linerate_model::snapshot::Snapshot;

use super::{open, out};
use crate::report;
use crate::store::Store;

/// Diagnose a stored run, a snapshot or a case again.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate diagnose                      the last run\n  linerate diagnose snapshot.json\n  linerate diagnose cases/a3.toml"
)]
pub(super) struct Args {
    /// A run, a snapshot (.json) or a case (.toml); the last run when it is left out
    #[arg(value_name = "RUN|FILE")]
    what: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let knowledge = open::knowledge()?;
    let (snapshot, diagnosis) = diagnosed(args.what.as_deref(), &knowledge)?;
    if args.json {
        out::print(&report::json::page(&diagnosis, None))?;
    } else {
        out::print(&report::text::page(&snapshot, &diagnosis, report::heat::Style::detect()))?;
    }
    Ok(open::verdict_code(&snapshot, &diagnosis))
}

fn diagnosed(what: Option<&str>, knowledge: &Knowledge) -> anyhow::Result<(Snapshot, Diagnosis)> {
    let path = what.map(PathBuf::from);
    let has = |extension: &str| path.as_ref().filter(|p| p.extension().is_some_and(|e| e == extension));
    if let Some(path) = has("json") {
        let snapshot = read_snapshot(path)?;
        let diagnosis = linerate_diagnose::diagnose(&snapshot, knowledge);
        Ok((snapshot, diagnosis))
    } else if let Some(path) = has("toml") {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let case = linerate_diagnose::case::parse(&path.display().to_string(), &text)?;
        let diagnosis = linerate_diagnose::case::diagnose(&case, knowledge);
        Ok((case.snapshot, diagnosis))
    } else {
        let store = Store::open_default()?;
        let row = store.find_run(what)?;
        let snapshot = store.load_snapshot(&row.id)?;
        let diagnosis = linerate_diagnose::diagnose(&snapshot, knowledge);
        Ok((snapshot, diagnosis))
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
