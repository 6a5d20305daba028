//! Several trials one after the other on the same sessions: each step is saved, a lost undo or an interrupt
//! ends the sequence.

use linerate_fleet::clock;
use linerate_fleet::progress::Progress;
use linerate_model::trial::{Trial, TrialStatus};
use linerate_store::Store;

use super::open;
use super::watcher::Watcher;
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

impl Sequence<'_> {
    /// Makes one trial, saved before its first step and after its last.
    pub(super) async fn one<H: HostActions>(&self, hands: &mut H, trial: Trial) -> anyhow::Result<Trial> {
        // What cannot be recorded is not begun.
        self.store.save_trial(&trial, clock::now_ms())?;
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
        self.store.save_trial(&ended, clock::now_ms())?;
        Ok(ended)
    }

    /// Makes all trials; those behind one that could not be undone, or behind an interrupt, are left out.
    pub(super) async fn each<H: HostActions>(
        &self,
        hands: &mut H,
        planned: Vec<Trial>,
    ) -> anyhow::Result<Vec<Trial>> {
        let mut done: Vec<Trial> = Vec::new();
        for trial in planned {
            let ended = self.one(hands, trial).await?;
            let status = ended.status;
            done.push(ended);
            // A value that a host refuses means nothing for the next trial.
            if status == TrialStatus::UndoFailed || is_interrupted().await {
                break;
            }
        }
        Ok(done)
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
