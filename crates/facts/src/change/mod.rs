//! Changes of settings: journalled before the first write, undone by whoever is left.
//!
//! In: the changes of a trial. Out: values read back, files written, or a reason. It never writes a setting
//! whose old value is not on the disk, and never says that something is done before it was read back.
//!
//! `journal` is what is on the disk, `apply` the steps, `undo` the way back, `persist` the files that
//! survive a reboot, `guardian` the process that undoes when the node is gone, `guardian_link` the node's
//! end of it, `host` everything that these touch.
pub mod apply;
#[cfg(test)]
mod crash;
pub mod guardian;
mod guardian_link;
pub mod host;
pub(crate) mod journal;
pub(crate) mod lines;
#[cfg(test)]
mod memory;
pub(crate) mod persist;
pub mod setting;
pub(crate) mod undo;
pub(crate) mod unit;

use std::path::PathBuf;

use linerate_model::fact::{FactKey, FactValue};
use linerate_model::printable::{before_hint, without_hint};
use linerate_wire::message::JournalState;
use thiserror::Error;

use crate::private::disk_hint;
use setting::{FileError, SettingError};

/// Why a change was not made, or not taken back.
#[derive(Debug, Error)]
pub enum ChangeError {
    #[error(
        "'{trial}' is not a trial: 1 to 80 letters, digits, '.', '-' and '_', no '.' first\nhint: {SAME_VERSION}"
    )]
    BadTrial { trial: String },
    #[error("no setup was made, so that there is no folder for journals\nhint: send the setup request first")]
    NoSetup,
    #[error("{what} is {seen}, allowed are {allowed}\nhint: {SAME_VERSION}")]
    OutOfRange { what: &'static str, seen: String, allowed: &'static str },
    #[error(
        "{host}: {key} is no setting that can be written\nhint: `linerate facts HOST` lists the keys; the \
         reference says which can be written"
    )]
    NotASetting { host: String, key: FactKey },
    #[error("{host}: cannot read {key}: {reason}\nhint: check that the device is still there")]
    Read { host: String, key: FactKey, reason: Box<SettingError> },
    #[error(
        "{host}: {key} is {seen} now, where the change starts from {expected}\nhint: somebody changed it \
         since the survey; survey again"
    )]
    Differs { host: String, key: FactKey, expected: FactValue, seen: FactValue },
    #[error(
        "{host}: {key} is not set to {value}, which could not be taken back: {reason}\nhint: choose another \
         value, or make the change by hand"
    )]
    OneWay { host: String, key: FactKey, value: FactValue, reason: Box<SettingError> },
    #[error("{host}: {key} is changed by trial {trial}, which is {state}\nhint: {UNDO_FIRST}")]
    Busy { host: String, key: FactKey, trial: String, state: JournalState },
    #[error(
        "{host}: cannot set {key} to {value}: {reason}\nhint: the node needs the rights of root on this \
         host, and the device must know the value"
    )]
    Write { host: String, key: FactKey, value: FactValue, reason: Box<SettingError> },
    #[error(
        "{host}: {key} is {seen} after {wanted} was written\nhint: the driver rounds or refuses the value; \
         choose one that it takes"
    )]
    NotTaken { host: String, key: FactKey, wanted: FactValue, seen: FactValue },
    #[error(
        "{host}: {key} cannot be made to stay: {reason}\nhint: make it stay by hand after `linerate undo`"
    )]
    CannotStay { host: String, key: FactKey, reason: String },
    #[error(
        "{host}: no journal of trial {trial}\nhint: `linerate runs` lists the trials; this host has taken no \
         part in this one"
    )]
    NoJournal { host: String, trial: String },
    #[error(
        "{host}: trial {trial} is {state}{note}, which does not allow to {wanted} it\nhint: start the trial \
         again with `linerate try`"
    )]
    WrongState { host: String, trial: String, state: JournalState, note: String, wanted: &'static str },
    #[error("{host}: trial {trial} was armed with other changes\nhint: {UNDO_FIRST}")]
    OtherChanges { host: String, trial: String },
    #[error(
        "{host}: {path} is not the file that a setting can be written to: {reason}\nhint: move the file \
         away, or make the change stay by hand"
    )]
    StrayFile { host: String, path: PathBuf, reason: FileError },
    #[error("{host}: cannot {what} {path}: {source}\nhint: {}", disk_hint(.source))]
    Disk { host: String, what: &'static str, path: PathBuf, source: std::io::Error },
    #[error(
        "{host}: trial {trial} is not begun, because its guardian does not watch over it: {source}\nhint: \
         check the limit of processes and the state folder on this host; nothing was changed"
    )]
    Guardian { host: String, trial: String, source: std::io::Error },
    #[error(
        "{host}: {what} {} {reason}\nhint: set an absolute path in the inventory, such as `{what} = \"/srv/linerate\"`",
        path.display()
    )]
    Folder { host: String, what: &'static str, path: PathBuf, reason: &'static str },
    #[error(
        "{host}: journal {0} is left alone: it names {names}\nhint: on that host: `ls -l {0}` shows who \
         wrote it, `mv {0} {0}.moved` moves it away",
        path.display()
    )]
    Planted { host: String, path: PathBuf, names: String },
    #[error(
        "{host}: another process holds the journals for more than {waited_s} s\nhint: another session \
         changes this host now; try again when it has ended"
    )]
    Locked { host: String, waited_s: u64 },
    #[error(
        "{host}: {key} is {seen} now, neither the old {old} nor the new {new}, and was left alone\nhint: \
         undo later trials first, or set it to the old value by hand, then `linerate undo` again"
    )]
    Moved { host: String, key: FactKey, old: String, new: String, seen: String },
    #[error("{}", before_hint(&.0.to_string(), "; the old values are back"))]
    TakenBack(Box<ChangeError>),
    #[error(
        "{host}: trial {trial} could not be taken back: {}\nhint: restore the named values by hand, then \
         `linerate undo` again to close the trial",
        failures.join("; ")
    )]
    UndoFailed { host: String, trial: String, failures: Vec<String> },
}

/// Hint about a request that no operator of this version sends.
const SAME_VERSION: &str = "the operator sent it; use the same version on both ends";
/// Hint about a trial that is in the way.
const UNDO_FIRST: &str = "`linerate undo` that trial first";

impl ChangeError {
    /// Whether something stays changed that should not.
    pub fn undo_failed(&self) -> bool {
        matches!(self, Self::UndoFailed { .. } | Self::Moved { .. } | Self::Planted { .. })
    }

    /// The error without its hint, as a part of another text.
    pub fn line(&self) -> String {
        without_hint(&self.to_string()).0.to_owned()
    }
}
