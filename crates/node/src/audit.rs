//! Folders of data looked through for what a power cut has left: empty files, files without their other half.
//!
//! In: a folder, where the last piece ended. Out: counts by class, with some paths. It opens files for
//! reading only, keeps nothing between two requests, and needs memory for one folder, however many files
//! there are.
//!
//! To add a kind of data: one file here with a type that implements [`Auditor`], and one line in
//! [`AUDITORS`].

mod auditor;
mod gluster;
mod hadoop;
mod walk;

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use linerate_model::audit::{AuditPart, AuditRequest};

use self::auditor::{Auditor, Inside, gap};
use self::walk::{Walk, decode, encode};

/// All kinds.
static AUDITORS: &[&dyn Auditor] = &[&hadoop::Hadoop, &gluster::Gluster];

/// Does one piece. The error has a hint behind a line break.
pub(crate) fn run(request: &AuditRequest, stop: &AtomicBool) -> Result<AuditPart, String> {
    let folder = &request.folder;
    let shown = folder.display();
    if !folder.is_absolute() {
        return Err(format!("the folder {shown} is not named from the root on\nhint: begin it with /"));
    }
    let is_folder = fs::metadata(folder).map_err(|e| format!("cannot look at {shown}: {e}"))?.is_dir();
    if !is_folder {
        return Err(format!(
            "{shown} is no folder\nhint: name the data folder of a Hadoop data node or the brick of a Gluster volume"
        ));
    }
    let auditor = choose(folder, request.kind.as_deref())?;
    let until = Instant::now() + Duration::from_millis(u64::from(request.budget_ms));
    let after = request.after.as_deref().map(decode);
    let mut part = AuditPart { kind: auditor.name().to_owned(), ..AuditPart::default() };
    let mut walk = Walk::after(folder, after, |inner| auditor.enters(inner));
    while let Some(inner) = walk.next(|inner, error| gap(&mut part, inner, error)) {
        let place = Inside { root: folder, inner: &inner, sums: request.sums, stop };
        if let Err(error) = auditor.look(&place, &mut part) {
            gap(&mut part, inner.display().to_string(), error.to_string());
        }
        part.folders += 1;
        if stop.load(Ordering::Relaxed) {
            return Err("stopped by the operator".to_owned());
        }
        if Instant::now() >= until {
            part.next = Some(encode(&inner));
            break;
        }
    }
    Ok(part)
}

fn choose(folder: &Path, kind: Option<&str>) -> Result<&'static dyn Auditor, String> {
    let known = || AUDITORS.iter().map(|a| a.name()).collect::<Vec<_>>().join(", ");
    let found = match kind {
        Some(kind) => AUDITORS.iter().find(|a| a.name() == kind),
        None => AUDITORS.iter().find(|a| a.recognises(folder)),
    };
    found.copied().ok_or_else(|| match kind {
        Some(kind) => format!("no kind of data is called {kind:?}\nhint: there are {}", known()),
        None => format!(
            "{} looks like no data that is known: {}\nhint: name the data folder of a data node, or the brick itself; or say with --kind what it is",
            folder.display(),
            known()
        ),
    })
}

#[cfg(test)]
mod tests;
