//! Changes of settings: journalled before the first write, undone by whoever is left.
//!
//! In: the changes of a trial. Out: values read back, files written, or a reason. It never writes a setting
//! whose old value is not on the disk, and never says that something is done before it was read back.
//!
//! [`journal`] is what is on the disk, [`apply`] the steps, [`undo`] the way back, [`persist`] the files that
//! survive a reboot, [`guardian`] the process that undoes when the node is gone, [`guardian_link`] the node's
//! end of it, [`host`] everything that these touch.
pub(crate) mod apply;
#[cfg(test)]
mod crash;
pub(crate) mod guardian;
mod guardian_link;
pub(crate) mod host;
pub(crate) mod journal;
#[cfg(test)]
mod memory;
pub(crate) mod persist;
pub(crate) mod setting;
pub(crate) mod undo;

use std::path::PathBuf;

use linerate_model::fact::{FactKey, FactValue};
use linerate_wire::message::JournalState;
use thiserror::Error;

use crate::private::NotPrivate;
use setting::{FileError, SettingError};

/// Why a change was not made, or not taken back.
#[derive(Debug, Error)]
pub(crate) enum ChangeError {
    #[error("'{trial}' is not a trial: 1 to 80 letters, digits, '.', '-' and '_', no '.' first")]
    BadTrial { trial: String },
    #[error("no setup was made, so that there is no folder for journals")]
    NoSetup,
    #[error("{what} is {seen}, allowed are {allowed}")]
    OutOfRange { what: &'static str, seen: String, allowed: &'static str },
    #[error("{host}: {key} is no setting that can be written")]
    NotASetting { host: String, key: FactKey },
    #[error("{host}: cannot read {key}: {reason}")]
    Read { host: String, key: FactKey, reason: Box<SettingError> },
    #[error("{host}: {key} is {seen} now, where the change starts from {expected}")]
    Differs { host: String, key: FactKey, expected: FactValue, seen: FactValue },
    #[error("{host}: {key} is not set to {value}, which could not be taken back: {reason}")]
    OneWay { host: String, key: FactKey, value: FactValue, reason: Box<SettingError> },
    #[error("{host}: {key} is changed by trial {trial}, which is {state}")]
    Busy { host: String, key: FactKey, trial: String, state: JournalState },
    #[error("{host}: cannot set {key} to {value}: {reason}")]
    Write { host: String, key: FactKey, value: FactValue, reason: Box<SettingError> },
    #[error("{host}: {key} is {seen} after {wanted} was written")]
    NotTaken { host: String, key: FactKey, wanted: FactValue, seen: FactValue },
    #[error("{host}: {key} cannot be made to stay: {reason}")]
    CannotStay { host: String, key: FactKey, reason: String },
    #[error("{host}: no journal of trial {trial}")]
    NoJournal { host: String, trial: String },
    #[error("{host}: trial {trial} is {state}{note}, which does not allow to {wanted} it")]
    WrongState { host: String, trial: String, state: JournalState, note: String, wanted: &'static str },
    #[error("{host}: trial {trial} was armed with other changes")]
    OtherChanges { host: String, trial: String },
    #[error("{host}: {path} is not the file that a setting can be written to: {reason}")]
    StrayFile { host: String, path: PathBuf, reason: FileError },
    #[error("{host}: cannot {what} {path}")]
    Disk { host: String, what: &'static str, path: PathBuf, source: std::io::Error },
    #[error("{host}: trial {trial} is not begun, because its guardian does not watch over it")]
    Guardian { host: String, trial: String, source: std::io::Error },
    #[error("{host}: {what} {} {reason}", path.display())]
    Folder { host: String, what: &'static str, path: PathBuf, reason: &'static str },
    #[error("{host}: journal {} is left alone: it names {names}", path.display())]
    Planted { host: String, path: PathBuf, names: String },
    #[error("{host}: another process holds the journals for more than {waited_s} s")]
    Locked { host: String, waited_s: u64 },
    #[error("{host}: {key} is {seen} now, neither the old {old} nor the new {new}, and was left alone")]
    Moved { host: String, key: FactKey, old: String, new: String, seen: String },
    #[error("{}; the old values are back", .0.line())]
    TakenBack(Box<ChangeError>),
    #[error("{host}: trial {trial} could not be taken back: {}", failures.join("; "))]
    UndoFailed { host: String, trial: String, failures: Vec<String> },
}

impl ChangeError {
    /// What to do about it.
    pub(crate) fn hint(&self) -> String {
        match self {
            Self::BadTrial { .. } | Self::OutOfRange { .. } => {
                "the operator sent it; use the same version on both ends"
            }
            Self::NoSetup => "send the setup request first",
            Self::NotASetting { .. } => {
                "`linerate facts HOST` lists the keys; the reference says which can be written"
            }
            Self::Read { .. } => "check that the device is still there",
            Self::Differs { .. } => "somebody changed it since the survey; survey again",
            Self::OneWay { .. } => "choose another value, or make the change by hand",
            Self::Busy { .. } | Self::OtherChanges { .. } => "`linerate undo` that trial first",
            Self::Write { .. } => {
                "the node needs the rights of root on this host, and the device must know the value"
            }
            Self::NotTaken { .. } => "the driver rounds or refuses the value; choose one that it takes",
            Self::CannotStay { .. } => "make it stay by hand after `linerate undo`",
            Self::NoJournal { .. } => {
                "`linerate runs` lists the trials; this host has taken no part in this one"
            }
            Self::WrongState { .. } => "start the trial again with `linerate try`",
            Self::StrayFile { .. } => "move the file away, or make the change stay by hand",
            Self::Disk { source, .. } => {
                return NotPrivate::of(source)
                    .map_or_else(|| "check space and rights of this folder".to_owned(), |r| r.hint.clone());
            }
            Self::Guardian { .. } => {
                "check the limit of processes and the state folder on this host; nothing was changed"
            }
            Self::Folder { what, .. } => {
                return format!(
                    "set an absolute path in the inventory, such as `{what} = \"/srv/linerate\"`"
                );
            }
            Self::Planted { path, .. } => {
                return format!(
                    "on that host: `ls -l {0}` shows who wrote it, `mv {0} {0}.moved` moves it away",
                    path.display()
                );
            }
            Self::Locked { .. } => "another session changes this host now; try again when it has ended",
            Self::TakenBack(cause) => return cause.hint(),
            Self::Moved { .. } => {
                "undo later trials first, or set it to the old value by hand, then `linerate undo` again"
            }
            Self::UndoFailed { .. } => {
                "restore the named values by hand, then `linerate undo` again to close the trial"
            }
        }
        .to_owned()
    }

    /// Whether something stays changed that should not.
    pub(crate) fn undo_failed(&self) -> bool {
        matches!(self, Self::UndoFailed { .. } | Self::Moved { .. } | Self::Planted { .. })
    }

    /// The error and its sources on one line.
    pub(crate) fn line(&self) -> String {
        let mut line = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(cause) = source {
            line = format!("{line}: {cause}");
            source = cause.source();
        }
        line
    }
}
