//! The guardian: a process of its own beside the node that undoes one trial when the node cannot.
//!
//! In: the journal of the trial, the clock, and a pipe that ends when the node does. Out: old values, a closed journal, the
//! end of the process. It never takes part in a trial whose node is alive and whose deadline lies ahead. It was started so that nothing
//! takes it along which ends the node (`linerate_sys::process::outlive`).

use std::io::Read;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use super::host::{Host, RealHost};
use super::journal;
use super::undo::take_back;
use linerate_sys::root::Root;

/// How often the journal is read again.
const LOOK_MS: u64 = 1_000;
/// A node that holds the lock behind the deadline for this long is stuck; the old values go first then.
const PATIENCE_S: u64 = 5;
/// Failed tries before the guardian leaves it to the next node.
const TRIES_MAX: u32 = 30;

/// What the guardian does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Look again after this many milliseconds, or when the node ends.
    Wait(u64),
    /// Nothing is left to guard.
    End,
}

/// Looks at the journal once and does what is due.
pub(crate) fn look<H: Host>(host: &H, path: &Path, node_gone: bool, tries: &mut u32) -> Next {
    let due_in = || match journal::read(host, "", path) {
        Ok(Some(journal)) if journal.state.is_armed() => {
            let left_ms = journal.deadline_ms.saturating_sub(host.running_ms());
            Some(if node_gone { 0 } else { left_ms })
        }
        // Closed, kept or removed with its folder; one that cannot be read says nothing about what to restore.
        _ => None,
    };
    match due_in() {
        None => return Next::End,
        Some(0) => {}
        Some(left_ms) => return Next::Wait(left_ms.min(LOOK_MS)),
    }
    let lock_file = journal::lock_file(path.parent().unwrap_or(path));
    let _lock = host.lock(&lock_file, Duration::from_secs(PATIENCE_S));
    match due_in() {
        None => return Next::End,
        Some(0) => {}
        Some(left_ms) => return Next::Wait(left_ms.min(LOOK_MS)),
    }
    let why = if node_gone { "the node disappeared" } else { "nobody confirmed it in time" };
    let Ok(Some(journal)) = journal::read(host, "", path) else { return Next::End };
    if take_back(host, path, &journal, why).is_ok() {
        return Next::End;
    }
    *tries += 1;
    if *tries >= TRIES_MAX { Next::End } else { Next::Wait(LOOK_MS) }
}

/// Guards until there is nothing left to guard. Stdin is the pipe from the node, stdout tells it by its end that nobody guards any more.
pub(crate) fn run(path: &Path) {
    let host = RealHost::new(Root::live());
    let (node_alive, node_gone) = mpsc::channel::<()>();
    std::thread::spawn(move || {
        let mut byte = [0];
        // The node never writes; whatever ends the read means that it is gone.
        while matches!(std::io::stdin().read(&mut byte), Ok(1)) {}
        drop(node_alive);
    });
    let (mut gone, mut tries) = (false, 0);
    while let Next::Wait(wait_ms) = look(&host, path, gone, &mut tries) {
        let wait = Duration::from_millis(wait_ms);
        if gone {
            std::thread::sleep(wait);
        } else {
            gone = node_gone.recv_timeout(wait) == Err(RecvTimeoutError::Disconnected);
        }
    }
}
