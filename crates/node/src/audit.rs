//! Folders of data looked through for what a power cut has left: empty files, files without their other half.
//!
//! In: a folder, where the last piece ended. Out: counts by class, with some paths. It opens files for
//! reading only, keeps nothing between two requests, and needs memory for one folder, however many files
//! there are.
//!
//! To add a kind of data: a variant of [`AuditKind`], and one file here with a type that implements
//! [`Auditor`] and one line in [`auditor()`].

mod auditor;
mod gluster;
mod hadoop;
mod walk;

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use linerate_model::audit::{AuditKind, AuditPart, AuditRequest};
use thiserror::Error;

use self::auditor::{Auditor, Inside, gap};
use self::walk::{Walk, decode, encode};

/// What looks through a kind.
fn auditor(kind: AuditKind) -> &'static dyn Auditor {
    match kind {
        AuditKind::Hadoop => &hadoop::Hadoop,
        AuditKind::Gluster => &gluster::Gluster,
    }
}

/// Why nothing is looked through.
#[derive(Debug, Error)]
pub(crate) enum AuditError {
    #[error("the folder {} is not named from the root on\nhint: begin it with /", .0.display())]
    Relative(PathBuf),
    #[error("cannot look at {}: {source}", folder.display())]
    Unread { folder: PathBuf, source: io::Error },
    #[error("{} is no folder\nhint: name the data folder of a Hadoop data node or the brick of a Gluster volume", .0.display())]
    NoFolder(PathBuf),
    #[error("stopped by the operator")]
    Stopped,
    #[error(
        "{} looks like no data that is known: {}\nhint: name the data folder of a data node, or the brick itself; or say with --kind what it is",
        .0.display(), kinds()
    )]
    UnknownData(PathBuf),
}

fn kinds() -> String {
    AuditKind::ALL.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ")
}

/// Does one piece.
pub(crate) fn run(request: &AuditRequest, stop: &AtomicBool) -> Result<AuditPart, AuditError> {
    let folder = &request.folder;
    if !folder.is_absolute() {
        return Err(AuditError::Relative(folder.clone()));
    }
    let unread = |source| AuditError::Unread { folder: folder.clone(), source };
    if !fs::metadata(folder).map_err(unread)?.is_dir() {
        return Err(AuditError::NoFolder(folder.clone()));
    }
    let found = || AuditKind::ALL.iter().copied().find(|kind| auditor(*kind).recognises(folder));
    let kind = request.kind.or_else(found).ok_or_else(|| AuditError::UnknownData(folder.clone()))?;
    let auditor = auditor(kind);
    let until = Instant::now() + Duration::from_millis(u64::from(request.budget_ms));
    let after = request.after.as_deref().map(decode);
    let mut part = AuditPart::new(kind);
    let mut walk = Walk::after(folder, after, |inner| auditor.enters(inner));
    while let Some(inner) = walk.next(|inner, error| gap(&mut part, inner, error)) {
        let place = Inside { root: folder, inner: &inner, sums: request.sums, stop };
        if let Err(error) = auditor.look(&place, &mut part) {
            gap(&mut part, inner.display().to_string(), error.to_string());
        }
        part.folders += 1;
        if stop.load(Ordering::Relaxed) {
            return Err(AuditError::Stopped);
        }
        if Instant::now() >= until {
            part.next = Some(encode(&inner));
            break;
        }
    }
    Ok(part)
}

#[cfg(test)]
mod tests;
