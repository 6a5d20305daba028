//! What a kind of data offers to be looked through, folder by folder.
//!
//! The list of all kinds is in the module above.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use linerate_model::audit::AuditPart;
use linerate_model::fact::Gap;

/// Reasons that are kept in one piece.
const GAPS_MAX: usize = 10;

/// A kind of data.
pub(super) trait Auditor: Sync {
    /// Whether a folder holds such data.
    fn recognises(&self, folder: &Path) -> bool;
    /// Whether a folder below is looked into.
    fn enters(&self, inner: &Path) -> bool;
    /// Looks at the files of one folder, not at the folders in it.
    fn look(&self, place: &Inside<'_>, part: &mut AuditPart) -> std::io::Result<()>;
}

/// A folder that is looked at.
pub(super) struct Inside<'a> {
    /// The folder that was named.
    pub(super) root: &'a Path,
    /// This one, below it; empty for itself.
    pub(super) inner: &'a Path,
    /// Whether data are read.
    pub(super) sums: bool,
    /// Set when the operator stops the request.
    pub(super) stop: &'a AtomicBool,
}

impl Inside<'_> {
    /// Its absolute path.
    pub(super) fn path(&self) -> PathBuf {
        self.root.join(self.inner)
    }

    /// How a file of it is named in an example.
    pub(super) fn name(&self, file: &std::ffi::OsStr) -> String {
        self.inner.join(file).to_string_lossy().into_owned()
    }

    /// Whether the operator has stopped the request.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Adds a reason why something was not seen.
pub(super) fn gap(part: &mut AuditPart, what: String, reason: String) {
    if part.gaps.len() < GAPS_MAX {
        part.gaps.push(Gap { what: what.into(), reason });
    }
}
