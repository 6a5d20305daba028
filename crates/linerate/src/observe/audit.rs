//! Looking through a folder of data on a host, piece by piece, so that neither end keeps more than counts.

use std::path::Path;
use std::time::Duration;

use linerate_model::SCHEMA;
use linerate_model::audit::{AuditPart, AuditReport, AuditRequest};
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
    kind: Option<&str>,
    sums: bool,
    progress: &dyn Progress,
) -> Result<AuditReport, DurableError> {
    let mut found = AuditPart::default();
    let mut after: Option<String> = None;
    progress.begin(&ProgressPhase { name: "looking", unit: "folders", total: 0, expected_s: None });
    loop {
        let request = AuditRequest {
            folder: folder.to_owned(),
            kind: kind.map(str::to_owned),
            sums,
            after: after.clone(),
            budget_ms: PIECE_MS,
        };
        let events = link.request(ObserveRequest::Audit(request), WAIT).await?;
        let part =
            events.into_iter().find_map(|e| if let Event::Audit(part) = e { Some(*part) } else { None });
        let strange = || DurableError::Strange { host: link.host().to_owned() };
        let part = part.ok_or_else(strange)?;
        // A piece that ends where it began would never come to an end.
        if part.next.is_some() && part.next == after {
            return Err(strange());
        }
        after.clone_from(&part.next);
        found.merge(part);
        progress.step(found.folders as usize, "", None);
        if after.is_none() {
            break;
        }
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
