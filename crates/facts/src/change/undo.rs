//! The way back: old values in force, files as they were, journal closed.
//!
//! In: a journal. Out: nothing, or what could not be restored by name. Running it twice, or after half of it
//! was done, does no harm. It never closes a journal whose values it has not read back.

use std::path::Path;

use super::ChangeError;
use super::host::ChangingHost;
use super::journal::{self, Journal, Old, State};
use super::persist;

/// Restoring one value can move another (offloads depend on each other), so that a second pass may be needed;
/// the third is for chains.
const PASSES: usize = 3;

/// Takes a trial back and closes its journal. The caller holds the lock. A journal that names what this
/// program does not write is left as it is.
pub(crate) fn take_back<H: ChangingHost>(
    host: &H,
    etc_dir: &Path,
    path: &Path,
    journal: &Journal,
    note: &str,
) -> Result<(), ChangeError> {
    journal::check(host, etc_dir, path, journal)?;
    let booted = journal.boot_id != host.boot_id();
    let mut failures = Vec::new();
    match journal.state {
        State::Closed => return Ok(()),
        // The old values are in force since the operator ended; what was changed later is not ours.
        State::Measured => {}
        State::Armed | State::Reverted if booted => {}
        State::Armed | State::Reverted => failures = restore(host, &journal.olds),
        State::Kept | State::Keeping | State::Undoing => {
            let ours = still_ours(host, journal, booted)?;
            failures = persist::restore(host, &journal.host, &journal.files);
            failures.extend(restore(host, &ours));
        }
    }
    let mut next = journal.clone();
    if failures.is_empty() {
        next.state = State::Closed;
        note.clone_into(&mut next.note);
        journal::write(host, path, &next)
    } else {
        next.note = failures.join("; ");
        if next.note != journal.note {
            // The failure to restore is what matters; a disk that also fails is found by the next try.
            let _ = journal::write(host, path, &next);
        }
        Err(ChangeError::UndoFailed { host: journal.host.clone(), trial: journal.trial.clone(), failures })
    }
}

/// Which values of a trial that was kept (or was about to be) are to be restored. What somebody changed since
/// is not overwritten: a changed key with a third value is refused before anything is touched, a related one
/// is left alone.
pub(crate) fn still_ours<H: ChangingHost>(
    host: &H,
    journal: &Journal,
    booted: bool,
) -> Result<Vec<Old>, ChangeError> {
    if matches!(journal.state, State::Keeping | State::Undoing) && !booted {
        return Ok(journal.olds.clone());
    }
    let mut ours = Vec::new();
    // The changed keys come first, what moves with them behind.
    let mut boot_applied = false;
    for old in &journal.olds {
        let change = journal.changes.iter().find(|c| c.key == old.key && !old.related);
        let after = old.after.as_ref().or(change.map(|c| &c.to));
        match host.read(&old.key) {
            Ok(now) if now.is_same(&old.value) || after.is_some_and(|a| now.is_same(a)) => {
                boot_applied |= booted && !old.related && !now.is_same(&old.value);
                ours.push(old.clone());
            }
            // The crash came before it was noted how far this one moves; the boot has applied the change that
            // moves it.
            Ok(_) if boot_applied && old.related && after.is_none() => ours.push(old.clone()),
            // After a reboot a runtime value is whatever the boot gave.
            Ok(now) if !old.related && journal.state == State::Kept && !booted => {
                return Err(ChangeError::Moved {
                    host: journal.host.clone(),
                    key: old.key.clone(),
                    old: old.value.to_string(),
                    new: after.unwrap_or(&old.value).to_string(),
                    seen: now.to_string(),
                });
            }
            // A device that is gone after a reboot has no value to restore.
            Err(_) if booted => {}
            // The change has taken it away, such as a queue; it is back when the changed keys are.
            Err(_) if !old.related || after.is_none() => ours.push(old.clone()),
            _ => {}
        }
    }
    Ok(ours)
}

/// Puts old values in force and reads them back; gives what could not be restored, by name.
pub(crate) fn restore<H: ChangingHost>(host: &H, olds: &[Old]) -> Vec<String> {
    let mut failures = Vec::new();
    for _ in 0..PASSES {
        failures.clear();
        let changed = olds.iter().rev().filter(|old| !old.related);
        for old in changed.chain(olds.iter().filter(|old| old.related)) {
            match host.read(&old.key) {
                Ok(now) if now.is_same(&old.value) => {}
                Ok(now) => {
                    if let Err(reason) = host.write(&old.key, &old.value) {
                        failures.push(format!("{} is {now} instead of {}: {reason}", old.key, old.value));
                    }
                }
                Err(reason) => failures.push(format!("{} should be {}: {reason}", old.key, old.value)),
            }
        }
        let wrong: Vec<&Old> =
            olds.iter().filter(|old| !host.read(&old.key).is_ok_and(|now| now.is_same(&old.value))).collect();
        if wrong.is_empty() {
            return Vec::new();
        }
        if failures.is_empty() {
            failures =
                wrong.iter().map(|old| format!("{} does not go back to {}", old.key, old.value)).collect();
        }
    }
    failures
}
