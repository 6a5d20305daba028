//! The thread that makes the changes of a session, one after the other.
//!
//! In: requests about trials, and where to journal them. Out: their answers. Once a second it looks for
//! trials whose deadline has passed. It never makes a change before it was told where the journals are.

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use linerate_model::inventory::check_folder;
use linerate_sys::root::Root;
use linerate_wire::message::{Event, RequestId, Setup, TrialRequest};

use crate::session_event::SessionEvent;
use linerate_facts::change::ChangeError;
use linerate_facts::change::apply::Changes;
use linerate_facts::change::host::RealHost;

/// How often overdue trials are looked for.
const LOOK: Duration = Duration::from_secs(1);

/// What the main thread wants.
pub(crate) enum Order {
    /// Where the journals are.
    Setup { id: RequestId, setup: Setup },
    /// Of the operator.
    Trial { id: RequestId, request: TrialRequest },
    /// The operator ends the session: undo what is not confirmed, and end.
    Bye { id: RequestId },
    /// The operator is gone, with the reason: the same.
    Lost(String),
}

/// Works until the session ends.
pub(crate) fn run(orders: &Receiver<Order>, to_main: &SyncSender<SessionEvent>) {
    let mut changes: Option<Changes<RealHost>> = None;
    let mut look = Instant::now();
    loop {
        let order = match orders.recv_timeout(look.saturating_duration_since(Instant::now())) {
            Ok(order) => order,
            Err(RecvTimeoutError::Timeout) => {
                if let Some(changes) = &changes {
                    changes.host().reap();
                    changes.tick();
                }
                look = Instant::now() + LOOK;
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        };
        // The main thread may be gone already; what is on the disk counts.
        let answer = |id, event| drop(to_main.send(SessionEvent::Answer(id, event)));
        match order {
            Order::Lost(why) => {
                if let Some(changes) = &mut changes {
                    // Nobody is there to be told; the journal says what failed, and the guardian tries again.
                    let _ = changes.end(&why, false);
                }
                let _ = to_main.send(SessionEvent::ChangesEnded);
                return;
            }
            Order::Bye { id } => {
                let ended = changes.as_mut().map_or(Ok(()), |c| c.end("the operator said bye", true));
                answer(id, ended.map_or_else(|e| failed(&e), |()| Event::Done));
                let _ = to_main.send(SessionEvent::ChangesEnded);
                return;
            }
            Order::Setup { id, setup: Setup { state_dir, etc_dir, host } } => {
                if let Err(error) = check_folders(&state_dir, &etc_dir, &host) {
                    answer(id, failed(&error));
                    continue;
                }
                let fresh = Changes::new(RealHost::new(Root::live()), host, &state_dir, etc_dir);
                fresh.tick();
                // A second setup must not make the session forget what it has armed.
                let ended = changes.replace(fresh).map_or(Ok(()), |mut old| old.end("a new setup", false));
                answer(id, ended.map_or_else(|e| failed(&e), |()| Event::Done));
            }
            Order::Trial { id, request } => {
                let result =
                    changes.as_mut().ok_or(ChangeError::NoSetup).and_then(|c| carry_out(c, &request));
                match result {
                    Ok(Some(event)) => {
                        answer(id, event);
                        answer(id, Event::Done);
                    }
                    Ok(None) => answer(id, Event::Done),
                    Err(error) => answer(id, failed(&error)),
                }
            }
        }
    }
}

/// Folders that mean another place to the guardian, which works in another folder, are refused.
fn check_folders(state_dir: &Path, etc_dir: &Path, host: &str) -> Result<(), ChangeError> {
    for (what, path) in [("state_dir", state_dir), ("etc_dir", etc_dir)] {
        if let Err(reason) = check_folder(path) {
            return Err(ChangeError::Folder { host: host.to_owned(), what, path: path.to_owned(), reason });
        }
    }
    Ok(())
}

fn carry_out(changes: &mut Changes<RealHost>, request: &TrialRequest) -> Result<Option<Event>, ChangeError> {
    let changed = |read_back| Some(Event::Changed { read_back });
    match request {
        TrialRequest::Apply { trial, changes: wanted, deadline_s } => {
            changes.apply(trial, wanted, *deadline_s).map(changed)
        }
        TrialRequest::Revert { trial } => changes.revert(trial).map(changed),
        TrialRequest::Extend { trial, deadline_s } => changes.extend(trial, *deadline_s).map(|()| None),
        TrialRequest::Keep { trial, changes: wanted } => {
            changes.keep(trial, wanted).map(|files| Some(Event::Kept { files }))
        }
        TrialRequest::PlanKeep { changes: wanted } => {
            changes.plan_keep(wanted).map(|files| Some(Event::Planned { files }))
        }
        TrialRequest::Undo { trial } => changes.undo(trial).map(changed),
        TrialRequest::Journals => changes.journals().map(|entries| Some(Event::Journals(entries))),
    }
}

fn failed(error: &ChangeError) -> Event {
    Event::failed(&error.to_string(), error.undo_failed())
}
