//! `linerate disk durability clean`: the records go; what was not written by the tool stays.

use std::path::{Path, PathBuf};

use linerate_model::durability::{DurabilityAnswer, DurabilityRequest};
use linerate_model::exit::ExitCode;

use super::super::super::{open, out};
use super::host::Place;
use crate::cli::documents::CleanedFolder;
use linerate_fleet::REQUEST_WAIT;
use linerate_operator::observe::durability::ask;

/// Remove only the records of a run from a folder
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// Folder with the records
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    #[command(flatten)]
    place: Place,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(in crate::cli) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    open::runtime()?.block_on(run_async(args))
}

async fn run_async(args: &Args) -> anyhow::Result<ExitCode> {
    let (inventory, host) = args.place.host(None)?;
    let folder = open::absolute(&args.folder);
    let request = DurabilityRequest::Clean { folder: folder.clone(), run: None };
    let done = Place::with(&inventory, &host, async |link| Ok(ask(&link, request, REQUEST_WAIT * 30).await?));
    let Some(answer) = done.await? else { return Ok(open::after_interrupt()) };
    let DurabilityAnswer::Cleaned { files, left } = answer else {
        anyhow::bail!("host {host} answered something else than it was asked");
    };
    if args.json {
        out::listing(CleanedFolder { host: &host, folder: &folder, files, left: &left })?;
    } else {
        out::note(&words(&folder, files, &left));
    }
    Ok(ExitCode::Ok)
}

/// What was removed.
pub(super) fn words(folder: &Path, files: u64, left: &[String]) -> String {
    let removed = format!("{files} files removed from {}", folder.display());
    if left.is_empty() { removed } else { format!("{removed}; not ours, and left: {}", left.join(", ")) }
}
