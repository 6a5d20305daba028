//! The node's end of a guardian: starts it, and asks whether it holds the journal.
//!
//! In: the path of a journal. Out: whether its guardian runs and has read it. The guardian itself is in
//! [`super::guardian`].

use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

/// What the node writes to ask whether the guardian holds the journal.
const QUESTION: u8 = b'?';
/// The guardian's answer when it does.
pub(super) const ANSWER: u8 = b'!';
/// How long a guardian may take to confirm that it has read its journal.
const HOLD_MS: u64 = 8_000;

/// The pipes to a guardian that was started.
pub(super) struct GuardianLink {
    /// Ends when this process does, whatever the reason: that is how the guardian notices.
    node: ChildStdin,
    /// Ends when the guardian does. One byte for each question that it could answer with yes.
    life: ChildStdout,
}

impl GuardianLink {
    /// Starts the running program itself, also when its file was replaced meanwhile.
    pub(super) fn start(journal: &Path, etc_dir: &Path) -> io::Result<Self> {
        let mut command = Command::new("/proc/self/exe");
        // `linerate` has the node in it, and is it by this name.
        command.arg0("linerate-node");
        command.arg("guard").arg(journal).arg(etc_dir).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        linerate_sys::process::outlive(&mut command);
        let mut child = command.spawn()?;
        // Taken first: waiting closes what is still there.
        let (node, life) = (child.stdin.take(), child.stdout.take());
        child.wait()?;
        let closed = || io::Error::other("it has no pipes");
        Ok(Self { node: node.ok_or_else(closed)?, life: life.ok_or_else(closed)? })
    }

    /// Whether it has not ended.
    pub(super) fn lives(&self) -> io::Result<bool> {
        linerate_sys::sched::wait_any_readable(&[self.life.as_fd()], 0).map(|ended| !ended)
    }

    /// Asks whether it has read the journal and watches over it; `false` when it has ended.
    pub(super) fn holds(&mut self) -> io::Result<bool> {
        match self.node.write_all(&[QUESTION]) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(false),
            other => other?,
        }
        let until_ns = linerate_sys::sched::monotonic_ns() + HOLD_MS * 1_000_000;
        while !linerate_sys::sched::wait_any_readable(&[self.life.as_fd()], until_ns)? {
            if linerate_sys::sched::monotonic_ns() >= until_ns {
                let words =
                    format!("it did not confirm within {} s that it has read the journal", HOLD_MS / 1_000);
                return Err(io::Error::new(io::ErrorKind::TimedOut, words));
            }
        }
        Ok(self.life.read(&mut [0])? == 1)
    }
}
