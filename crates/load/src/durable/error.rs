//! Why a request about records was refused, and what to do.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why a request was refused.
#[derive(Debug, Error)]
pub enum DurabilityError {
    /// The path depends on who reads it.
    #[error("the folder {} is not named from the root on", .0.display())]
    Relative(PathBuf),
    /// Something is in the way.
    #[error("the folder {} is not empty: {entry} is in it", folder.display())]
    NotEmpty {
        /// Folder.
        folder: PathBuf,
        /// One of its entries.
        entry: String,
    },
    /// The folder is not that of the run.
    #[error(
        "the folder {} is not that of run {run}: {}", folder.display(),
        seen.as_ref().map_or("it has no marker".to_owned(), |run| format!("its marker names run {run}"))
    )]
    NotOurs {
        /// Folder.
        folder: PathBuf,
        /// Whose it should be.
        run: String,
        /// Whose it is.
        seen: Option<String>,
    },
    /// It would fill the file system.
    #[error(
        "the records need {needed} bytes and {} has {free} free; half of that may be used", folder.display()
    )]
    Room {
        /// Folder.
        folder: PathBuf,
        /// Bytes.
        needed: u64,
        /// Bytes.
        free: u64,
    },
    /// The plan makes no sense.
    #[error("{0}")]
    Plan(String),
    /// A step failed.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// The step.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
}

impl DurabilityError {
    /// What to do.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Relative(_) => "give the whole path, beginning with /",
            Self::NotEmpty { .. } => {
                "name a folder that is empty or not there yet; what an earlier run left goes with `linerate disk durability clean FOLDER`"
            }
            Self::NotOurs { .. } => {
                "check host and folder; when the disk lost the marker itself, remove the files by hand"
            }
            Self::Room { .. } => "write fewer records (--records), or name a file system with more room",
            Self::Plan(_) => "`linerate disk durability patterns` lists them",
            Self::Io { .. } => "check the path, the rights and the disk",
        }
    }
}
