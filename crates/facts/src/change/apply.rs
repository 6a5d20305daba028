//! The steps of a trial on this host: apply, revert, extend, keep, undo, end.
//!
//! In: what the operator asks, in any order. Out: values read back, files written, or the reason why not;
//! after a reason the old values are back unless it says otherwise. The order of every step is: check,
//! journal, guardian, write, read back, journal. It never decides what to change.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use linerate_model::change::{Change, PlannedFile, ReadBack};
use linerate_model::fact::{FactValue, check_key};
use linerate_wire::message::{JournalEntry, JournalState};

use super::ChangeError;
use super::host::{ChangingHost, Lock};
use super::journal::{self, Journal, Old, State};
use super::persist;
use super::undo::{restore, still_ours, take_back};

/// Most changes of one trial on one host.
const CHANGES_MAX: usize = 256;
/// Longest time until a trial undoes itself, seconds.
const DEADLINE_S_MAX: u32 = 86_400;
/// Making a change stay must be done within this time.
const KEEP_MS: u64 = 60_000;
/// How long another process may hold the journals.
const PATIENCE_S: u64 = 10;
/// Closed journals are kept as a record for a week.
const RECORD_MS: u64 = 7 * 86_400_000;

/// The changes of one host in one session.
pub struct Changes<H> {
    host: H,
    name: String,
    trials: PathBuf,
    etc_dir: PathBuf,
    /// Trials that end with this session.
    owned: BTreeSet<String>,
}

impl<H: ChangingHost> Changes<H> {
    pub fn new(host: H, name: String, state_dir: &Path, etc_dir: PathBuf) -> Self {
        Self { host, name, trials: state_dir.join("trials"), etc_dir, owned: BTreeSet::new() }
    }

    pub fn host(&self) -> &H {
        &self.host
    }

    /// Puts the new values in force, with the dead-man timer armed.
    pub fn apply(
        &mut self,
        trial: &str,
        changes: &[Change],
        deadline_s: u32,
    ) -> Result<ReadBack, ChangeError> {
        let deadline_ms = self.deadline(deadline_s)?;
        let (path, _lock) = self.open(trial)?;
        let mut journal = match self.usable(&path)? {
            None => self.fresh(trial, changes)?,
            Some(old) if old.state == State::Measured => self.fresh(trial, changes)?,
            Some(old) if matches!(old.state, State::Armed | State::Reverted) => {
                self.same_changes(&old, changes)?;
                old
            }
            Some(old) => return Err(self.wrong_state(&old, "apply")),
        };
        journal.state = State::Armed;
        journal.deadline_ms = deadline_ms;
        self.arm(&path, &journal)?;
        self.put(&path, &journal).or_else(|cause| self.give_up(&path, &journal, cause))
    }

    /// Puts the old values in force; the timer stays armed.
    pub fn revert(&mut self, trial: &str) -> Result<ReadBack, ChangeError> {
        let (path, _lock) = self.open(trial)?;
        let mut journal = self.existing(&path, trial)?;
        if !matches!(journal.state, State::Armed | State::Reverted) {
            return Err(self.wrong_state(&journal, "revert"));
        }
        let failures = restore(&self.host, &journal.olds);
        if !failures.is_empty() {
            return Err(ChangeError::UndoFailed {
                host: self.name.clone(),
                trial: trial.to_owned(),
                failures,
            });
        }
        journal.state = State::Reverted;
        journal::write(&self.host, &path, &journal)?;
        self.read_back(&journal)
    }

    /// Moves the dead-man deadline.
    pub fn extend(&mut self, trial: &str, deadline_s: u32) -> Result<(), ChangeError> {
        let deadline_ms = self.deadline(deadline_s)?;
        let (path, _lock) = self.open(trial)?;
        let mut journal = self.existing(&path, trial)?;
        if !matches!(journal.state, State::Armed | State::Reverted) {
            return Err(self.wrong_state(&journal, "extend"));
        }
        journal.deadline_ms = deadline_ms;
        journal::write(&self.host, &path, &journal)
    }

    /// Makes the new values stay, also over a reboot. Gives the files that do it.
    pub fn keep(&mut self, trial: &str, changes: &[Change]) -> Result<Vec<PathBuf>, ChangeError> {
        let (path, _lock) = self.open(trial)?;
        let mut journal = match self.usable(&path)? {
            None => self.fresh(trial, changes)?,
            Some(old) if matches!(old.state, State::Measured | State::Closed) => {
                self.fresh(trial, changes)?
            }
            Some(old) => {
                self.same_changes(&old, changes)?;
                old
            }
        };
        match journal.state {
            State::Kept => {
                self.in_force(&journal)?;
                return Ok(journal.files.into_iter().map(|f| f.path).collect());
            }
            State::Keeping | State::Undoing => return Err(self.wrong_state(&journal, "keep")),
            _ => {}
        }
        journal.files = persist::plan(&self.host, &self.name, &self.etc_dir, &journal.changes)?;
        journal.state = State::Keeping;
        journal.deadline_ms = self.host.running_ms() + KEEP_MS;
        self.arm(&path, &journal)?;
        let done = self
            .put(&path, &journal)
            .and_then(|_| persist::write(&self.host, &self.name, &journal.files))
            .and_then(|()| {
                let mut kept = journal.clone();
                for old in &mut kept.olds {
                    old.after = self.host.read(&old.key).ok();
                }
                kept.state = State::Kept;
                journal::write(&self.host, &path, &kept)
            });
        if let Err(cause) = done {
            return self.give_up(&path, &journal, cause);
        }
        self.owned.remove(trial);
        Ok(journal.files.into_iter().map(|f| f.path).collect())
    }

    /// The files that keeping these changes would write. Writes nothing.
    pub fn plan_keep(&self, changes: &[Change]) -> Result<Vec<PlannedFile>, ChangeError> {
        let edits = persist::plan(&self.host, &self.name, &self.etc_dir, changes)?;
        Ok(edits.iter().map(persist::FileEdit::planned).collect())
    }

    /// Takes a trial back, whatever its state, and closes its journal.
    pub fn undo(&mut self, trial: &str) -> Result<ReadBack, ChangeError> {
        let (path, _lock) = self.open(trial)?;
        let mut journal = self.existing(&path, trial)?;
        if journal.state == State::Kept {
            // Half undone is worse than kept: from here on the guardian or the next node would finish it.
            journal.olds = still_ours(&self.host, &journal, journal.boot_id != self.host.boot_id())?;
            journal.state = State::Undoing;
            journal.deadline_ms = self.host.running_ms() + KEEP_MS;
            self.arm(&path, &journal)?;
        }
        take_back(&self.host, &self.etc_dir, &path, &journal, "undone")?;
        self.owned.remove(trial);
        // After a reboot a device may be gone; the trial is closed all the same.
        Ok(self.read_back(&journal).unwrap_or_default())
    }

    /// Journals that are not closed.
    pub fn journals(&self) -> Result<Vec<JournalEntry>, ChangeError> {
        let mut entries = Vec::new();
        for path in journal::files(&self.host, &self.name, &self.trials)? {
            match self.read(&path) {
                Ok(Some(journal)) if journal.state == State::Closed => {}
                Ok(Some(journal)) if self.check(&path, &journal).is_ok() => entries.push(journal.entry()),
                Ok(Some(_)) => entries.push(unusable(&path, JournalState::Refused)),
                Ok(None) => {}
                Err(_) => entries.push(unusable(&path, JournalState::Unreadable)),
            }
        }
        Ok(entries)
    }

    /// Ends the session: undoes what it armed and did not keep. All are tried; the first failure is told.
    pub fn end(&mut self, why: &str, in_order: bool) -> Result<(), ChangeError> {
        let mut first = Ok(());
        for trial in std::mem::take(&mut self.owned) {
            first = first.and(self.end_one(&trial, why, in_order));
        }
        first
    }

    fn end_one(&self, trial: &str, why: &str, in_order: bool) -> Result<(), ChangeError> {
        let (path, _lock) = self.open(trial)?;
        let Some(mut journal) = self.read(&path)? else { return Ok(()) };
        match journal.state {
            State::Reverted if in_order && restore(&self.host, &journal.olds).is_empty() => {
                journal.state = State::Measured;
                journal::write(&self.host, &path, &journal)
            }
            state if state.is_armed() => take_back(&self.host, &self.etc_dir, &path, &journal, why),
            _ => Ok(()),
        }
    }

    /// Undoes what is overdue, also of sessions whose node and guardian were both killed. Call once a second.
    pub fn tick(&self) {
        // A folder that cannot be read now is looked at again in a second; failures are noted in the
        // journals.
        let Ok(paths) = journal::files(&self.host, &self.name, &self.trials) else { return };
        for path in paths {
            let Ok(Some(journal)) = self.read(&path) else { continue };
            if journal.state == State::Closed
                && self.host.now_ms() > journal.created_ms.saturating_add(RECORD_MS)
            {
                let _ = self.host.remove_private(&path);
            }
            if self.is_overdue(&journal)
                && let Ok(Some(_lock)) = self.host.lock(&journal::lock_file(&self.trials), Duration::ZERO)
                && let Ok(Some(journal)) = self.read(&path)
                && self.is_overdue(&journal)
            {
                let _ = take_back(&self.host, &self.etc_dir, &path, &journal, "nobody confirmed it in time");
            }
        }
    }

    fn is_overdue(&self, journal: &Journal) -> bool {
        if !journal.state.is_armed() {
            return false;
        }
        if journal.boot_id != self.host.boot_id() {
            return true;
        }
        // The values of another namespace cannot be reached from here; its guardian is inside.
        journal.namespace == self.host.namespace() && self.host.running_ms() >= journal.deadline_ms
    }

    fn deadline(&self, seconds: u32) -> Result<u64, ChangeError> {
        if !(1..=DEADLINE_S_MAX).contains(&seconds) {
            let seen = format!("{seconds} s");
            return Err(ChangeError::OutOfRange { what: "the deadline", seen, allowed: "1 s to one day" });
        }
        Ok(self.host.running_ms() + u64::from(seconds) * 1_000)
    }

    /// Takes the lock of the journals.
    fn open(&self, trial: &str) -> Result<(PathBuf, Lock), ChangeError> {
        journal::check_trial(trial)?;
        let path = journal::lock_file(&self.trials);
        let locked = self.host.lock(&path, Duration::from_secs(PATIENCE_S));
        let lock = locked
            .map_err(|source| ChangeError::Disk { host: self.name.clone(), what: "lock", path, source })?
            .ok_or_else(|| ChangeError::Locked { host: self.name.clone(), waited_s: PATIENCE_S })?;
        Ok((journal::file(&self.trials, trial), lock))
    }

    fn read(&self, path: &Path) -> Result<Option<Journal>, ChangeError> {
        journal::read(&self.host, &self.name, path)
    }

    /// The journal of a trial that can be gone on with.
    fn usable(&self, path: &Path) -> Result<Option<Journal>, ChangeError> {
        let journal = self.read(path)?;
        journal.iter().try_for_each(|journal| self.check(path, journal))?;
        Ok(journal)
    }

    fn check(&self, path: &Path, journal: &Journal) -> Result<(), ChangeError> {
        journal::check(&self.host, &self.etc_dir, path, journal)
    }

    fn existing(&self, path: &Path, trial: &str) -> Result<Journal, ChangeError> {
        self.usable(path)?
            .ok_or_else(|| ChangeError::NoJournal { host: self.name.clone(), trial: trial.to_owned() })
    }

    fn wrong_state(&self, journal: &Journal, wanted: &'static str) -> ChangeError {
        let note = if journal.note.is_empty() { String::new() } else { format!(" ({})", journal.note) };
        let state = journal.state.shown();
        ChangeError::WrongState { host: self.name.clone(), trial: journal.trial.clone(), state, note, wanted }
    }

    fn same_changes(&self, journal: &Journal, changes: &[Change]) -> Result<(), ChangeError> {
        if journal.changes == changes {
            return Ok(());
        }
        Err(ChangeError::OtherChanges { host: self.name.clone(), trial: journal.trial.clone() })
    }

    /// Checks that every change can be made from here, and notes all values to go back to. Writes nothing.
    fn fresh(&self, trial: &str, changes: &[Change]) -> Result<Journal, ChangeError> {
        if !(1..=CHANGES_MAX).contains(&changes.len()) {
            let seen = changes.len().to_string();
            return Err(ChangeError::OutOfRange { what: "the number of changes", seen, allowed: "1 to 256" });
        }
        let mut olds: Vec<Old> = Vec::new();
        for change in changes {
            let (host, key) = (self.name.clone(), change.key.clone());
            if !check_key(&key) || !self.host.is_setting(&key) {
                return Err(ChangeError::NotASetting { host, key });
            }
            if olds.iter().any(|old| old.key == key) {
                return Err(ChangeError::OutOfRange {
                    what: "a changed key",
                    seen: key,
                    allowed: "once in a trial",
                });
            }
            let value = self.read_setting(&key)?;
            if !value.is_same(&change.from) {
                return Err(ChangeError::Differs { host, key, expected: change.from.clone(), seen: value });
            }
            if let Err(reason) = self.host.check(&key, &change.to) {
                let reason = Box::new(reason);
                return Err(ChangeError::OneWay { host, key, value: change.to.clone(), reason });
            }
            olds.push(Old { key, value, after: None, related: false });
        }
        for key in changes.iter().flat_map(|c| self.host.related(&c.key)) {
            if !olds.iter().any(|old| old.key == key)
                && let Ok(value) = self.host.read(&key)
            {
                olds.push(Old { key, value, after: None, related: true });
            }
        }
        self.nobody_else(trial, &olds)?;
        Ok(Journal {
            schema: linerate_model::SCHEMA,
            trial: trial.to_owned(),
            host: self.name.clone(),
            state: State::Armed,
            boot_id: self.host.boot_id(),
            namespace: self.host.namespace(),
            created_ms: self.host.now_ms(),
            deadline_ms: 0,
            changes: changes.to_vec(),
            olds,
            files: Vec::new(),
            note: String::new(),
        })
    }

    /// Two trials must not hold the same value to go back to at the same time.
    fn nobody_else(&self, trial: &str, olds: &[Old]) -> Result<(), ChangeError> {
        for path in journal::files(&self.host, &self.name, &self.trials)? {
            let Some(other) = self.read(&path)? else { continue };
            // One that is never carried out holds nothing.
            if self.check(&path, &other).is_err() {
                continue;
            }
            if other.trial == trial || !other.state.is_armed() || other.namespace != self.host.namespace() {
                continue;
            }
            if let Some(old) = olds.iter().find(|old| other.olds.iter().any(|o| o.key == old.key)) {
                return Err(ChangeError::Busy {
                    host: self.name.clone(),
                    key: old.key.clone(),
                    trial: other.trial,
                    state: other.state.shown(),
                });
            }
        }
        Ok(())
    }

    /// Journal on the disk, guardian holding it: from here on the way back needs no one else.
    fn arm(&mut self, path: &Path, journal: &Journal) -> Result<(), ChangeError> {
        journal::write(&self.host, path, journal)?;
        self.owned.insert(journal.trial.clone());
        let Err(source) = self.host.ensure_guardian(path, &self.etc_dir) else { return Ok(()) };
        let cause = ChangeError::Guardian { host: self.name.clone(), trial: journal.trial.clone(), source };
        self.give_up(path, journal, cause)
    }

    /// Puts the new values in force and reads them back.
    fn put(&self, path: &Path, journal: &Journal) -> Result<ReadBack, ChangeError> {
        for change in &journal.changes {
            if self.read_setting(&change.key)?.is_same(&change.to) {
                continue;
            }
            // A process that was stopped for long may find that its guardian has undone already; without a
            // journal it could not.
            let now = self.existing(path, &journal.trial)?;
            if !now.state.is_armed() {
                return Err(self.wrong_state(&now, "go on with"));
            }
            self.host.write(&change.key, &change.to).map_err(|reason| ChangeError::Write {
                host: self.name.clone(),
                key: change.key.clone(),
                value: change.to.clone(),
                reason: Box::new(reason),
            })?;
        }
        self.in_force(journal)
    }

    /// Reads all changed keys and compares with the new values.
    fn in_force(&self, journal: &Journal) -> Result<ReadBack, ChangeError> {
        let read_back = self.read_back(journal)?;
        for ((key, seen), change) in read_back.iter().zip(&journal.changes) {
            if !seen.is_same(&change.to) {
                return Err(ChangeError::NotTaken {
                    host: self.name.clone(),
                    key: key.clone(),
                    wanted: change.to.clone(),
                    seen: seen.clone(),
                });
            }
        }
        Ok(read_back)
    }

    fn read_back(&self, journal: &Journal) -> Result<ReadBack, ChangeError> {
        journal.changes.iter().map(|c| Ok((c.key.clone(), self.read_setting(&c.key)?))).collect()
    }

    fn read_setting(&self, key: &str) -> Result<FactValue, ChangeError> {
        self.host.read(key).map_err(|reason| ChangeError::Read {
            host: self.name.clone(),
            key: key.to_owned(),
            reason: Box::new(reason),
        })
    }

    /// Takes a trial back that could not be carried out, and says both.
    fn give_up<T>(&mut self, path: &Path, journal: &Journal, cause: ChangeError) -> Result<T, ChangeError> {
        match take_back(&self.host, &self.etc_dir, path, journal, &cause.line()) {
            Ok(()) => {
                self.owned.remove(&journal.trial);
                Err(ChangeError::TakenBack(Box::new(cause)))
            }
            Err(ChangeError::UndoFailed { host, trial, mut failures }) => {
                failures.insert(0, cause.line());
                Err(ChangeError::UndoFailed { host, trial, failures })
            }
            Err(other) => Err(other),
        }
    }
}

/// A journal of which only the name can be told.
fn unusable(path: &Path, state: JournalState) -> JournalEntry {
    JournalEntry {
        trial: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        state,
        changes: Vec::new(),
        files: Vec::new(),
    }
}
