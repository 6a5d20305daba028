//! `linerate disk durability patterns`: the ways of writing files, and what the kernel promises by each.

use linerate_model::exit::ExitCode;

use super::super::super::{open, out};
use super::host::Place;
use crate::cli::documents::Patterns;
use linerate_operator::observe::durability::patterns;
use linerate_report::durability as shown;

/// List the write patterns and the guarantees of each
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    #[command(flatten)]
    place: Place,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(in crate::cli) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (inventory, host) = args.place.host(None)?;
    let asked = Place::with(&inventory, &host, async |link| Ok(patterns(&link).await?));
    let Some(known) = open::runtime()?.block_on(asked)? else { return Ok(open::after_interrupt()) };
    if args.json {
        out::listing(Patterns { patterns: &known })?;
    } else {
        out::print(&shown::patterns(&known))?;
    }
    Ok(ExitCode::Ok)
}
