//! Changes of settings on hosts: each step is one request on the session of its host. Comes in: open
//! sessions. Goes out: values read back. A host whose session ended gets a new one, but only for undoing and
//! reading.

use std::collections::BTreeMap;
use std::path::PathBuf;

use linerate_model::change::{Change, PlannedFile, ReadBack};
use linerate_model::fact::{FactKey, FactValue};
use linerate_model::inventory::{HostName, Inventory};
use linerate_wire::message::{Event, ObserveRequest, Request, TrialRequest};

use super::{Fleet, LinkError, REQUEST_WAIT};

/// How long it is tried to reach a lost host again.
const REOPEN_TRIES: usize = 2;

/// Why a host could not do what was requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetChangeError {
    /// Names host, thing and reason.
    pub error: String,
    /// The session has ended, or the node does not answer: it undoes by itself what it was not told to keep.
    pub lost: bool,
    /// Old values could not be restored.
    pub undo_failed: bool,
}

/// Changes on the hosts of a fleet; see the file's head.
#[derive(Debug)]
pub struct FleetChanges<'a> {
    fleet: &'a Fleet,
    inventory: &'a Inventory,
    /// New sessions of hosts that were lost.
    again: BTreeMap<HostName, Fleet>,
}

impl<'a> FleetChanges<'a> {
    /// Changes over these sessions.
    pub fn new(fleet: &'a Fleet, inventory: &'a Inventory) -> Self {
        Self { fleet, inventory, again: BTreeMap::new() }
    }

    /// Ends the sessions that were opened again. The others belong to the caller.
    pub async fn bye(self) {
        for fleet in self.again.into_values() {
            fleet.bye().await;
        }
    }

    async fn ask(&self, host: &str, body: impl Into<Request>) -> Result<Vec<Event>, FleetChangeError> {
        let fleet = self.again.get(host).unwrap_or(self.fleet);
        let link = fleet.link(host).map_err(|e| error(&e))?;
        link.request(body, REQUEST_WAIT).await.map_err(|e| error(&e))
    }

    /// The same, with a new session when the old one has ended.
    async fn ask_again(
        &mut self,
        host: &str,
        body: impl Into<Request> + Clone,
    ) -> Result<Vec<Event>, FleetChangeError> {
        for _ in 0..REOPEN_TRIES {
            match self.ask(host, body.clone()).await {
                // In the job that holds the host: a second one would wait for it.
                Err(e) if e.lost && self.fleet.is_held(host) => {
                    if let Some(host) = self.inventory.host(host) {
                        // What keeps it from coming back is what the next try says.
                        let _ = self.fleet.take_up(host).await;
                    }
                }
                Err(e) if e.lost => {
                    let fleet = Fleet::open(self.inventory, |h| h.name == host).await;
                    if let Some(old) = self.again.insert(host.to_owned(), fleet) {
                        old.bye().await;
                    }
                }
                other => return other,
            }
        }
        self.ask(host, body).await
    }

    /// Writes a journal, arms the dead-man timer, writes the values and reads them back.
    ///
    /// # Errors
    /// The host refuses, or its session has ended.
    pub async fn apply(
        &mut self,
        host: &str,
        trial: &str,
        changes: &[Change],
        deadline_s: u32,
    ) -> Result<ReadBack, FleetChangeError> {
        let body = TrialRequest::Apply { trial: trial.to_owned(), changes: changes.to_vec(), deadline_s };
        changed(host, self.ask(host, body).await?)
    }

    /// Restores the old values; the timer stays armed.
    ///
    /// # Errors
    /// The host refuses, or its session has ended.
    pub async fn revert(&mut self, host: &str, trial: &str) -> Result<ReadBack, FleetChangeError> {
        changed(host, self.ask(host, TrialRequest::Revert { trial: trial.to_owned() }).await?)
    }

    /// Moves the deadline.
    ///
    /// # Errors
    /// The host refuses, or its session has ended.
    pub async fn extend(&mut self, host: &str, trial: &str, deadline_s: u32) -> Result<(), FleetChangeError> {
        self.ask(host, TrialRequest::Extend { trial: trial.to_owned(), deadline_s }).await.map(|_| ())
    }

    /// Makes the changes survive a reboot; returns the files that were written.
    ///
    /// # Errors
    /// The host refuses, or its session has ended.
    pub async fn keep(
        &mut self,
        host: &str,
        trial: &str,
        changes: &[Change],
    ) -> Result<Vec<PathBuf>, FleetChangeError> {
        let body = TrialRequest::Keep { trial: trial.to_owned(), changes: changes.to_vec() };
        let files = self.ask(host, body).await?.into_iter().find_map(|e| match e {
            Event::Kept { files } => Some(files),
            _ => None,
        });
        files.ok_or_else(|| odd(host, "did not say which files it wrote"))
    }

    /// The files that [`Self::keep`] would write on a host.
    ///
    /// # Errors
    /// The host refuses, or its session has ended.
    pub async fn plan_keep(
        &mut self,
        host: &str,
        changes: &[Change],
    ) -> Result<Vec<PlannedFile>, FleetChangeError> {
        let body = TrialRequest::PlanKeep { changes: changes.to_vec() };
        let files = self.ask(host, body).await?.into_iter().find_map(|e| match e {
            Event::Planned { files } => Some(files),
            _ => None,
        });
        files.ok_or_else(|| odd(host, "did not list the files"))
    }

    /// Restores the old values and closes the journal. May open a new session with a host that was lost.
    ///
    /// # Errors
    /// The host refuses, or its session has ended.
    pub async fn undo(&mut self, host: &str, trial: &str) -> Result<ReadBack, FleetChangeError> {
        changed(host, self.ask_again(host, TrialRequest::Undo { trial: trial.to_owned() }).await?)
    }

    /// Reads settings. May open a new session with a host that was lost.
    ///
    /// # Errors
    /// The host refuses, or its session has ended.
    pub async fn read(&mut self, host: &str, keys: &[FactKey]) -> Result<ReadBack, FleetChangeError> {
        let netns: Vec<PathBuf> = keys
            .iter()
            .filter_map(|k| Some(PathBuf::from(k.strip_prefix("netns.")?.split_once('|')?.0)))
            .collect();
        let body = ObserveRequest::Facts { prefixes: keys.to_vec(), netns };
        let facts = self.ask_again(host, body).await?.into_iter().find_map(|e| match e {
            Event::Facts(facts) => Some(facts),
            _ => None,
        });
        let facts = facts.ok_or_else(|| odd(host, "sent no facts"))?;
        let value =
            |key: &FactKey| -> Option<(FactKey, FactValue)> { Some((key.clone(), facts.value_of(key)?)) };
        Ok(keys.iter().filter_map(value).collect())
    }
}

fn error(error: &LinkError) -> FleetChangeError {
    let words = error.to_string();
    match error {
        LinkError::Lost { .. } | LinkError::Deadline { .. } => {
            FleetChangeError { error: words, lost: true, undo_failed: false }
        }
        LinkError::Refused { undo_failed, .. } => {
            FleetChangeError { error: words, lost: false, undo_failed: *undo_failed }
        }
    }
}

/// The values of a `Changed` event.
fn changed(host: &str, events: Vec<Event>) -> Result<ReadBack, FleetChangeError> {
    let values = events.into_iter().find_map(|e| match e {
        Event::Changed { read_back } => Some(read_back),
        _ => None,
    });
    values.ok_or_else(|| odd(host, "did not say what it read back"))
}

fn odd(host: &str, what: &str) -> FleetChangeError {
    FleetChangeError { error: format!("host {host} {what}"), lost: false, undo_failed: false }
}
