//! The journal of a trial: what is on the node's disk before the first setting is written.
//!
//! In: the state of a trial. Out: one JSON file per trial, replaced in one step, so that whoever reads it
//! after a crash sees one state or the next. It never holds a state whose promises are not true on the host
//! yet, with one exception on purpose: [`State::Armed`] is written before the new values are, because undoing
//! too much is harmless.

use std::path::{Path, PathBuf};

use linerate_model::change::Change;
use linerate_model::fact::{FactKey, FactValue};
use linerate_wire::message::{JournalEntry, JournalState};
use serde::{Deserialize, Serialize};

use super::ChangeError;
use super::host::ChangingHost;
use super::persist::{self, FileEdit};

/// Where a trial stands on this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum State {
    /// New values may be in force; whoever finds the deadline passed or the node gone undoes.
    Armed,
    /// Old values are in force between two arms of the measurement; still armed.
    Reverted,
    /// New values and files are being made to stay; still armed.
    Keeping,
    /// New values are in force and survive a reboot.
    Kept,
    /// A kept trial is being taken back; whoever finds it half done goes on.
    Undoing,
    /// Old values are in force, the operator has ended in order.
    Measured,
    /// Old values are in force, nothing is left to do.
    Closed,
}

impl State {
    /// Whether it is undone without being asked.
    pub(crate) fn is_armed(self) -> bool {
        matches!(self, Self::Armed | Self::Reverted | Self::Keeping | Self::Undoing)
    }

    /// For the operator.
    pub(crate) fn shown(self) -> JournalState {
        match self {
            Self::Armed | Self::Keeping | Self::Undoing => JournalState::Armed,
            Self::Reverted | Self::Measured => JournalState::Reverted,
            Self::Kept => JournalState::Kept,
            Self::Closed => JournalState::Closed,
        }
    }
}

/// One value to go back to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Old {
    /// A changed key, or one that moves with it.
    pub(crate) key: FactKey,
    /// Before the first write.
    pub(crate) value: FactValue,
    /// After the last write of a trial that was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) after: Option<FactValue>,
    /// Whether it only moves with a changed key.
    pub(crate) related: bool,
}

/// A trial on this host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Journal {
    pub(crate) schema: u32,
    pub(crate) trial: String,
    /// Name in the inventory.
    pub(crate) host: String,
    pub(crate) state: State,
    /// Boot that the runtime values belong to.
    pub(crate) boot_id: String,
    /// Network namespace that the runtime values belong to.
    pub(crate) namespace: u64,
    /// Unix milliseconds of the first write.
    pub(crate) created_ms: u64,
    /// When an armed trial is undone, in milliseconds of the clock of this boot that nobody sets.
    pub(crate) deadline_ms: u64,
    pub(crate) changes: Vec<Change>,
    pub(crate) olds: Vec<Old>,
    /// Files that make it stay, with what was there before.
    #[serde(default)]
    pub(crate) files: Vec<FileEdit>,
    /// Why it was undone or could not be, for people.
    #[serde(default)]
    pub(crate) note: String,
}

impl Journal {
    /// As the operator sees it.
    pub(crate) fn entry(&self) -> JournalEntry {
        JournalEntry {
            trial: self.trial.clone(),
            state: self.state.shown(),
            changes: self.changes.clone(),
            files: self.files.iter().map(|f| f.path.clone()).collect(),
        }
    }
}

/// Longest name of a trial, in bytes.
const TRIAL_BYTES_MAX: usize = 80;

/// Whether a trial's name can be a file name and nothing else.
pub(crate) fn check_trial(trial: &str) -> Result<(), ChangeError> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    if (1..=TRIAL_BYTES_MAX).contains(&trial.len()) && trial.bytes().all(plain) && !trial.starts_with('.') {
        Ok(())
    } else {
        Err(ChangeError::BadTrial { trial: trial.chars().take(100).collect() })
    }
}

/// File of a trial below the folder of journals.
pub(crate) fn file(trials: &Path, trial: &str) -> PathBuf {
    trials.join(format!("{trial}.json"))
}

/// Lock below the folder of journals.
pub(crate) fn lock_file(trials: &Path) -> PathBuf {
    trials.join(".lock")
}

/// Reads a journal, `None` when there is none.
pub(crate) fn read<H: ChangingHost>(
    host: &H,
    name: &str,
    path: &Path,
) -> Result<Option<Journal>, ChangeError> {
    let disk = |source| ChangeError::Disk {
        host: name.to_owned(),
        what: "read the journal",
        path: path.to_owned(),
        source,
    };
    match host.load_private(path).map_err(disk)? {
        None => Ok(None),
        Some(text) => serde_json::from_str(&text).map(Some).map_err(|e| disk(e.into())),
    }
}

/// Checks that a journal asks for nothing that this program would not have written itself: only settings that
/// may be written, and only files of persistent settings.
pub(crate) fn check<H: ChangingHost>(
    host: &H,
    etc_dir: &Path,
    path: &Path,
    journal: &Journal,
) -> Result<(), ChangeError> {
    let keys = journal.olds.iter().map(|old| &old.key).chain(journal.changes.iter().map(|c| &c.key));
    let setting = || {
        let key = keys.into_iter().find(|key| !host.is_setting(key))?;
        Some(format!("{key}, which is no setting that may be written"))
    };
    let file = || {
        let wrong = |f: &FileEdit| Some((f.path.clone(), persist::check_edit(host, etc_dir, f).err()?));
        let (file, reason) = journal.files.iter().find_map(wrong)?;
        Some(format!("{}: {reason}", file.display()))
    };
    let name = || {
        let is_own = path.file_stem().is_some_and(|stem| stem == journal.trial.as_str());
        (!is_own).then(|| format!("another trial, `{}`", journal.trial.escape_debug()))
    };
    match name().or_else(setting).or_else(file) {
        None => Ok(()),
        Some(names) => {
            let (host, path) = (journal.host.clone(), path.to_owned());
            Err(ChangeError::Planted { host, path, names })
        }
    }
}

/// Puts a journal on the disk; when this returns it is there also after a crash.
pub(crate) fn write<H: ChangingHost>(host: &H, path: &Path, journal: &Journal) -> Result<(), ChangeError> {
    let disk = |source| ChangeError::Disk {
        host: journal.host.clone(),
        what: "write the journal",
        path: path.to_owned(),
        source,
    };
    let text = serde_json::to_string_pretty(journal).map_err(|e| disk(e.into()))?;
    host.store_private(path, &text).map_err(disk)
}

/// Files of all journals of a folder, in order.
pub(crate) fn files<H: ChangingHost>(
    host: &H,
    name: &str,
    trials: &Path,
) -> Result<Vec<PathBuf>, ChangeError> {
    let mut files: Vec<PathBuf> = host
        .list(trials)
        .map_err(|source| ChangeError::Disk {
            host: name.to_owned(),
            what: "list",
            path: trials.to_owned(),
            source,
        })?
        .into_iter()
        .filter(|p| {
            let name = p.file_name().unwrap_or_default().to_string_lossy();
            name.ends_with(".json") && !name.starts_with('.')
        })
        .collect();
    files.sort();
    Ok(files)
}
