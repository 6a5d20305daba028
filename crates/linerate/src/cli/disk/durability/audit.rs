//! `linerate disk durability --audit DIR`: what earlier power cuts have left in the data of a Hadoop data
//! node or a Gluster brick.

use std::path::Path;

use linerate_model::audit::AuditKind;
use linerate_model::exit::ExitCode;
use linerate_model::verdict::WithVerdict;

use super::super::super::choice::one_of;
use super::super::super::{open, out, progress};
use super::host::Place;
use linerate_operator::observe::audit::audit;
use linerate_report::audit as shown;

/// Options of an audit.
#[derive(Debug, clap::Args)]
pub(super) struct How {
    #[command(flatten)]
    place: Place,
    /// Kind of the folder, if not detected automatically
    #[arg(long, value_name = "KIND", value_parser = one_of(AuditKind::ALL, AuditKind::name), requires = "audit")]
    kind: Option<AuditKind>,
    /// Read all data and verify every checksum
    #[arg(long, requires = "audit")]
    sums: bool,
    /// Print JSON
    #[arg(long, requires = "audit")]
    json: bool,
}

pub(super) fn run(folder: &Path, how: &How) -> anyhow::Result<ExitCode> {
    open::runtime()?.block_on(run_async(folder, how))
}

async fn run_async(folder: &Path, how: &How) -> anyhow::Result<ExitCode> {
    let (inventory, host) = how.place.host(None)?;
    let folder = open::absolute(folder);
    let progress = progress::start(how.json, false);
    let done = Place::with(&inventory, &host, async |link| {
        Ok(audit(&link, &folder, how.kind, how.sums, &*progress).await?)
    });
    let Some(report) = done.await? else { return Ok(open::after_interrupt()) };
    if how.json {
        out::json(&WithVerdict { summary: shown::verdict(&report), document: &report })?;
    } else {
        out::print(&shown::page(&report))?;
    }
    Ok(match (report.found.losses(), report.found.gaps.is_empty()) {
        (1.., _) => ExitCode::Findings,
        (0, true) => ExitCode::Ok,
        (0, false) => ExitCode::PartlyBlind,
    })
}
