//! A fleet in memory for the tests of this room: hosts with settings, a journal that survives, a node program
//! that can be killed between any two of its writes, and a guardian that undoes when the node is gone.
//! Virtual time. Only for tests.

use std::collections::BTreeMap;
use std::path::PathBuf;

use linerate_model::change::{Change, ReadBack};
use linerate_model::fact::{FactKey, FactValue};

use super::machine::{Action, TrialEvent, TrialMachine};

/// A node that hears nothing of its operator for so long treats it as lost.
const OPERATOR_LOST_MS: u64 = 4000;
/// How long a dead node stays away before its host can be reached again.
const AWAY_MS: u64 = 3000;

/// What is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kill {
    Node,
    Operator,
    Both,
}

#[derive(Debug, Clone, PartialEq)]
enum State {
    Armed { deadline_ms: u64 },
    Kept,
}

/// On the disk of the host.
#[derive(Debug, Clone)]
struct Journal {
    changes: Vec<Change>,
    state: State,
}

/// A host.
#[derive(Debug, Default)]
pub(super) struct Host {
    pub(super) values: BTreeMap<FactKey, FactValue>,
    pub(super) files: Vec<PathBuf>,
    journal: Option<Journal>,
    dead_since_ms: Option<u64>,
}

impl Host {
    /// What node or guardian do without being asked.
    fn undo_unless_kept(&mut self) {
        if let Some(journal) = self.journal.take_if(|j| j.state != State::Kept) {
            self.restore(&journal);
        }
    }

    fn restore(&mut self, journal: &Journal) {
        for change in journal.changes.iter().rev() {
            self.values.insert(change.key.clone(), change.from.clone());
        }
        self.files.clear();
    }
}

/// All hosts and the clock.
#[derive(Debug)]
pub(super) struct World {
    pub(super) hosts: BTreeMap<String, Host>,
    pub(super) now_ms: u64,
    /// Steps of nodes so far; the kill comes before step `kill.0`.
    pub(super) steps: usize,
    kill: Option<(usize, Kill)>,
    pub(super) operator_dead_ms: Option<u64>,
    comes_back: bool,
}

/// A node was killed in the middle of a request, or the operator was.
struct Killed;

impl World {
    pub(super) fn new(changes: &[Change], kill: Option<(usize, Kill)>, comes_back: bool) -> Self {
        let mut hosts: BTreeMap<String, Host> = BTreeMap::new();
        for change in changes {
            let host = hosts.entry(change.host.clone()).or_default();
            host.values.insert(change.key.clone(), change.from.clone());
        }
        Self { hosts, now_ms: 0, steps: 0, kill, operator_dead_ms: None, comes_back }
    }

    /// Lets time pass; what runs out runs out.
    pub(super) fn pass(&mut self, ms: u64) {
        self.now_ms += ms;
        let now = self.now_ms;
        let operator_lost = self.operator_dead_ms.is_some_and(|t| now >= t + OPERATOR_LOST_MS);
        for host in self.hosts.values_mut() {
            let overdue = matches!(&host.journal, Some(Journal { state: State::Armed { deadline_ms }, .. }) if now >= *deadline_ms);
            // The guardian sees the death of its node at once; the node sees the silence of its operator.
            if overdue || host.dead_since_ms.is_some_and(|t| now > t) || operator_lost {
                host.undo_unless_kept();
            }
        }
    }

    fn step(&mut self, host: &str) -> Result<&mut Host, Killed> {
        let number = self.steps;
        self.steps += 1;
        if let Some((at, kill)) = self.kill
            && at == number
        {
            if kill != Kill::Operator {
                self.hosts.get_mut(host).ok_or(Killed)?.dead_since_ms = Some(self.now_ms);
            }
            if kill != Kill::Node {
                self.operator_dead_ms = Some(self.now_ms);
            }
            if kill != Kill::Operator {
                return Err(Killed);
            }
        }
        self.hosts.get_mut(host).ok_or(Killed)
    }

    /// Carries an action out as a node would.
    pub(super) fn act(
        &mut self,
        action: &Action,
        machine: &TrialMachine,
        measured: &mut dyn FnMut(&Self) -> f64,
    ) -> TrialEvent {
        self.pass(if matches!(action, Action::Measure { .. }) { 1200 } else { 5 });
        let host = match action {
            Action::Apply(h) | Action::Revert(h) | Action::Extend(h) | Action::Keep(h) | Action::Undo(h) => h,
            Action::Read { host, .. } => host,
            Action::Measure { .. } => return TrialEvent::Measured(Some(measured(self))),
            Action::Wait { ms } => {
                self.pass(*ms);
                return TrialEvent::Done;
            }
            Action::Decide => return TrialEvent::Done,
        };
        let may_reopen = matches!(action, Action::Undo(_) | Action::Read { .. });
        let entry = self.hosts.get_mut(host).expect("hosts of the trial exist");
        if let Some(since) = entry.dead_since_ms {
            if !(self.comes_back && may_reopen && self.now_ms >= since + AWAY_MS) {
                return TrialEvent::Lost { error: format!("host {host} is lost") };
            }
            entry.dead_since_ms = None;
        }
        let result = match action {
            Action::Apply(_) => self.apply(host, machine),
            Action::Revert(_) => self.revert(host),
            Action::Extend(_) => self.extend(host, machine),
            Action::Keep(_) => self.keep(host, machine),
            Action::Undo(_) => self.undo(host),
            _ => Ok(TrialEvent::Values(self.read(host, machine))),
        };
        result.unwrap_or_else(|Killed| TrialEvent::Lost { error: format!("host {host} died") })
    }

    fn read(&self, host: &str, machine: &TrialMachine) -> ReadBack {
        let values = &self.hosts[host].values;
        machine.changes(host).iter().map(|c| (c.key.clone(), values[&c.key].clone())).collect()
    }

    fn apply(&mut self, host: &str, machine: &TrialMachine) -> Result<TrialEvent, Killed> {
        let changes = machine.changes(host);
        let deadline_ms = self.now_ms + u64::from(machine.deadline_s()) * 1000;
        let journal = Journal { changes: changes.clone(), state: State::Armed { deadline_ms } };
        self.step(host)?.journal = Some(journal);
        for change in changes {
            self.step(host)?.values.insert(change.key, change.to);
        }
        self.step(host)?;
        Ok(TrialEvent::Values(self.read(host, machine)))
    }

    fn revert(&mut self, host: &str) -> Result<TrialEvent, Killed> {
        let Some(journal) = self.step(host)?.journal.clone() else { return Ok(no_journal(host)) };
        let mut values = ReadBack::new();
        for change in journal.changes {
            self.step(host)?.values.insert(change.key.clone(), change.from.clone());
            values.push((change.key, change.from));
        }
        Ok(TrialEvent::Values(values))
    }

    fn extend(&mut self, host: &str, machine: &TrialMachine) -> Result<TrialEvent, Killed> {
        let deadline_ms = self.now_ms + u64::from(machine.deadline_s()) * 1000;
        match &mut self.step(host)?.journal {
            Some(journal) => journal.state = State::Armed { deadline_ms },
            None => return Ok(no_journal(host)),
        }
        Ok(TrialEvent::Done)
    }

    fn keep(&mut self, host: &str, machine: &TrialMachine) -> Result<TrialEvent, Killed> {
        let changes = machine.changes(host);
        let deadline_ms = self.now_ms + u64::from(machine.deadline_s()) * 1000;
        let armed = Journal { changes: changes.clone(), state: State::Armed { deadline_ms } };
        self.step(host)?.journal.get_or_insert(armed);
        for change in changes {
            self.step(host)?.values.insert(change.key, change.to);
        }
        let file = PathBuf::from("/etc/sysctl.d/x.conf");
        self.step(host)?.files.push(file.clone());
        // The commit: before it everything is undone, after it everything stays.
        if let Some(journal) = &mut self.step(host)?.journal {
            journal.state = State::Kept;
        }
        self.step(host)?;
        Ok(TrialEvent::Kept(vec![file]))
    }

    fn undo(&mut self, host: &str) -> Result<TrialEvent, Killed> {
        let entry = self.step(host)?;
        let Some(journal) = entry.journal.clone() else { return Ok(no_journal(host)) };
        let mut values = ReadBack::new();
        for change in journal.changes {
            self.step(host)?.values.insert(change.key.clone(), change.from.clone());
            values.push((change.key, change.from));
        }
        let entry = self.step(host)?;
        entry.files.clear();
        entry.journal = None;
        Ok(TrialEvent::Values(values))
    }
}

fn no_journal(host: &str) -> TrialEvent {
    TrialEvent::Failed { error: format!("host {host} has no journal of this trial"), undo_failed: false }
}
