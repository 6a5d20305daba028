//! The guardian: a process of its own beside the node that undoes one trial when the node cannot.
//!
//! In: the journal of the trial, the clock, and a pipe from the node: a byte asks whether the guardian holds
//! the journal, and the end of the pipe is that of the node. Out: one byte for each question while it holds
//! the journal, old values, a closed journal, the end of the process. It never takes part in a trial whose
//! node is alive and whose deadline lies ahead: such a node undoes by itself when its operator is gone
//! (`end` in `crates/node/src/serve.rs`). It was started so that nothing takes it along which ends the
//! node (`linerate_sys::process::outlive`).

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use super::guardian_link::ANSWER;
use super::host::{ChangingHost, RealHost};
use super::journal;
use super::undo::take_back;
use linerate_sys::root::Root;

/// How often the journal is read again.
const LOOK_MS: u64 = 1_000;
/// A node that holds the lock behind the deadline for this long is stuck; the old values go first then.
const PATIENCE_S: u64 = 5;
/// Failed tries before the guardian leaves it to the next node: of undoing in all, and of reading the journal
/// one after the other.
const TRIES_MAX: u32 = 30;

/// What the guardian does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// The journal was read. Look again after this many milliseconds, or when the node ends.
    Wait(u64),
    /// The journal could not be read, or the undo failed. Try again after this many milliseconds.
    Again(u64),
    /// Nothing is left to guard.
    End,
}

/// What failed so far.
#[derive(Debug, Default)]
pub(crate) struct Tries {
    undo: u32,
    /// One after the other.
    read: u32,
}

/// What a journal says about when to undo.
enum Due {
    /// Closed, kept, or gone with its folder.
    Never,
    /// In this many milliseconds.
    In(u64),
    /// It cannot be read at this moment.
    Unknown,
}

fn again(tries: &mut u32) -> Next {
    *tries += 1;
    if *tries >= TRIES_MAX { Next::End } else { Next::Again(LOOK_MS) }
}

/// Looks at the journal once and does what is due.
pub(crate) fn look<H: ChangingHost>(
    host: &H,
    etc_dir: &Path,
    path: &Path,
    node_gone: bool,
    tries: &mut Tries,
) -> Next {
    let due = || match journal::read(host, "", path) {
        Ok(Some(journal)) if journal.state.is_armed() => {
            let left_ms = journal.deadline_ms.saturating_sub(host.running_ms());
            Due::In(if node_gone { 0 } else { left_ms })
        }
        Ok(_) => Due::Never,
        Err(_) => Due::Unknown,
    };
    match due() {
        Due::Never => return Next::End,
        Due::Unknown => return again(&mut tries.read),
        Due::In(0) => {}
        Due::In(left_ms) => {
            tries.read = 0;
            return Next::Wait(left_ms.min(LOOK_MS));
        }
    }
    let lock_file = journal::lock_file(path.parent().unwrap_or(path));
    let _lock = host.lock(&lock_file, Duration::from_secs(PATIENCE_S));
    match due() {
        Due::Never => return Next::End,
        Due::Unknown => return again(&mut tries.read),
        Due::In(0) => {}
        Due::In(left_ms) => return Next::Wait(left_ms.min(LOOK_MS)),
    }
    let why = if node_gone { "the node disappeared" } else { "nobody confirmed it in time" };
    let journal = match journal::read(host, "", path) {
        Ok(Some(journal)) => journal,
        Ok(None) => return Next::End,
        Err(_) => return again(&mut tries.read),
    };
    tries.read = 0;
    if take_back(host, etc_dir, path, &journal, why).is_ok() {
        return Next::End;
    }
    again(&mut tries.undo)
}

/// Guards until there is nothing left to guard. Stdin is the pipe from the node; the end of stdout shows the
/// node that the guardian has ended.
pub fn run(path: &Path, etc_dir: &Path) {
    let host = RealHost::new(Root::live());
    let questions = questions(io::stdin());
    let (mut gone, mut open, mut tries) = (false, 0, Tries::default());
    loop {
        let (wait_ms, holds) = match look(&host, etc_dir, path, gone, &mut tries) {
            Next::End => return,
            Next::Wait(wait_ms) => (wait_ms, true),
            Next::Again(wait_ms) => (wait_ms, false),
        };
        if holds && open > 0 {
            let answers = vec![ANSWER; open];
            let mut node = io::stdout();
            // A node that is gone reads no answer; the end of its pipe is noticed below.
            let _ = node.write_all(&answers).and_then(|()| node.flush());
            open = 0;
        }
        let wait = Duration::from_millis(wait_ms);
        if gone {
            std::thread::sleep(wait);
            continue;
        }
        match questions.recv_timeout(wait) {
            Ok(()) => open += 1,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => gone = true,
        }
    }
}

/// Questions of the node, until it is gone.
fn questions(mut node: impl Read + Send + 'static) -> Receiver<()> {
    let (to_guardian, questions) = mpsc::channel();
    std::thread::spawn(move || {
        let mut byte = [0];
        loop {
            match node.read(&mut byte) {
                Ok(1..) => {
                    if to_guardian.send(()).is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The end of the pipe, and any failure of it, is that of the node.
                _ => return,
            }
        }
    });
    questions
}
