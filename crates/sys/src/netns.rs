//! Network namespaces: create, enter, and mount a matching `/sys` inside.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd as _};
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

/// Makes a new network namespace and returns it; the calling thread stays where it is. The namespace lives as
/// long as the file (or a process in it) does.
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

/// Moves the calling thread into a network namespace and gives it a `/sys` that shows this namespace. Answers
/// with the reason where that `/sys` cannot be had: the thread is then inside, but `/sys` shows the devices
/// of another namespace.
pub fn enter_file_with_sysfs(namespace: &File) -> io::Result<Option<String>> {
    enter_file(namespace)?;
    Ok(mount_fresh_sysfs().err().map(|e| format!("no /sys of this namespace: {e}")))
}

/// `/sys` shows the devices of the namespace in which it was mounted. Mounts a fresh one in a mount namespace
/// of the calling thread's own, with the control groups of the old one, which a fresh one lacks.
fn mount_fresh_sysfs() -> io::Result<()> {
    // SAFETY: only the namespace of the calling thread changes.
    check(unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
    mount(None, c"/", None, libc::MS_REC | libc::MS_PRIVATE)?;
    // Held open by path, or it would be out of reach below the fresh mount.
    let cgroups = open_path(c"/sys/fs/cgroup").ok();
    let flags = libc::MS_NOSUID | libc::MS_NOEXEC | libc::MS_NODEV;
    let fresh = |flags| mount(Some(c"sysfs"), c"/sys", Some(c"sysfs"), flags);
    // Inside a container whose `/sys` is read-only only a read-only one is allowed.
    fresh(flags).or_else(|_| fresh(flags | libc::MS_RDONLY))?;
    if let Some(cgroups) = cgroups {
        let source = CString::new(format!("/proc/thread-self/fd/{}", cgroups.as_raw_fd()))?;
        // Where it is refused the counters of control groups become a gap; the network files matter more.
        let _ = mount(Some(&source), c"/sys/fs/cgroup", None, libc::MS_BIND | libc::MS_REC);
    }
    Ok(())
}

fn open_path(path: &CStr) -> io::Result<File> {
    // SAFETY: `path` ends in zero and outlives the call; the result is checked before it becomes an owned
    // file.
    let fd = unsafe { libc::open(path.as_ptr(), libc::O_PATH | libc::O_CLOEXEC | libc::O_DIRECTORY) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `fd` is fresh and nobody else owns it.
    Ok(unsafe { File::from_raw_fd(fd) })
}

fn mount(source: Option<&CStr>, target: &CStr, kind: Option<&CStr>, flags: libc::c_ulong) -> io::Result<()> {
    let pointer = |text: Option<&CStr>| text.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: all texts end in zero and outlive the call; mount reads nothing else.
    check(unsafe { libc::mount(pointer(source), target.as_ptr(), pointer(kind), flags, std::ptr::null()) })
}
