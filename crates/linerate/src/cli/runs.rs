//! `linerate runs`: what is in the store.

use std::fmt::Write;

use linerate_model::exit::ExitCode;
use linerate_model::units;

use super::out;
use crate::cli::documents::Runs;
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
        out::document(Runs { runs: &runs, trials: &trials })?;
        return Ok(ExitCode::Ok);
    }
    let mut text = String::new();
    for run in &runs {
        let headline = if run.finished { run.headline.as_str() } else { "did not come to its end" };
        let _ = writeln!(
            text,
            "{}  {}  {}  {} tests  {headline}",
            run.id,
            units::date(run.start_ms),
            run.cluster,
            run.samples
        );
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
