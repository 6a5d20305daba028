//! Processes that outlive their parent or are stopped for a while, and properties of this process: its user
//! and its umask.
//!
//! In: a command. Out: the same command with the preparation attached; it never starts it.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::procfs;
use crate::root::Root;
use crate::spawn;

/// Makes the command start as a process that nothing takes along which ends its parent, from its first moment
/// on: it is in a session of its own (the hang-up of a terminal, Ctrl-C), nobody's child (schedulers that
/// kill a tree), in none of its parent's control groups (schedulers and service managers that kill a group;
/// where it may leave them, which takes root), and does not end at SIGTERM. It inherits no descriptor but its
/// three streams: a lock or a pipe of the parent is not held by it.
///
/// The child that `spawn` gives has ended when it returns, or is about to: wait for it. Its streams are those
/// of the command.
pub fn outlive(command: &mut Command) {
    let outside: Vec<CString> = roots_of_control_groups(&Root::live())
        .iter()
        .filter_map(|folder| CString::new(folder.join("cgroup.procs").as_os_str().as_bytes()).ok())
        .collect();
    // SAFETY: between fork and exec only system calls are made that are safe there; memory was allocated
    // before.
    unsafe {
        command.pre_exec(move || {
            if libc::setsid() < 0 {
                return Err(io::Error::last_os_error());
            }
            match libc::fork() {
                -1 => return Err(io::Error::last_os_error()),
                0 => {}
                _ => libc::_exit(0),
            }
            libc::signal(libc::SIGTERM, libc::SIG_IGN);
            spawn::mark_close_on_exec();
            for file in &outside {
                // Where that is forbidden it stays where it is.
                let file = libc::open(file.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
                if file >= 0 {
                    // "0" is whoever writes.
                    libc::write(file, c"0".as_ptr().cast(), 1);
                    libc::close(file);
                }
            }
            Ok(())
        });
    }
}

/// Stops a process, or lets a stopped one go on.
pub fn pause(process: u32, paused: bool) -> io::Result<()> {
    let number = libc::pid_t::try_from(process).ok().filter(|number| *number > 1);
    let number = number.ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))?;
    let signal = if paused { libc::SIGSTOP } else { libc::SIGCONT };
    // SAFETY: a plain system call; the number is that of one process, never of a group.
    if unsafe { libc::kill(number, signal) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Number of the user whose rights this process has.
pub fn effective_user() -> u32 {
    // SAFETY: a plain system call without arguments.
    unsafe { libc::geteuid() }
}

/// Sets the mask of modes of this process and of what it starts; files that are made lack these bits.
pub fn set_umask(mask: u32) {
    // SAFETY: a plain system call that takes a number and cannot fail.
    unsafe { libc::umask(mask) };
}

/// The uppermost control group that can be seen of each hierarchy.
fn roots_of_control_groups(root: &Root) -> Vec<PathBuf> {
    let mounts = procfs::mounts(&root.read("/proc/self/mountinfo").unwrap_or_default());
    let is_hierarchy = |kind: &str| matches!(kind, "cgroup" | "cgroup2");
    mounts.iter().filter(|m| is_hierarchy(&m.kind)).map(|m| Path::new(&m.point).to_owned()).collect()
}
