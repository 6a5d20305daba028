//! `linerate runs`: what is in the store.

use std::fmt::Write;

use linerate_model::exit::ExitCode;
use linerate_model::units;

use super::out;
use crate::cli::documents::Runs;
use linerate_report as report;
use linerate_store::Store;

/// List runs and trials, newest first.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  linerate runs")]
pub(super) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let store = Store::open_to_read()?;
    let (runs, trials) = (store.list_runs()?, store.list_trials()?);
    if args.json {
        out::listing(Runs { runs: &runs, trials: &trials })?;
        return Ok(ExitCode::Ok);
    }
    let width = report::heat::Style::detect().width;
    let mut text = String::new();
    for run in &runs {
        // All of it is in `show`.
        let headline = if run.finished { run.headline.as_str() } else { "did not come to its end" };
        let date = units::date_minute(run.start_ms);
        let line = format!("{}  {date}  {}  {} tests  {headline}", run.id, run.cluster, run.samples);
        let _ = writeln!(text, "{}", report::names::cut(&line, width));
        for trial in trials.iter().filter(|t| t.run == run.id) {
            let _ = writeln!(text, "  {}  trial of {}: {}", trial.id, trial.remedy, trial.status);
        }
    }
    out::print(if runs.is_empty() {
        "no runs yet; `linerate survey -i cluster.toml` makes one"
    } else {
        &text
    })?;
    Ok(ExitCode::Ok)
}
