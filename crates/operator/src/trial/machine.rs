//! The steps of a trial as a pure state machine: events in, actions out, the time is given. It does no I/O
//! and knows no clock, so that every crash at every step can be played in memory.
//!
//! Way of a trial: apply and read back, revert and read back (the way back is proven before anything is
//! measured), then arms A B B A A B B A with the dead-man deadline moved before each measurement, then the
//! effect, then undo or keep. Any failure leads to the undo path. A host that is lost undoes by itself; the
//! machine waits for its deadline and reads the values back.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;

use linerate_model::change::{Change, ReadBack};
use linerate_model::finding::Metric;
use linerate_model::inventory::HostName;
use linerate_model::trial::{Arm, Effect, EffectSize, Trial, TrialStatus};
use linerate_model::units;

/// What a node does on its own after the deadline may take this long, in milliseconds.
pub const UNDO_GRACE_MS: u64 = 5000;

/// Computes an effect: arms, response, seed.
pub type Judge = fn(&[Arm], Metric, u64) -> EffectSize;

/// Which pair is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The pair that the change should help.
    Affected,
    /// The pair that the change cannot touch.
    Control,
}

/// One step to carry out. Each is answered by exactly one [`TrialEvent`].
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Journal, arm, write, read back.
    Apply(HostName),
    /// Old values, stay armed.
    Revert(HostName),
    /// Move the dead-man deadline.
    Extend(HostName),
    /// Measure a pair.
    Measure {
        /// Which one.
        which: Which,
        /// Number of the arm; `None` for the check after keeping.
        arm: Option<usize>,
    },
    /// Compute the effect and decide. Answered by `Done`.
    Decide,
    /// Make it stay.
    Keep(HostName),
    /// Read the changed settings.
    Read {
        /// Where.
        host: HostName,
        /// Whether the new values must be there, or the old ones.
        changed: bool,
    },
    /// Old values, close the journal.
    Undo(HostName),
    /// Let this much time pass.
    Wait {
        /// Milliseconds.
        ms: u64,
    },
}

/// How an action ended.
#[derive(Debug, Clone, PartialEq)]
pub enum TrialEvent {
    /// Done, nothing to say.
    Done,
    /// Values read back (`Apply`, `Revert`, `Read`, `Undo`).
    Values(ReadBack),
    /// Files written (`Keep`).
    Kept(Vec<PathBuf>),
    /// A measurement; `None` when it was invalid.
    Measured(Option<f64>),
    /// A measurement that something contended, however often it was made.
    Contended {
        /// What was measured all the same.
        value: f64,
        /// Who says so and why.
        reason: String,
    },
    /// It failed, the session lives.
    Failed {
        /// Why.
        error: String,
        /// Old values could not be restored.
        undo_failed: bool,
    },
    /// The node is gone.
    Lost {
        /// Why.
        error: String,
    },
    /// The operator wants to stop.
    Cancel,
}

/// When the change of a trial stays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum KeepWhen {
    /// Never: the old values come back.
    #[default]
    Never,
    /// It is proven to be better.
    Better,
    /// It is better or has no effect: it was proven elsewhere, and does no harm here.
    Harmless,
}

impl KeepWhen {
    /// Better, where that was asked for.
    pub fn better_if(asked: bool) -> Self {
        if asked { Self::Better } else { Self::Never }
    }

    fn holds(self, effect: Effect) -> bool {
        match self {
            Self::Never => false,
            Self::Better => effect == Effect::Better,
            Self::Harmless => matches!(effect, Effect::Better | Effect::NoEffect),
        }
    }
}

/// What is wanted of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Course {
    /// Number of arms, a multiple of four.
    pub arms: usize,
    /// Dead-man deadline in seconds.
    pub deadline_s: u32,
    /// When the change stays.
    pub keep: KeepWhen,
    /// Seed of the bootstrap.
    pub seed: u64,
}

impl Default for Course {
    fn default() -> Self {
        Self { arms: 8, deadline_s: 15, keep: KeepWhen::Never, seed: 1 }
    }
}

/// A trial on its way; see the file's head.
#[derive(Debug)]
pub struct TrialMachine {
    trial: Trial,
    course: Course,
    judge: Judge,
    queue: VecDeque<Action>,
    /// Hosts on which something may be changed.
    touched: Vec<HostName>,
    /// When the dead-man timers run out at the earliest, by the operator's clock.
    armed_until_ms: BTreeMap<HostName, u64>,
    /// The undo path has begun; a second failure does not start it again.
    leaving: bool,
    /// Status when everything was undone.
    after_undo: TrialStatus,
    /// Hosts whose old values are not proven to be back.
    unproven: Vec<HostName>,
    /// Lost hosts whose deadline was or is waited for.
    waited: Vec<HostName>,
    /// The measurement after keeping, once it was made.
    after_keep: Option<f64>,
    /// Measurements that were made again.
    again: usize,
    /// Measurements that count although they were contended, and why the first of them was.
    contended: Option<(usize, String)>,
}

/// Measurements of a trial that are made again because something contended them: a busy machine is no reason
/// to know nothing.
const AGAIN_MAX: usize = 4;

impl TrialMachine {
    /// A new trial, to be measured.
    pub fn measure(trial: Trial, course: Course, judge: Judge) -> Self {
        let mut machine = Self::new(trial, course, judge);
        let hosts = machine.hosts();
        let control = machine.trial.control.is_some();
        let queue = &mut machine.queue;
        queue.extend(hosts.iter().cloned().map(Action::Apply));
        queue.extend(hosts.iter().cloned().map(Action::Revert));
        let mut state = false;
        for arm in 0..course.arms.next_multiple_of(4).max(4) {
            let changed = matches!(arm % 4, 1 | 2);
            // A setting is only written when it has to change: some writes interrupt the link.
            if changed != state {
                let set = if changed { Action::Apply } else { Action::Revert };
                queue.extend(hosts.iter().cloned().map(set));
                state = changed;
            }
            for which in [Which::Affected, Which::Control] {
                if which == Which::Affected || control {
                    queue.extend(hosts.iter().cloned().map(Action::Extend));
                    queue.push_back(Action::Measure { which, arm: Some(arm) });
                }
            }
            machine.trial.arms.push(Arm { changed, value: None, control: None });
        }
        queue.push_back(Action::Decide);
        machine.trial.status = TrialStatus::Running;
        machine
    }

    /// A trial that was measured, to be kept.
    pub fn keep(trial: Trial, course: Course, judge: Judge) -> Self {
        let mut machine = Self::new(trial, course, judge);
        machine.after_undo = TrialStatus::Undone;
        machine.queue_keep();
        machine
    }

    /// A trial whose change is to be taken back.
    pub fn undo(trial: Trial, course: Course, judge: Judge) -> Self {
        let mut machine = Self::new(trial, course, judge);
        machine.touched = machine.hosts();
        machine.leave(TrialStatus::Undone);
        machine
    }

    fn new(trial: Trial, course: Course, judge: Judge) -> Self {
        Self {
            trial,
            course,
            judge,
            queue: VecDeque::new(),
            touched: Vec::new(),
            armed_until_ms: BTreeMap::new(),
            leaving: false,
            after_undo: TrialStatus::Measured,
            unproven: Vec::new(),
            waited: Vec::new(),
            after_keep: None,
            again: 0,
            contended: None,
        }
    }

    /// The trial as it stands.
    pub fn trial(&self) -> &Trial {
        &self.trial
    }

    /// What is to be done now; `None` when the trial has ended.
    pub fn action(&self) -> Option<&Action> {
        self.queue.front()
    }

    /// Actions that are left on this way.
    pub fn left(&self) -> usize {
        self.queue.len()
    }

    /// The dead-man deadline in seconds.
    pub fn deadline_s(&self) -> u32 {
        self.course.deadline_s
    }

    /// The changes of one host, in order.
    pub fn changes(&self, host: &str) -> Vec<Change> {
        self.trial.remedy.changes.iter().filter(|c| c.host == host).cloned().collect()
    }

    fn hosts(&self) -> Vec<HostName> {
        self.trial.remedy.hosts()
    }

    /// The current action ended, or the operator wants to stop.
    pub fn on(&mut self, event: TrialEvent, now_ms: u64) {
        if event == TrialEvent::Cancel {
            self.cancel();
        } else if let Some(action) = self.queue.pop_front() {
            self.touch(&action);
            if self.leaving { self.way_out(action, event) } else { self.way(action, event, now_ms) }
        }
        if self.queue.is_empty() {
            self.finish();
        }
    }

    /// A node may have changed something before it failed or died: from now on its host has to be undone.
    fn touch(&mut self, action: &Action) {
        if let Action::Apply(host) | Action::Keep(host) = action
            && !self.touched.contains(host)
        {
            self.touched.push(host.clone());
        }
    }

    fn cancel(&mut self) {
        // Taking back is never interrupted.
        if !self.leaving && !self.queue.is_empty() {
            if let Some(under_way) = self.queue.pop_front() {
                self.touch(&under_way);
            }
            self.fail("interrupted; the old values were put back".to_owned());
        }
    }

    fn way(&mut self, action: Action, event: TrialEvent, now_ms: u64) {
        // A machine that slept, or a network that hung: the node has undone by itself, the state is not what
        // we think.
        if let Some((host, late_ms)) = self.overdue(now_ms) {
            let late = late_ms / 1000;
            self.fail(format!(
                "{host} was not heard of until {late} s after its deadline and has undone by itself"
            ));
            return;
        }
        let armed = now_ms + u64::from(self.course.deadline_s) * 1000;
        match (action, event) {
            (Action::Apply(host), TrialEvent::Values(values)) => {
                self.armed_until_ms.insert(host.clone(), armed);
                self.check(&host, &values, true);
            }
            (Action::Revert(host), TrialEvent::Values(values)) => self.check(&host, &values, false),
            (Action::Extend(host), TrialEvent::Done | TrialEvent::Values(_)) => {
                self.armed_until_ms.insert(host, armed);
            }
            (Action::Measure { which, arm }, TrialEvent::Measured(value)) => self.record(which, arm, value),
            (Action::Measure { which, arm }, TrialEvent::Contended { value, reason }) => {
                self.record_contended(which, arm, value, reason);
            }
            (Action::Decide, _) => self.decide(),
            (Action::Keep(host), TrialEvent::Kept(files)) => {
                self.armed_until_ms.remove(&host);
                self.trial.persisted.extend(files.iter().map(|f| f.display().to_string()));
            }
            (Action::Read { host, changed }, TrialEvent::Values(values)) => {
                self.check(&host, &values, changed);
            }
            // The change is in force and written; a pair that cannot be measured now is no reason to take it
            // back.
            (Action::Measure { arm: None, .. }, _) => self.record(Which::Affected, None, None),
            (_, TrialEvent::Lost { error } | TrialEvent::Failed { error, .. }) => self.fail(error),
            (action, event) => self.fail(format!("{action:?} was answered by {event:?}")),
        }
    }

    fn overdue(&self, now_ms: u64) -> Option<(HostName, u64)> {
        let late =
            |(host, until): (&HostName, &u64)| (now_ms > *until).then(|| (host.clone(), now_ms - until));
        self.armed_until_ms.iter().find_map(late)
    }

    /// The values read back must be those that were written.
    fn check(&mut self, host: &str, values: &ReadBack, changed: bool) {
        if let Some(reason) = self.mismatch(host, values, changed) {
            self.fail(reason);
        }
    }

    fn mismatch(&self, host: &str, values: &ReadBack, changed: bool) -> Option<String> {
        self.changes(host).iter().find_map(|change| {
            let want = if changed { &change.to } else { &change.from };
            let seen = values.iter().find(|(key, _)| *key == change.key).map(|(_, value)| value);
            match seen {
                None => Some(format!("{host}: {} was not read back", change.key)),
                Some(seen) if !seen.is_same(want) => {
                    Some(format!("{host}: {} reads {seen} where {want} was written", change.key))
                }
                Some(_) => None,
            }
        })
    }

    /// Makes a measurement of an arm again, a few times in a trial: at once, for what this arm is about is
    /// still in force. Says whether it does.
    fn makes_again(&mut self, which: Which, arm: Option<usize>) -> bool {
        if arm.is_none() || self.again >= AGAIN_MAX {
            return false;
        }
        self.again += 1;
        self.queue.push_front(Action::Measure { which, arm });
        for host in self.hosts() {
            self.queue.push_front(Action::Extend(host));
        }
        true
    }

    /// What is contended all the time counts: old and new values take turns, so it meets both alike, and the
    /// spread that it makes is in the interval of the effect.
    fn record_contended(&mut self, which: Which, arm: Option<usize>, value: f64, reason: String) {
        if self.makes_again(which, arm) {
            return;
        }
        self.contended.get_or_insert((0, reason)).0 += 1;
        self.record(which, arm, Some(value));
    }

    fn record(&mut self, which: Which, arm: Option<usize>, value: Option<f64>) {
        if value.is_none() && self.makes_again(which, arm) {
            return;
        }
        match arm.and_then(|i| self.trial.arms.get_mut(i)) {
            Some(arm) if which == Which::Affected => arm.value = value,
            Some(arm) => arm.control = value,
            None => self.after_keep = value,
        }
    }

    fn decide(&mut self) {
        let effect = (self.judge)(&self.trial.arms, self.trial.response, self.course.seed);
        let stays = self.course.keep.holds(effect.effect);
        if let Some((count, reason)) = &self.contended {
            self.trial.notes.push(format!(
                "{count} of the measurements were contended however often they were made ({reason}); they count, for old and new values took turns"
            ));
        }
        self.trial.effect = Some(effect);
        if stays {
            self.queue_keep();
            return;
        }
        match self.course.keep {
            KeepWhen::Never => {}
            KeepWhen::Better => {
                self.trial.notes.push("not kept, because it is not proven to be better".to_owned());
            }
            KeepWhen::Harmless => {
                self.trial.notes.push("not kept, because it is not shown to do no harm here".to_owned());
            }
        }
        self.leave(TrialStatus::Measured);
    }

    fn queue_keep(&mut self) {
        let hosts = self.hosts();
        self.queue.extend(hosts.iter().cloned().map(Action::Keep));
        self.queue.extend(hosts.into_iter().map(|host| Action::Read { host, changed: true }));
        self.queue.push_back(Action::Measure { which: Which::Affected, arm: None });
    }

    fn fail(&mut self, note: String) {
        self.trial.notes.push(note);
        self.leave(TrialStatus::Undone);
    }

    /// Onto the undo path: nothing else is done from here on.
    fn leave(&mut self, after: TrialStatus) {
        self.leaving = true;
        self.after_undo = after;
        self.queue = self.touched.iter().cloned().map(Action::Undo).collect();
    }

    fn way_out(&mut self, action: Action, event: TrialEvent) {
        match (action, event) {
            (Action::Undo(host), TrialEvent::Values(values))
                if self.mismatch(&host, &values, false).is_none() => {}
            (Action::Undo(host), TrialEvent::Failed { error, undo_failed: true }) => {
                self.trial.notes.push(error);
                self.unproven.push(host);
            }
            // No journal any more, perhaps: then the values themselves must tell.
            (Action::Undo(host), TrialEvent::Failed { .. } | TrialEvent::Values(_) | TrialEvent::Done) => {
                self.queue.push_back(Action::Read { host, changed: false });
            }
            (Action::Undo(host), _) => self.read_after_deadline(host),
            (Action::Read { host, .. }, event) => {
                let reason = match event {
                    TrialEvent::Values(values) => self.mismatch(&host, &values, false),
                    TrialEvent::Failed { error, .. } | TrialEvent::Lost { error } => Some(error),
                    other => Some(format!("{host}: reading was answered by {other:?}")),
                };
                match reason {
                    None => {}
                    Some(_) if !self.waited.contains(&host) => self.read_after_deadline(host),
                    Some(reason) => {
                        self.trial.notes.push(reason);
                        self.unproven.push(host);
                    }
                }
            }
            _ => {}
        }
    }

    /// The node undoes by itself within its deadline: wait for that, then look.
    fn read_after_deadline(&mut self, host: HostName) {
        self.waited.push(host.clone());
        if !self.queue.iter().any(|a| matches!(a, Action::Wait { .. })) {
            let ms = u64::from(self.course.deadline_s) * 1000 + UNDO_GRACE_MS;
            self.queue.push_back(Action::Wait { ms });
        }
        self.queue.push_back(Action::Read { host, changed: false });
    }

    fn finish(&mut self) {
        if !self.leaving {
            self.note_after_keep();
            self.trial.status = TrialStatus::Kept;
        } else if self.unproven.is_empty() {
            self.trial.persisted.clear();
            self.trial.status = self.after_undo;
        } else {
            self.trial.status = TrialStatus::UndoFailed;
        }
    }

    /// What the measurement after keeping says, where it does not fit to the trial.
    fn note_after_keep(&mut self) {
        let Some(effect) = &self.trial.effect else { return };
        let unit = self.trial.response.unit();
        let note = match self.after_keep {
            Some(now) => {
                let middle = f64::midpoint(effect.before, effect.after);
                let bad = if self.trial.response.more_is_better() { now < middle } else { now > middle };
                let (now, after) = (units::value(now, unit), units::value(effect.after, unit));
                if bad {
                    format!("the check after keeping measured {now}, the trial had {after}: measure again")
                } else {
                    format!("checked after keeping: {now}")
                }
            }
            None => "the pair could not be measured after keeping; survey again".to_owned(),
        };
        self.trial.notes.push(note);
    }
}
