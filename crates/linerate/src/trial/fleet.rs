//! The hands of a trial on real nodes: each step is one request on the session of its host. Comes in: open sessions. Goes out:
//! values read back, outcomes of tests. A host whose session ended gets a new one, but only for undoing and reading.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use linerate_model::change::Change;
use linerate_model::fact::{FactKey, FactValue};
use linerate_model::inventory::{HostName, Inventory};
use linerate_model::load::TestKind;
use linerate_model::plan::Test;
use linerate_model::sample::Outcome;
use linerate_wire::message::{Event, Request};

use super::drive::{HandError, Hands, Tested};
use super::machine::ReadBack;
use crate::fleet::{Fleet, LinkError, REQUEST_WAIT};
use crate::observe::{clock, disturb, measure};

/// A worthless measurement is repeated within this time; later the deadline of the node comes too near.
const REPEAT_WITHIN: Duration = Duration::from_secs(5);
/// How long it is tried to reach a lost host again.
const REOPEN_TRIES: usize = 2;

/// Hands on the sessions of a fleet; see the file's head.
#[derive(Debug)]
pub struct FleetHands<'a> {
    fleet: &'a Fleet,
    inventory: &'a Inventory,
    /// New sessions of hosts that were lost.
    again: BTreeMap<HostName, Fleet>,
}

impl<'a> FleetHands<'a> {
    /// Hands on these sessions.
    pub fn new(fleet: &'a Fleet, inventory: &'a Inventory) -> Self {
        Self { fleet, inventory, again: BTreeMap::new() }
    }

    /// Ends the sessions that were opened again. The others belong to the caller.
    pub async fn bye(self) {
        for fleet in self.again.into_values() {
            fleet.bye().await;
        }
    }

    async fn ask(&self, host: &str, body: Request) -> Result<Vec<Event>, HandError> {
        let fleet = self.again.get(host).unwrap_or(self.fleet);
        let link = fleet.link(host).map_err(|e| error(&e))?;
        link.request(body, REQUEST_WAIT).await.map_err(|e| error(&e))
    }

    /// The same, with a new session when the old one has ended.
    async fn ask_again(&mut self, host: &str, body: Request) -> Result<Vec<Event>, HandError> {
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
}

fn error(error: &LinkError) -> HandError {
    let words = error.to_string();
    match error {
        LinkError::Lost { .. } | LinkError::Deadline { .. } => {
            HandError { error: words, lost: true, undo_failed: false }
        }
        LinkError::Refused { undo_failed, .. } => {
            HandError { error: words, lost: false, undo_failed: *undo_failed }
        }
    }
}

/// The values of a `Changed` event.
fn changed(host: &str, events: Vec<Event>) -> Result<ReadBack, HandError> {
    let values = events.into_iter().find_map(|e| match e {
        Event::Changed { read_back } => Some(read_back),
        _ => None,
    });
    values.ok_or_else(|| odd(host, "did not say what it read back"))
}

fn odd(host: &str, what: &str) -> HandError {
    HandError { error: format!("host {host} {what}"), lost: false, undo_failed: false }
}

impl Hands for FleetHands<'_> {
    async fn apply(
        &mut self,
        host: &str,
        trial: &str,
        changes: &[Change],
        deadline_s: u32,
    ) -> Result<ReadBack, HandError> {
        let body = Request::Apply { trial: trial.to_owned(), changes: changes.to_vec(), deadline_s };
        changed(host, self.ask(host, body).await?)
    }

    async fn revert(&mut self, host: &str, trial: &str) -> Result<ReadBack, HandError> {
        changed(host, self.ask(host, Request::Revert { trial: trial.to_owned() }).await?)
    }

    async fn extend(&mut self, host: &str, trial: &str, deadline_s: u32) -> Result<(), HandError> {
        self.ask(host, Request::Extend { trial: trial.to_owned(), deadline_s }).await.map(|_| ())
    }

    async fn keep(&mut self, host: &str, trial: &str, changes: &[Change]) -> Result<Vec<PathBuf>, HandError> {
        let body = Request::Keep { trial: trial.to_owned(), changes: changes.to_vec() };
        let files = self.ask(host, body).await?.into_iter().find_map(|e| match e {
            Event::Kept { files } => Some(files),
            _ => None,
        });
        files.ok_or_else(|| odd(host, "did not say which files it wrote"))
    }

    async fn undo(&mut self, host: &str, trial: &str) -> Result<ReadBack, HandError> {
        changed(host, self.ask_again(host, Request::Undo { trial: trial.to_owned() }).await?)
    }

    async fn read(&mut self, host: &str, keys: &[FactKey]) -> Result<ReadBack, HandError> {
        let netns: Vec<PathBuf> = keys
            .iter()
            .filter_map(|k| Some(PathBuf::from(k.strip_prefix("netns.")?.split_once('|')?.0)))
            .collect();
        let body = Request::Facts { prefixes: keys.to_vec(), netns };
        let facts = self.ask_again(host, body).await?.into_iter().find_map(|e| match e {
            Event::Facts(facts) => Some(facts),
            _ => None,
        });
        let facts = facts.ok_or_else(|| odd(host, "sent no facts"))?;
        let value = |key: &FactKey| -> Option<(FactKey, FactValue)> {
            Some((key.clone(), facts.readings.get(key)?.clone()))
        };
        Ok(keys.iter().filter_map(value).collect())
    }

    async fn measure(&mut self, test: &Test) -> Tested {
        let begun = Instant::now();
        loop {
            let start_ms = clock::now_ms();
            let sample = match test.kind {
                TestKind::Disk(_) => measure::alone(self.fleet, self.inventory, test).await,
                _ => measure::measure(self.fleet, self.inventory, test, measure::Patience::Usual).await,
            };
            let spans = disturb::read(self.inventory.disturbances.as_deref());
            let span = disturb::harm(&spans, start_ms, clock::now_ms(), &test.kind);
            let disturbed = span.map(|span| span.reason.clone());
            let is_good = disturbed.is_none() && !matches!(sample.outcome, Outcome::Invalid { .. });
            if is_good || begun.elapsed() > REPEAT_WITHIN {
                return Tested { outcome: sample.outcome, disturbed };
            }
        }
    }
}
