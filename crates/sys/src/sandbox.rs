//! Root rights over new namespaces for an ordinary user.
//!
//! In: a process with one thread. Out: the same process as root of a new user namespace with its own network
//! and mounts. It never changes anything outside.

use std::ffi::CStr;
use std::io;

/// Whether the process has the rights of root over its own network namespace.
pub fn is_root() -> bool {
    // SAFETY: a plain system call without arguments.
    unsafe { libc::geteuid() == 0 }
}

/// Moves the process into a new user, network and mount namespace in which it is root. It must have one
/// thread only. A fresh `/sys` shows the devices of the new network namespace.
///
/// # Errors
/// The kernel or its policy forbids user namespaces, or the process has more than one thread.
pub fn become_root_of_a_new_world() -> io::Result<()> {
    // SAFETY: plain system calls without arguments.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    // SAFETY: unshare has no memory effects; the kernel refuses it when there are more threads.
    if unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNET | libc::CLONE_NEWNS) } < 0 {
        return Err(io::Error::last_os_error());
    }
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("0 {group} 1"))?;
    mount(c"none", c"/", c"", libc::MS_REC | libc::MS_PRIVATE)?;
    // Some sandboxes forbid a fresh sysfs; nothing in the lab depends on it.
    mount(c"sysfs", c"/sys", c"sysfs", libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC).or(Ok(()))
}

fn mount(source: &CStr, target: &CStr, kind: &CStr, flags: libc::c_ulong) -> io::Result<()> {
    // SAFETY: all strings end in a zero byte and outlive the call; no data is passed.
    let result =
        unsafe { libc::mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, std::ptr::null()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
