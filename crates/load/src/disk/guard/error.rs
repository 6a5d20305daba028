//! Why a device may not be written: what uses it, what it holds, or what of both cannot be seen.

use std::io;
use std::sync::Arc;

use linerate_sys::block::Number;
use linerate_sys::root::{NAMES_MAX, ReadError};

use crate::job::LoadError;

/// Smaller devices are none that anybody measures.
pub(super) const DEVICE_BYTES_MIN: u64 = 4 << 20;

/// Why a device may not be written, or its marks cannot be read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the texts describe the fields")]
pub enum WriteRefusal {
    #[error("{reason} ({check})")]
    Check { check: &'static str, reason: Arc<Self> },
    #[error("it is no block device")]
    NoBlockDevice,
    #[error("the kernel lists no block device {0}")]
    NotListed(Number),
    #[error("it became another device meanwhile")]
    Replaced,
    #[error("/dev/{0} is another device")]
    OtherDevice(String),
    #[error("its name is {name}, and {typed} was typed")]
    OtherName { name: String, typed: String },
    #[error("the kernel reports it as in use (busy)")]
    Busy,
    #[error("it is read-only")]
    ReadOnly,
    #[error("process {process} ({program}) has {device} {how}")]
    User { process: u32, program: String, device: String, how: &'static str },
    #[error("{name} is mounted on {point} (seen by process {process})")]
    Mounted { name: String, point: String, process: u32 },
    #[error("the kernel swaps to {0}")]
    Swap(String),
    #[error("the NVMe target {0} exports it")]
    Exported(String),
    #[error("{} stands on {device}", holders.join(", "))]
    Held { holders: Vec<String>, device: String },
    #[error("it has partitions: {}", .0.join(", "))]
    Partitions(Vec<String>),
    #[error("{0}, another partition of the same drive, is in use")]
    Sibling(String),
    #[error("there is data at byte {0}")]
    Data(u64),
    #[error("it has the mark of {owner} at byte {byte}")]
    Mark { owner: &'static str, byte: u64 },
    #[error("it has the mark of {owner} at byte {byte}, beside that of {own}")]
    OtherMark { owner: &'static str, byte: u64, own: String },
    #[error("it has {0} bytes, less than {DEVICE_BYTES_MIN}")]
    Small(u64),
    #[error(
        "bytes {start} to {end} of its {size} would touch its first or last MiB: use less of it (--size)"
    )]
    Edges { start: u64, end: u64, size: u64 },
    #[error(transparent)]
    Stopped(Box<LoadError>),
    #[error("it cannot be inspected")]
    NotRead,
    #[error("{what}: {source}")]
    Step { what: &'static str, source: io::Error },
    #[error("byte {at} cannot be read: {source}")]
    Read { at: u64, source: io::Error },
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("{what} cannot be seen: {reason}")]
    Unseen { what: String, reason: Box<Self> },
    #[error("{what} cannot all be seen: {list} has {NAMES_MAX} entries or more")]
    LongList { what: String, list: String },
    #[error("{0} cannot all be seen: {NAMES_MAX} or more")]
    TooMany(String),
    #[error("{what}: {source}")]
    File { what: String, source: ReadError },
    #[error(transparent)]
    Kernel(#[from] ReadError),
    #[error("permission denied: this needs root of the host (CAP_SYS_PTRACE and CAP_SYS_ADMIN)")]
    NotRoot,
    #[error("/proc names none")]
    NoProcess,
    #[error("the kernel does not list them")]
    BusyRing,
    #[error("a line of {0} bytes")]
    LongLine(usize),
    #[error("the number of {name} cannot be read: '{number}'")]
    BadNumber { name: String, number: String },
}

impl WriteRefusal {
    /// For `map_err`: what the kernel did not do.
    pub(super) fn step(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::Step { what, source }
    }

    /// For `map_err`: the file that cannot be read.
    pub(super) fn file(what: &str) -> impl Fn(ReadError) -> Self {
        move |source| Self::File { what: what.to_owned(), source }
    }

    /// What cannot be seen, and why.
    pub(super) fn unseen(what: impl Into<String>, reason: impl Into<Self>) -> Self {
        Self::Unseen { what: what.into(), reason: Box::new(reason.into()) }
    }

    /// The same with a hint: in a container, `root` may lack the right to read other processes.
    pub(super) fn unseen_process(what: String, error: impl Into<ReadError>) -> Self {
        match error.into() {
            ReadError::Denied => Self::unseen(what, Self::NotRoot),
            error => Self::unseen(what, error),
        }
    }
}
