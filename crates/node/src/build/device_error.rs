//! Why a device is not what a build left, or is left as it is.

use std::io;

use linerate_load::guard::WriteRefusal;
use thiserror::Error;

const OTHER_DRIVE: &str = "it is another drive now, or somebody else's. Nothing was done to any drive";

/// Why a device is left as it is.
#[derive(Debug, Error)]
pub(super) enum DeviceError {
    #[error("{device}: {reason}")]
    On { device: String, reason: Box<Self> },
    #[error(transparent)]
    Guard(#[from] WriteRefusal),
    #[error("{what}: {source}")]
    Step { what: &'static str, source: io::Error },
    #[error("byte {at} of its identifier cannot be read: {source}")]
    Identifier { at: u64, source: io::Error },
    #[error("its superblock is damaged, so that its files cannot be seen")]
    Damaged,
    #[error(
        "its superblock is not one that `mkfs.ext4` makes by default, so that the places it wrote to are unknown; it is left as it is"
    )]
    OddSuperblock,
    #[error("{0}, so that files may stand there that cannot be seen; mount it, look at it, and unmount it")]
    Dirty(&'static str),
    #[error("there are files on it; mount it, look at them, and remove what may go")]
    Files,
    #[error("whether files are on it cannot be seen: its root directory cannot be read")]
    RootDirectory,
    #[error("there is data at byte {byte} that {program} did not write")]
    Data { byte: u64, program: &'static str },
    #[error("it has the mark of {owner} at byte {byte}, so it is left as it is")]
    Marked { owner: &'static str, byte: u64 },
    #[error("it has the mark of {owner} at byte {byte}, and not what this build left there: {OTHER_DRIVE}")]
    OtherMark { owner: &'static str, byte: u64 },
    #[error("what this build left there is gone, and something else stands there: {OTHER_DRIVE}")]
    Replaced,
}

impl DeviceError {
    /// For `map_err`: what the kernel did not do.
    pub(super) fn step(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::Step { what, source }
    }
}
