//! `linerate show`: a stored run as text or as one file; a trial or rollout as text or JSON.

use std::path::PathBuf;

use linerate_model::exit::ExitCode;

use super::{case, open, out};
use linerate_report::{self as report, Material};
use linerate_store::{Rollouts, Store, StoreError};

/// Print a run, trial or rollout; write a run as HTML, JSON, Markdown or a case
// Each is a flag of the command line.
#[allow(clippy::struct_excessive_bools)]
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate show                                 the last run\n  linerate show --html                          the same, to linerate-RUN.html\n  linerate show 20261121-083015-4f2a --md\n  linerate show --anonymize -o cases/slow-tuesday.toml"
)]
pub(super) struct Args {
    /// ID of a run, trial or rollout; defaults to the last run
    #[arg(value_name = "ID")]
    run: Option<String>,
    /// Write one self-contained HTML file
    #[arg(long, group = "format")]
    html: bool,
    /// Write JSON
    #[arg(long, group = "format")]
    json: bool,
    /// Write Markdown
    #[arg(long, group = "format")]
    md: bool,
    /// Write a case with pseudonyms for hosts, groups, addresses, MACs, identifiers and folders
    #[arg(long, group = "format")]
    anonymize: bool,
    /// Title of the case, one line
    #[arg(long, requires = "anonymize")]
    title: Option<String>,
    /// Output file; `-` for stdout (default: HTML to a file, other formats to stdout)
    #[arg(short, long, alias = "out", value_name = "FILE")]
    output: Option<PathBuf>,
    /// Line with the actual fault, for reports of the lab
    #[arg(long, hide = true)]
    reveal: Option<String>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.anonymize {
        let file = args.output.as_deref().filter(|path| path.as_os_str() != "-");
        return case::record(args.run.as_deref(), file, args.title.as_deref());
    }
    let name = match (args.html, args.json, args.md) {
        (true, ..) => "html",
        (_, true, _) => "json",
        (_, _, true) => "md",
        _ => "text",
    };
    let format = report::format(name).ok_or_else(|| anyhow::anyhow!("no report format `{name}`"))?;
    let store = Store::open_to_read()?;
    let row = match store.find_run(args.run.as_deref()) {
        Ok(row) => row,
        Err(missing) => return another_kind(args, &store, missing),
    };
    if args.run.is_none() {
        open::name(&row);
    }
    let snapshot = open::snapshot_of(&store, &row)?;
    let diagnosis = match store.load_diagnosis(&row.id)? {
        Some(diagnosis) => diagnosis,
        None => linerate_report::words::diagnose(&snapshot, &open::knowledge()?),
    };
    let mut trials = Vec::new();
    for trial in store.list_trials()?.into_iter().rev().filter(|t| t.run == row.id) {
        trials.push(store.load_trial(&trial.id)?);
    }
    let reveal = args.reveal.as_deref();
    let text =
        format.render(&Material { snapshot: &snapshot, diagnosis: &diagnosis, trials: &trials, reveal });
    let default = args.html.then(|| PathBuf::from(format!("linerate-{}.{}", row.id, format.extension())));
    match args.output.clone().or(default).filter(|p| p.as_os_str() != "-") {
        Some(path) => {
            std::fs::write(&path, text)
                .map_err(|e| anyhow::anyhow!("cannot write {}: {e}", path.display()))?;
            out::print(&open::absolute(&path).display().to_string())?;
        }
        None => out::print(&text)?,
    }
    Ok(ExitCode::Ok)
}

/// What has this id and is no run; the error of the run where nothing has it.
fn another_kind(args: &Args, store: &Store, missing: StoreError) -> anyhow::Result<ExitCode> {
    let Some(id) = args.run.as_deref() else { return Err(missing.into()) };
    if let Ok(trial) = store.load_trial(id) {
        let run = out::word(&trial.run);
        anyhow::ensure!(
            !args.html && !args.md,
            "{id} is a trial\nhint: `linerate show {run} --html` writes its run, with its trials"
        );
        if args.json {
            super::trial::show(&trial, true)?;
        } else {
            out::print(&report::text::trial(&trial, report::heat::Style::detect()))?;
        }
        return Ok(ExitCode::Ok);
    }
    let rollouts = Rollouts::open_default()?;
    if let Ok(rollout) = rollouts.load_plan(id) {
        super::rollout::show(&rollouts, &rollout, args.json)?;
        return Ok(ExitCode::Ok);
    }
    let knowledge = open::knowledge_at_any_rate()?;
    anyhow::ensure!(
        knowledge.get(id).is_none(),
        "{id} is a cause\nhint: `linerate explain {}` explains it",
        out::word(id)
    );
    Err(missing.into())
}
