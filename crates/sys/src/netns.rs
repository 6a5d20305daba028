//! Network namespaces: create, enter, and see the right `/sys` inside.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Moves the calling thread into the network namespace at `path`.
pub fn enter(path: &Path) -> io::Result<()> {
    enter_file(&File::open(path)?)
}

/// Moves the calling thread into an open network namespace.
pub fn enter_file(namespace: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open for the duration of the call; setns has no other memory effects.
    check(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) })
}

/// The network namespace of the calling thread.
pub fn current() -> io::Result<File> {
    File::open("/proc/thread-self/ns/net")
}

/// Makes a new network namespace and returns it; the calling thread stays where it is. The namespace lives as long as
/// the file (or a process in it) does.
pub fn create() -> io::Result<File> {
    std::thread::spawn(|| {
        // SAFETY: unshare changes only the namespaces of this short-lived thread.
        check(unsafe { libc::unshare(libc::CLONE_NEWNET) })?;
        current()
    })
    .join()
    .map_err(|_| io::Error::other("the thread that made the namespace panicked"))?
}

/// Runs `work` on a thread of its own inside the namespace.
pub fn run_in<T: Send>(namespace: &File, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        scope
            .spawn(|| {
                enter_file(namespace)?;
                Ok(work())
            })
            .join()
            .map_err(|_| io::Error::other("the thread inside the namespace panicked"))?
    })
}
