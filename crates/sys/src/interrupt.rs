//! Signals that ask a program to stop, as a descriptor to wait on.
//!
//! In: nothing. Out: a descriptor that becomes readable on `SIGINT`, `SIGTERM` or `SIGHUP`. It never ends the
//! program.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd};

/// The blocked stop signals of this process. Make it before any thread is started: threads inherit the mask.
#[derive(Debug)]
pub struct Interrupt {
    file: File,
}

impl Interrupt {
    /// Blocks the signals and opens the descriptor.
    pub fn new() -> io::Result<Self> {
        // SAFETY: the set is initialised by sigemptyset before any use; all pointers outlive the calls; the
        // descriptor is checked before it is owned.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
                libc::sigaddset(&raw mut set, signal);
            }
            if libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) != 0 {
                return Err(io::Error::last_os_error());
            }
            let descriptor = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if descriptor < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Self { file: File::from_raw_fd(descriptor) })
        }
    }

    /// Whether a stop signal came since the last call.
    pub fn taken(&self) -> bool {
        let mut info = [0; std::mem::size_of::<libc::signalfd_siginfo>()];
        matches!((&self.file).read(&mut info), Ok(n) if n > 0)
    }
}

impl AsFd for Interrupt {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
