//! `linerate report`: a stored run as one file.

use std::path::PathBuf;

use linerate_model::exit::ExitCode;

use super::{open, out};
use linerate_report::{self as report, Material};
use linerate_store::Store;

/// Show all of a run as text, or write it as HTML, JSON or Markdown.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate report --html                        the last run, to linerate-RUN.html\n  linerate report 20261121-083015-4f2a --md -o -"
)]
pub(super) struct Args {
    /// Run ID; defaults to the last run
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
    /// Output file; `-` for stdout (default: HTML to a file, other formats to stdout)
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Line with the actual fault, for reports of the lab
    #[arg(long, hide = true)]
    reveal: Option<String>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let name = match (args.html, args.json, args.md) {
        (true, ..) => "html",
        (_, true, _) => "json",
        (_, _, true) => "md",
        _ => "text",
    };
    let format = report::format(name).ok_or_else(|| anyhow::anyhow!("no report format `{name}`"))?;
    let store = Store::open_to_read()?;
    let row = store.find_run(args.run.as_deref())?;
    let snapshot = store.load_snapshot(&row.id)?;
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
    match args.out.clone().or(default).filter(|p| p.as_os_str() != "-") {
        Some(path) => {
            std::fs::write(&path, text)
                .map_err(|e| anyhow::anyhow!("cannot write {}: {e}", path.display()))?;
            out::print(&open::absolute(&path).display().to_string())?;
        }
        None => out::print(&text)?,
    }
    Ok(ExitCode::Ok)
}
