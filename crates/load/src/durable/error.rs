//! Why a request about records was refused, with what to do about it.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why a request was refused.
#[derive(Debug, Error)]
pub enum DurabilityError {
    /// The path depends on who reads it.
    #[error("the folder {} is not named from the root on\nhint: give the whole path, beginning with /", .0.display())]
    Relative(PathBuf),
    /// The folder has another entry.
    #[error(
        "the folder {} is not empty: {entry} is in it\nhint: name a folder that is empty or not there yet; \
         what an earlier run left goes with `linerate disk durability clean FOLDER`",
        folder.display()
    )]
    NotEmpty {
        /// Folder.
        folder: PathBuf,
        /// One of its entries.
        entry: String,
    },
    /// The folder is not that of the run.
    #[error(
        "the folder {} is not that of run {run}: {}\nhint: check host and folder; when the disk lost the \
         marker itself, remove the files by hand",
        folder.display(),
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
        "the records need {needed} bytes and {} has {free} free; half of that may be used\nhint: write fewer \
         records (--records), or name a file system with more room",
        folder.display()
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
    #[error("{0}\nhint: `linerate disk durability patterns` lists them")]
    Plan(String),
    /// A step failed.
    #[error("cannot {what} {}: {source}\nhint: check the path, the rights and the disk", path.display())]
    Io {
        /// The step.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
}
