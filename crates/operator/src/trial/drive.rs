//! Carries a trial out: the actions of the machine become calls of [`HostActions`], their results events.
//! Comes in: a diagnosis and what to try. Goes out: the trial as it ended, and before every step the trial
//! as it stands, for whoever stores it. Never decides what comes next (see `machine`) and never leaves a
//! change behind when it has to stop.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::{Duration, Instant};

use linerate_model::change::{Change, ReadBack};
use linerate_model::fact::FactKey;
use linerate_model::finding::{Diagnosis, Metric};
use linerate_model::plan::Test;
use linerate_model::sample::Outcome;
use linerate_model::snapshot::Snapshot;
use linerate_model::trial::Trial;

use super::choose::{self, TrialError, TrialOptions};
use super::machine::{Action, Course, TrialEvent, TrialMachine, Which};
use super::response;
use linerate_fleet::changes::FleetChangeError;

/// Length of one transfer when nothing else is asked for, milliseconds.
const TRANSFER_MS: u32 = 1000;

/// How a test ended.
#[derive(Debug)]
pub struct Tested {
    /// What it showed.
    pub outcome: Outcome,
    /// Why that is worth less, where something contended it each time it was made.
    pub contended: Option<String>,
}

/// What a trial needs done on hosts. One call at a time.
#[allow(async_fn_in_trait)] // one task drives a trial: nothing here is sent between threads
pub trait HostActions {
    /// Journal, arm the dead-man timer, write, read back.
    async fn apply(
        &mut self,
        host: &str,
        trial: &str,
        changes: &[Change],
        deadline_s: u32,
    ) -> Result<ReadBack, FleetChangeError>;
    /// Old values back, stay armed.
    async fn revert(&mut self, host: &str, trial: &str) -> Result<ReadBack, FleetChangeError>;
    /// Move the deadline.
    async fn extend(&mut self, host: &str, trial: &str, deadline_s: u32) -> Result<(), FleetChangeError>;
    /// Make it stay; the files that were written.
    async fn keep(
        &mut self,
        host: &str,
        trial: &str,
        changes: &[Change],
    ) -> Result<Vec<PathBuf>, FleetChangeError>;
    /// Old values back, journal closed. May open a new session with a host that was lost.
    async fn undo(&mut self, host: &str, trial: &str) -> Result<ReadBack, FleetChangeError>;
    /// Read settings. May open a new session with a host that was lost.
    async fn read(&mut self, host: &str, keys: &[FactKey]) -> Result<ReadBack, FleetChangeError>;
    /// Measure, with nothing else under way.
    async fn measure(&mut self, test: &Test) -> Tested;
    /// Let time pass.
    async fn wait(&mut self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

/// Hears of every step before it is taken, and of the end: the trial as it stands, what comes now in words,
/// and how many steps are left (0 at the end).
pub type TrialWatch<'a> = &'a mut dyn FnMut(&Trial, &str, usize);

/// What is known when a trial begins.
#[derive(Debug, Clone, Copy)]
pub struct Scene<'a> {
    /// Observations of the run whose finding is treated.
    pub snapshot: &'a Snapshot,
    /// What they mean.
    pub diagnosis: &'a Diagnosis,
}

/// Tries a remedy of the diagnosis. When `cancel` ends first, the old values are put back and the trial is
/// `Undone`.
pub async fn run<H: HostActions>(
    hands: &mut H,
    scene: Scene<'_>,
    options: &TrialOptions,
    id: String,
    watch: TrialWatch<'_>,
    cancel: impl Future<Output = ()>,
) -> Result<Trial, TrialError> {
    let trial = choose::plan(scene.snapshot, scene.diagnosis, options, id)?;
    Ok(run_planned(hands, scene, trial, options.course, options.transfer_ms, watch, cancel).await)
}

/// Makes a trial that was planned; see [`run`]. `transfer_ms` of 0 is the default.
pub async fn run_planned<H: HostActions>(
    hands: &mut H,
    scene: Scene<'_>,
    trial: Trial,
    course: Course,
    transfer_ms: u32,
    watch: TrialWatch<'_>,
    cancel: impl Future<Output = ()>,
) -> Trial {
    let course = course_of(&trial, course);
    let machine = TrialMachine::measure(trial, course, linerate_report::words::effect);
    Drive { hands, scene, transfer_ms }.finish(machine, watch, cancel).await
}

/// Keeps a trial that was measured: writes it where it survives a reboot, reads it back, measures once more.
pub async fn keep<H: HostActions>(
    hands: &mut H,
    scene: Scene<'_>,
    trial: Trial,
    watch: TrialWatch<'_>,
    cancel: impl Future<Output = ()>,
) -> Trial {
    let course = course_of(&trial, Course::default());
    let machine = TrialMachine::keep(trial, course, linerate_report::words::effect);
    Drive { hands, scene, transfer_ms: 0 }.finish(machine, watch, cancel).await
}

/// Takes a trial back, also a kept one, and reads the old values back.
pub async fn undo<H: HostActions>(
    hands: &mut H,
    scene: Scene<'_>,
    trial: Trial,
    watch: TrialWatch<'_>,
) -> Trial {
    let course = course_of(&trial, Course::default());
    let machine = TrialMachine::undo(trial, course, linerate_report::words::effect);
    Drive { hands, scene, transfer_ms: 0 }.finish(machine, watch, std::future::pending()).await
}

/// A test on a disk fills its file first: its node has to wait longer before it takes the operator for gone.
const STORAGE_DEADLINE_S: u32 = 150;

fn course_of(trial: &Trial, course: Course) -> Course {
    match trial.response {
        Metric::Storage => Course { deadline_s: course.deadline_s.max(STORAGE_DEADLINE_S), ..course },
        _ => course,
    }
}

struct Drive<'a, H> {
    hands: &'a mut H,
    scene: Scene<'a>,
    transfer_ms: u32,
}

impl<H: HostActions> Drive<'_, H> {
    async fn finish(
        mut self,
        mut machine: TrialMachine,
        watch: TrialWatch<'_>,
        cancel: impl Future<Output = ()>,
    ) -> Trial {
        let mut cancel: Pin<Box<dyn Future<Output = ()> + '_>> = Box::pin(cancel);
        let started = Instant::now();
        let mut cancelled = false;
        while let Some(action) = machine.action().cloned() {
            watch(machine.trial(), &words(&action, &machine), machine.left());
            // Only a measurement is cut short: a write that is under way is waited for, so that its outcome
            // is known.
            let interruptible = matches!(action, Action::Measure { .. });
            let event = if cancelled {
                self.act(&action, &machine).await
            } else if interruptible {
                tokio::select! {
                    event = self.act(&action, &machine) => event,
                    () = &mut cancel => { cancelled = true; TrialEvent::Cancel }
                }
            } else {
                let event = self.act(&action, &machine).await;
                cancelled = is_ready(&mut cancel).await;
                event
            };
            let now_ms = || started.elapsed().as_millis() as u64;
            machine.on(event, now_ms());
            if cancelled {
                machine.on(TrialEvent::Cancel, now_ms());
            }
        }
        watch(machine.trial(), "done", 0);
        machine.trial().clone()
    }

    async fn act(&mut self, action: &Action, machine: &TrialMachine) -> TrialEvent {
        let trial = machine.trial();
        let id = trial.id.as_str();
        let deadline_s = machine.deadline_s();
        let result = match action {
            Action::Apply(host) => {
                self.hands.apply(host, id, &machine.changes(host), deadline_s).await.map(TrialEvent::Values)
            }
            Action::Revert(host) => self.hands.revert(host, id).await.map(TrialEvent::Values),
            Action::Extend(host) => self.hands.extend(host, id, deadline_s).await.map(|()| TrialEvent::Done),
            Action::Keep(host) => {
                self.hands.keep(host, id, &machine.changes(host)).await.map(TrialEvent::Kept)
            }
            Action::Undo(host) => self.hands.undo(host, id).await.map(TrialEvent::Values),
            Action::Read { host, .. } => {
                let keys: Vec<FactKey> = machine.changes(host).into_iter().map(|c| c.key).collect();
                self.hands.read(host, &keys).await.map(TrialEvent::Values)
            }
            Action::Measure { which, .. } => Ok(self.measure(*which, trial).await),
            Action::Wait { ms } => {
                self.hands.wait(Duration::from_millis(*ms)).await;
                Ok(TrialEvent::Done)
            }
            Action::Decide => Ok(TrialEvent::Done),
        };
        result.unwrap_or_else(|e| {
            if e.lost {
                TrialEvent::Lost { error: e.error }
            } else {
                TrialEvent::Failed { error: e.error, undo_failed: e.undo_failed }
            }
        })
    }

    async fn measure(&mut self, which: Which, trial: &Trial) -> TrialEvent {
        let Some(test) = self.test(which, trial) else { return TrialEvent::Measured(None) };
        let Tested { outcome, contended } = self.hands.measure(&test).await;
        match (response::value(trial.response, &outcome), contended) {
            (Some(value), Some(reason)) => TrialEvent::Contended { value, reason },
            (value, _) => TrialEvent::Measured(value),
        }
    }

    fn test(&self, which: Which, trial: &Trial) -> Option<Test> {
        let pair = match which {
            Which::Affected => &trial.pair,
            Which::Control => trial.control.as_ref()?,
        };
        if trial.response == Metric::Storage {
            return choose::storage_test(self.scene.snapshot, self.scene.diagnosis, &trial.remedy);
        }
        let ceiling = choose::ceiling(self.scene.diagnosis, &trial.pair, trial.layer);
        let transfer_ms = if self.transfer_ms == 0 { TRANSFER_MS } else { self.transfer_ms };
        Some(response::test(trial.response, pair, trial.layer, self.scene.snapshot, ceiling, transfer_ms))
    }
}

/// Whether a future has ended, without waiting for it.
async fn is_ready(future: &mut Pin<Box<dyn Future<Output = ()> + '_>>) -> bool {
    std::future::poll_fn(|context| std::task::Poll::Ready(future.as_mut().poll(context).is_ready())).await
}

/// What an action is, for a person who waits.
fn words(action: &Action, machine: &TrialMachine) -> String {
    let trial = machine.trial();
    let count = trial.arms.len();
    let pair = |p: &(String, String)| format!("{} to {}", p.0, p.1);
    match action {
        Action::Apply(host) => format!("{host}: writing the new values"),
        Action::Revert(host) => format!("{host}: putting the old values back"),
        Action::Extend(host) => format!("{host}: moving its deadline"),
        Action::Keep(host) => format!("{host}: making the change stay"),
        Action::Read { host, .. } => format!("{host}: reading back"),
        Action::Undo(host) => format!("{host}: taking the change back"),
        Action::Wait { ms } => format!("waiting {} s for the node to undo by itself", ms / 1000),
        Action::Decide => "comparing".to_owned(),
        Action::Measure { arm: None, .. } => format!("checking {}", pair(&trial.pair)),
        Action::Measure { which: Which::Affected, arm: Some(arm) } => {
            let state = if trial.arms.get(*arm).is_some_and(|a| a.changed) { "changed" } else { "as it was" };
            format!("arm {} of {count}, {state}: {}", arm + 1, pair(&trial.pair))
        }
        Action::Measure { arm: Some(arm), .. } => {
            let control = trial.control.as_ref().map(pair).unwrap_or_default();
            format!("arm {} of {count}, control: {control}", arm + 1)
        }
    }
}
