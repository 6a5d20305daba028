//! Processes that outlive the session of their parent.
//!
//! In: a command, or this process. Out: the same command with the preparation attached; it never starts it.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Makes the command start in a session of its own: neither a hang-up nor Ctrl-C of the parent's terminal reaches it, not
/// even in its first moment.
pub fn own_session(command: &mut Command) {
    // SAFETY: between fork and exec only the async-signal-safe system call setsid is made.
    unsafe {
        command.pre_exec(|| if libc::setsid() < 0 { Err(io::Error::last_os_error()) } else { Ok(()) });
    }
}

/// A polite request to end (SIGTERM) does not end this process any more, nor the programs that it starts.
pub fn ignore_termination() {
    // SAFETY: setting a signal to be ignored touches no memory of this program.
    unsafe {
        libc::signal(libc::SIGTERM, libc::SIG_IGN);
    }
}
