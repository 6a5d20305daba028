//! Several trials one after the other on the same sessions: each step is saved, a lost undo or an interrupt
//! ends the sequence.

use linerate_fleet::progress::Progress;
use linerate_model::trial::{Trial, TrialStatus};
use linerate_store::{Store, StoreError};

use super::open;
use super::watcher::{self, Watcher};
use linerate_operator::trial::drive::{self, HostActions, Scene};
use linerate_operator::trial::machine::Course;

/// What all trials of a sequence share.
pub(super) struct Sequence<'a> {
    pub(super) scene: Scene<'a>,
    pub(super) course: Course,
    /// Length of one transfer, milliseconds; 0 for the default.
    pub(super) transfer_ms: u32,
    pub(super) store: &'a Store,
    pub(super) progress: &'a dyn Progress,
}

/// Trials as far as they were made.
pub(super) struct MadeTrials {
    pub(super) trials: Vec<Trial>,
    /// Whether the store has them all: what was made on hosts is shown before this ends the command.
    pub(super) saved: Result<(), StoreError>,
}

impl Sequence<'_> {
    /// Makes one trial, saved before its first step and after its last.
    ///
    /// # Errors
    /// It could not be recorded, and was not begun.
    pub(super) async fn one<H: HostActions>(
        &self,
        hands: &mut H,
        trial: Trial,
    ) -> Result<(Trial, Result<(), StoreError>), StoreError> {
        watcher::save(self.store, &trial)?;
        let mut watch = Watcher::new(self.store, self.progress);
        let mut watcher = |trial: &Trial, step: &str, left: usize| watch.step(trial, step, left);
        let ended = drive::run_planned(
            hands,
            self.scene,
            trial,
            self.course,
            self.transfer_ms,
            &mut watcher,
            open::interrupted(),
        )
        .await;
        let saved = watcher::save(self.store, &ended);
        Ok((ended, saved))
    }

    /// Makes all trials; those behind one that could not be undone or saved, or behind an interrupt, are left
    /// out.
    pub(super) async fn each<H: HostActions>(&self, hands: &mut H, planned: Vec<Trial>) -> MadeTrials {
        let mut made = MadeTrials { trials: Vec::new(), saved: Ok(()) };
        for trial in planned {
            let (ended, saved) = match self.one(hands, trial).await {
                Ok(ended) => ended,
                Err(error) => return MadeTrials { saved: Err(error), ..made },
            };
            let status = ended.status;
            made.trials.push(ended);
            made.saved = saved;
            // A value that a host refuses means nothing for the next trial.
            if made.saved.is_err() || status == TrialStatus::UndoFailed || is_interrupted().await {
                break;
            }
        }
        made
    }
}

/// Whether the user has asked to stop.
pub(super) async fn is_interrupted() -> bool {
    tokio::select! {
        biased;
        () = open::interrupted() => true,
        () = std::future::ready(()) => false,
    }
}
