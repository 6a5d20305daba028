//! A program that goes on in the background, as `daemon(3)` has it.
//!
//! In: a process of one thread. Out: two of it: the first knows the second, which has a session of its own,
//! the root as its folder and no streams. It closes no other descriptor: what the first opened the second
//! has.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Which of the two processes this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detached {
    /// That which was called; the other has this process id.
    Foreground(u32),
    /// That which goes on.
    Background,
}

/// Goes on as a second process. No thread may have been started yet: only the calling one goes on.
pub fn detach() -> io::Result<Detached> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    // SAFETY: with a single thread a fork leaves no lock behind; the descriptors are owned or the streams.
    unsafe {
        match libc::fork() {
            -1 => return Err(io::Error::last_os_error()),
            0 => {}
            child => return Ok(Detached::Foreground(child.unsigned_abs())),
        }
        if libc::setsid() < 0 || libc::chdir(c"/".as_ptr()) < 0 {
            return Err(io::Error::last_os_error());
        }
        for stream in [libc::STDIN_FILENO, libc::STDOUT_FILENO, libc::STDERR_FILENO] {
            if libc::dup2(null.as_raw_fd(), stream) < 0 {
                return Err(io::Error::last_os_error());
            }
        }
    }
    Ok(Detached::Background)
}
