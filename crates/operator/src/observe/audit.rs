//! Looking through a folder of data on a host, piece by piece, so that neither end keeps more than counts.

use std::path::Path;
use std::time::Duration;

use linerate_model::SCHEMA;
use linerate_model::audit::{AuditKind, AuditPart, AuditReport, AuditRequest};
use linerate_storage::audit::sentences;
use linerate_wire::message::{Event, ObserveRequest};

use super::durability::DurableError;
use linerate_fleet::NodeLink;
use linerate_fleet::progress::{Progress, ProgressPhase};

/// A piece, so that progress is told.
const PIECE_MS: u32 = 500;
/// One folder may hold some hundred blocks of 128 MB, all of which are read.
const WAIT: Duration = Duration::from_secs(6 * 3600);

/// Looks through a folder.
///
/// # Errors
/// The host is gone, or refuses the folder.
pub async fn audit(
    link: &NodeLink,
    folder: &Path,
    kind: Option<AuditKind>,
    sums: bool,
    progress: &dyn Progress,
) -> Result<AuditReport, DurableError> {
    progress.begin(&ProgressPhase { name: "looking", unit: "folders", total: 0, expected_s: None });
    let request = |after| AuditRequest { folder: folder.to_owned(), kind, sums, after, budget_ms: PIECE_MS };
    let mut found = piece(link, request(None)).await?;
    progress.step(found.folders as usize, "", None);
    while found.next.is_some() {
        let part = piece(link, request(found.next.clone())).await?;
        found.merge(part);
        progress.step(found.folders as usize, "", None);
    }
    progress.end();
    let sentences = sentences(&found, sums);
    Ok(AuditReport {
        schema: SCHEMA,
        host: link.host().to_owned(),
        folder: folder.to_owned(),
        sums,
        found,
        sentences,
    })
}

async fn piece(link: &NodeLink, request: AuditRequest) -> Result<AuditPart, DurableError> {
    let after = request.after.clone();
    let events = link.request(ObserveRequest::Audit(request), WAIT).await?;
    let part = events.into_iter().find_map(|e| if let Event::Audit(part) = e { Some(*part) } else { None });
    // A piece that ends where it began would never come to an end.
    let goes_on = |part: &AuditPart| part.next.is_none() || part.next != after;
    part.filter(goes_on).ok_or_else(|| DurableError::Strange { host: link.host().to_owned() })
}
