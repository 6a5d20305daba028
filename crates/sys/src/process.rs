//! Processes that outlive the session of their parent.
//!
//! In: a command. Out: the same command with the preparation attached. It never starts it.

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
