//! `linerate disk durability check`: what a power cut left of what was promised.

use std::path::PathBuf;

use linerate_model::durability::{DurabilityAnswer, DurabilityRequest, DurabilityVerdict};
use linerate_model::exit::ExitCode;
use linerate_model::verdict::WithVerdict;

use super::super::super::{open, out, progress};
use super::host::Place;
use linerate_fleet::REQUEST_WAIT;
use linerate_operator::observe::durability::{ask, check};
use linerate_operator::observe::promises;
use linerate_report::durability as shown;

/// Verify the records in a list of promises after the host has restarted
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// Folder with the records, if it has moved
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// File with the list of promises
    #[arg(long, value_name = "FILE")]
    promises: PathBuf,
    #[command(flatten)]
    place: Place,
    /// Remove the records after the check
    #[arg(long)]
    clean: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(in crate::cli) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    open::runtime()?.block_on(run_async(args))
}

async fn run_async(args: &Args) -> anyhow::Result<ExitCode> {
    let promises = promises::read(&args.promises)?;
    let (inventory, host) = args.place.host(Some(&promises.host))?;
    let folder = args.folder.as_deref().map_or_else(|| promises.folder.clone(), open::absolute);
    let progress = progress::start(args.json, false);
    let done = Place::with(&inventory, &host, async |link| {
        let mut report = check(&link, &promises, &folder, &*progress).await?;
        let is_ours = report.place.run.as_ref() == Some(&promises.plan.run);
        // What a power cut took from its own folder is a loss; another folder that was never written to is a
        // mistake.
        anyhow::ensure!(
            is_ours || folder == promises.folder,
            "{} on {host} is not the folder of run {}: it {}\nhint: the records were written to {}; without DIR that is looked at",
            folder.display(),
            promises.plan.run,
            report
                .place
                .run
                .as_ref()
                .map_or("has no marker, or is not there".to_owned(), |run| format!("is that of run {run}")),
            promises.folder.display()
        );
        if !is_ours {
            out::note(&format!(
                "{} has no marker of this run any more, or is not there: is its filesystem mounted? If it is, all of that is lost",
                folder.display()
            ));
        }
        report.promises.folder.clone_from(&folder);
        let mut cleaned = None;
        if args.clean {
            let run = Some(promises.plan.run.clone());
            let request = DurabilityRequest::Clean { folder: folder.clone(), run };
            if let DurabilityAnswer::Cleaned { files, left } = ask(&link, request, REQUEST_WAIT * 30).await? {
                cleaned = Some((files, left));
            }
        }
        Ok((report, cleaned))
    });
    let Some((report, cleaned)) = done.await? else { return Ok(open::after_interrupt()) };
    if args.json {
        out::json(&WithVerdict { summary: shown::verdict(&report), document: &report })?;
    } else {
        out::print(&shown::page(&report))?;
    }
    if let Some((files, left)) = cleaned {
        out::note(&super::clean::words(&folder, files, &left));
    }
    Ok(match report.verdict {
        DurabilityVerdict::Kept => ExitCode::Ok,
        DurabilityVerdict::Broken => ExitCode::Findings,
        DurabilityVerdict::NotRestarted => ExitCode::PartlyBlind,
    })
}
