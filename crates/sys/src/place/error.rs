//! Why a network namespace is not found or not entered, and what exists instead.

use std::io;
use std::path::PathBuf;

use super::listed::listed;
use crate::root::{ReadError, RecordError};

/// Why a namespace is not found or not entered.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// Its name is not UTF-8.
    #[error("is not text")]
    NotText,
    /// No file of this name.
    #[error("no namespace is called `{name}`; {}", listed("there are", .known))]
    NoName {
        /// Name.
        name: String,
        /// Names that exist.
        known: Vec<String>,
    },
    /// Not a number.
    #[error("`{0}` is no process id: a number such as pid:1234")]
    NotAnId(String),
    /// The process has ended.
    #[error("no process has the id {0}; it may have ended")]
    NoProcess(String),
    /// Another user's process.
    #[error("the namespace of process {0} may not be looked at: needs root")]
    Denied(String),
    /// The link of the process cannot be read.
    #[error("process {pid}: {source}")]
    Process {
        /// Id.
        pid: String,
        /// Why.
        source: ReadError,
    },
    /// More than one container.
    #[error("`{name}` means several containers: {}; name one by its id", ids.join(", "))]
    Several {
        /// Name.
        name: String,
        /// Starts of their ids.
        ids: Vec<String>,
    },
    /// The container does not run.
    #[error("container `{0}` does not run")]
    Stopped(String),
    /// No container.
    #[error(
        "no container is called `{name}`; {}{}{}",
        listed("running are", .running), queried(.running, .engines), unread(.denied)
    )]
    NoContainer {
        /// Name.
        name: String,
        /// Containers that run.
        running: Vec<String>,
        /// Sources that were queried.
        engines: Vec<&'static str>,
        /// Sources that may not be read.
        denied: Vec<&'static str>,
    },
    /// The namespace cannot be opened.
    #[error("cannot open {}: {source}", path.display())]
    Open {
        /// Its path.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The namespace cannot be entered.
    #[error("cannot enter {}: {source}; entering needs root", path.display())]
    Enter {
        /// As it was named.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The work inside panicked.
    #[error("the reader inside the namespace stopped early")]
    Panicked,
    /// The recorded tree does not have it.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The recording of the namespace was not written.
    #[error(transparent)]
    Record(#[from] RecordError),
}

fn queried(running: &[String], engines: &[&str]) -> String {
    if running.is_empty() { format!(" (looked at {})", engines.join(", ")) } else { String::new() }
}

fn unread(denied: &[&str]) -> String {
    if denied.is_empty() {
        return String::new();
    }
    format!("; {} may not be read: needs root", denied.join(" and "))
}
