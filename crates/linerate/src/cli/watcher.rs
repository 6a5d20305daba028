//! What the commands that try, sweep and keep share: each step is saved and shown, and who takes part.

use linerate_fleet::clock;
use linerate_fleet::progress::{Progress, ProgressPhase};
use linerate_model::inventory::Host;
use linerate_model::run_id::RunId;
use linerate_model::trial::{Trial, TrialStatus};
use linerate_store::{Store, StoreError};

/// Saves each step in the store and shows the progress.
pub(super) struct Watcher<'a> {
    store: &'a Store,
    progress: &'a dyn Progress,
    steps: usize,
    /// Whether a step could not be saved: noted once.
    is_unsaved: bool,
}

impl<'a> Watcher<'a> {
    pub(super) fn new(store: &'a Store, progress: &'a dyn Progress) -> Self {
        Self { store, progress, steps: 0, is_unsaved: false }
    }

    pub(super) fn step(&mut self, trial: &Trial, step: &str, left: usize) {
        if let Err(error) = self.store.save_trial(trial, clock::now_ms())
            && !std::mem::replace(&mut self.is_unsaved, true)
        {
            self.progress.note(&format!("the trial could not be saved: {error}"));
        }
        if left + 1 > self.steps {
            self.steps = left + 1;
            let name = format!("trial of {}", trial.remedy.id);
            // A step is a transfer of about a second, or next to nothing.
            let expected_s = Some(left as f64);
            self.progress.begin(&ProgressPhase { name: &name, unit: "steps", total: self.steps, expected_s });
        }
        if left == 0 {
            self.progress.step(self.steps, "", None);
            self.progress.end();
        } else {
            self.progress.step(self.steps - left, step, Some(left as f64));
        }
    }
}

/// Saves a trial, over a new connection where the old one is lost. What was done on hosts is printed before
/// an error of this ends a command.
pub(super) fn save(store: &Store, trial: &Trial) -> Result<(), StoreError> {
    let now_ms = clock::now_ms();
    store.save_trial(trial, now_ms).or_else(|_| Store::open_default()?.save_trial(trial, now_ms))
}

/// Writes how trials ended that hosts undid by their journals; those of another store are left out. The first
/// error ends it: a store that does not answer is not waited for again.
pub(super) fn save_ends(
    store: &Store,
    ended: impl IntoIterator<Item = (RunId, TrialStatus)>,
) -> Result<(), StoreError> {
    for (id, status) in ended {
        let loaded = match store.load_trial(&id) {
            Err(StoreError::Missing { .. }) => continue,
            Err(_) => Store::open_default()?.load_trial(&id),
            loaded => loaded,
        };
        let mut trial = Trial { status, ..loaded? };
        if status == TrialStatus::Undone {
            trial.persisted.clear();
        }
        save(store, &trial)?;
    }
    Ok(())
}

/// Whether a host is changed or measured in the trial.
pub(super) fn takes_part(trial: &Trial, host: &Host) -> bool {
    let pairs = std::iter::once(&trial.pair).chain(&trial.control);
    trial.remedy.changes.iter().any(|c| c.host == host.name)
        || pairs.into_iter().any(|(from, to)| *from == host.name || *to == host.name)
}
