//! Child processes that start in another network namespace, without inherited descriptors, die with their
//! parent, or take signals as a shell would.
//!
//! In: a command. Out: the same command with the preparation attached. It never starts it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::thread::JoinHandle;
use std::time::Duration;

/// Makes the command start inside the network namespace (which must stay open until it was spawned).
pub fn in_namespace(command: &mut Command, namespace: &File) {
    let descriptor = namespace.as_raw_fd();
    // SAFETY: between fork and exec only the async-signal-safe system call setns is made.
    unsafe {
        command.pre_exec(move || {
            if libc::setns(descriptor, libc::CLONE_NEWNET) < 0 {
                Err(io::Error::last_os_error())
            } else {
                Ok(())
            }
        });
    }
}

/// First descriptor after the three standard streams.
const FIRST_OTHER: libc::c_uint = 3;
/// Descriptors that are marked one by one where the kernel has no `close_range`: the highest default hard
/// limit.
const MARKED_MAX: libc::rlim_t = 1 << 20;

/// Makes the command start with its three standard streams alone: a lock or a pipe of the caller's own parent
/// on descriptor 3 or above, which is not marked close-on-exec, is not held for as long as the command runs.
///
/// Descriptors are marked, not closed: what `spawn` and other preparations of the command use until `exec`
/// still works.
pub fn without_inherited_descriptors(command: &mut Command) {
    // SAFETY: between fork and exec only async-signal-safe system calls are made.
    unsafe {
        command.pre_exec(|| {
            mark_close_on_exec();
            Ok(())
        });
    }
}

/// Marks all descriptors from [`FIRST_OTHER`] on. Safe between fork and exec: it allocates nothing.
pub(crate) fn mark_close_on_exec() {
    // SAFETY: plain system calls on numbers; a number without a descriptor behind it is refused by the
    // kernel.
    unsafe {
        let range = libc::CLOSE_RANGE_CLOEXEC as libc::c_uint;
        // By number: older C libraries have no function for it. The flag came with Linux 5.11.
        if libc::syscall(libc::SYS_close_range, FIRST_OTHER, libc::c_uint::MAX, range) == 0 {
            return;
        }
        let mut limit = libc::rlimit { rlim_cur: MARKED_MAX, rlim_max: MARKED_MAX };
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        for descriptor in FIRST_OTHER..limit.rlim_cur.min(MARKED_MAX) as libc::c_uint {
            libc::fcntl(descriptor as libc::c_int, libc::F_SETFD, libc::FD_CLOEXEC);
        }
    }
}

/// Makes the command start with no signal blocked and be sent `SIGTERM` when the thread that spawns it ends.
pub fn dies_with_parent(command: &mut Command) {
    tied(command, libc::SIGTERM);
}

/// The same with `SIGKILL`, for programs that do not end at a polite word.
pub fn killed_with_parent(command: &mut Command) {
    tied(command, libc::SIGKILL);
}

fn tied(command: &mut Command, signal: libc::c_int) {
    let parent = std::process::id();
    // SAFETY: between fork and exec only async-signal-safe calls are made (sigemptyset writes to its argument
    // only).
    unsafe {
        command.pre_exec(move || {
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
            if libc::prctl(libc::PR_SET_PDEATHSIG, signal as libc::c_ulong, 0, 0, 0) < 0 {
                return Err(io::Error::last_os_error());
            }
            // The parent may have died before the line above.
            if libc::getppid() as u32 != parent {
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
            Ok(())
        });
    }
}

/// Makes the command end by `SIGXCPU` when it has used so many seconds of CPU, and by `SIGKILL` one later.
pub fn limited_cpu(command: &mut Command, seconds: u32) {
    let limit = libc::rlimit {
        rlim_cur: libc::rlim_t::from(seconds),
        rlim_max: libc::rlim_t::from(seconds).saturating_add(1),
    };
    // SAFETY: between fork and exec one system call on a copy of plain numbers is made.
    unsafe {
        command.pre_exec(move || {
            if libc::setrlimit(libc::RLIMIT_CPU, &raw const limit) < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(())
        });
    }
}

/// CPU time (user and system) of this process and of the children that it waited for.
pub fn cpu_time() -> Duration {
    let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1000);
    [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN].into_iter().fold(Duration::ZERO, |sum, who| {
        // SAFETY: an all-zero rusage is a valid value of that plain C struct, and the pointer is valid for
        // the call.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        unsafe { libc::getrusage(who, &raw mut usage) };
        sum + time(usage.ru_utime) + time(usage.ru_stime)
    })
}

/// Files of [`keep_until_exec`] that are on their way to a child.
#[derive(Debug)]
pub struct HandOver(JoinHandle<()>);

impl HandOver {
    /// Waits until no file is held here any more. The command has to be dropped before.
    pub fn finish(self) {
        // It only reads, closes and writes.
        let _ = self.0.join();
    }
}

/// Keeps files open until a command executes its program and not longer. The files here are closed while the
/// child waits, so that the child has the last descriptors; the kernel closes them in `execve` (`O_CLOEXEC`).
/// When this process is killed before that, the child ends without executing the program.
///
/// # Errors
/// The kernel has no pipe or no thread left.
pub fn keep_until_exec(command: &mut Command, files: Vec<File>) -> io::Result<HandOver> {
    let (mut forked, forked_end) = io::pipe()?;
    let (closed, mut closed_end) = io::pipe()?;
    let other_end = closed_end.as_raw_fd();
    let thread = std::thread::Builder::new().name("hand-over".to_owned()).spawn(move || {
        // End of file: the command was dropped and never started.
        let _ = forked.read(&mut [0]);
        drop(files);
        let _ = closed_end.write_all(&[1]);
    })?;
    // SAFETY: between fork and exec only the async-signal-safe calls write, close and read are made.
    // `other_end` is open in the child: its owner closes it only after the first byte was written. Closing it
    // here makes the end of the parent an end of file.
    unsafe {
        command.pre_exec(move || {
            let mut byte = [1_u8];
            if libc::write(forked_end.as_raw_fd(), byte.as_ptr().cast(), 1) != 1 {
                return Err(io::Error::last_os_error());
            }
            libc::close(other_end);
            loop {
                match libc::read(closed.as_raw_fd(), byte.as_mut_ptr().cast(), 1) {
                    1 => return Ok(()),
                    0 => return Err(io::Error::from_raw_os_error(libc::EPIPE)),
                    _ => {
                        let error = io::Error::last_os_error();
                        if error.kind() != io::ErrorKind::Interrupted {
                            return Err(error);
                        }
                    }
                }
            }
        });
    }
    Ok(HandOver(thread))
}

/// Sends `SIGTERM` (or `SIGKILL` when `hard`) to a child that was not waited for yet.
pub fn terminate(child: &std::process::Child, hard: bool) -> io::Result<()> {
    let signal = if hard { libc::SIGKILL } else { libc::SIGTERM };
    // SAFETY: a plain system call; the child was not reaped, so that its number cannot have been given to
    // another.
    if unsafe { libc::kill(child.id() as libc::pid_t, signal) } < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Kills the process group that a child leads (`process_group(0)`), the child as well. It was not waited for
/// yet.
pub fn kill_group(child: &std::process::Child) -> io::Result<()> {
    let group = libc::pid_t::try_from(child.id()).ok().filter(|number| *number > 1);
    let group = group.ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))?;
    // SAFETY: a plain system call; the child was not reaped, so that its number cannot have been given to
    // another, and neither can that of its group.
    if unsafe { libc::kill(-group, libc::SIGKILL) } < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Whether a child has ended, and then how, and the CPU time (user and system) of all its threads and of the
/// children that it waited for. Once it gave an answer the child is reaped and must not be waited for again.
pub fn try_wait_cost(child: &std::process::Child) -> io::Result<Option<(ExitStatus, Duration)>> {
    let mut status = 0;
    // SAFETY: an all-zero rusage is a valid value of that plain C struct.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are valid for the call.
    let reaped =
        unsafe { libc::wait4(child.id() as libc::pid_t, &raw mut status, libc::WNOHANG, &raw mut usage) };
    match reaped {
        0 => Ok(None),
        -1 => Err(io::Error::last_os_error()),
        _ => {
            let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1000);
            Ok(Some((ExitStatus::from_raw(status), time(usage.ru_utime) + time(usage.ru_stime))))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;
    use std::process::Stdio;

    use super::*;

    /// Marks a descriptor as one that children inherit.
    fn inherit(descriptor: i32) {
        // SAFETY: a plain system call on a descriptor that the caller holds open.
        assert_eq!(unsafe { libc::fcntl(descriptor, libc::F_SETFD, 0) }, 0);
    }

    #[test]
    fn a_child_does_not_hold_what_its_parent_inherited() {
        for prepare in [without_inherited_descriptors as fn(&mut Command), crate::process::outlive] {
            let (mut reader, writer) = std::io::pipe().unwrap();
            inherit(writer.as_raw_fd());
            let mut command = Command::new("cat");
            command.stdin(Stdio::piped()).stdout(Stdio::null());
            prepare(&mut command);
            let mut child = command.spawn().unwrap();
            let stdin = child.stdin.take().unwrap();
            drop(writer);
            // The pipe ends only when the last descriptor of its other end is closed; `cat` runs until its
            // input ends.
            let mut rest = Vec::new();
            assert_eq!(reader.read_to_end(&mut rest).unwrap(), 0);
            drop(stdin);
            child.wait().unwrap();
        }
    }

    #[test]
    fn a_child_that_uses_its_cpu_time_ends() {
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do :; done"]);
        limited_cpu(&mut command, 1);
        let status = command.status().unwrap();
        assert_eq!(status.signal(), Some(libc::SIGXCPU));
        assert!(cpu_time() >= Duration::from_millis(900));
    }

    fn holders(inode: u64) -> usize {
        let entries = std::fs::read_dir("/proc/self/fd").unwrap();
        entries
            .filter(|e| std::fs::metadata(e.as_ref().unwrap().path()).is_ok_and(|m| m.ino() == inode))
            .count()
    }

    #[test]
    fn files_are_kept_until_the_program_is_executed_and_are_not_its_own() {
        let file = tempfile::tempfile().unwrap();
        let inode = file.metadata().unwrap().ino();
        let mut command = Command::new("stat");
        // The program lists what it has open itself.
        command.args(["-L", "-c", "%i", "/proc/self/fd/0", "/proc/self/fd/1", "/proc/self/fd/2"]);
        command
            .args((3..64).map(|n| format!("/proc/self/fd/{n}")))
            .stderr(Stdio::null())
            .stdin(Stdio::null());
        let over = keep_until_exec(&mut command, vec![file]).unwrap();
        assert_eq!(holders(inode), 1, "held until it is started");
        let child = command.stdout(Stdio::piped()).spawn().unwrap();
        drop(command);
        over.finish();
        assert_eq!(holders(inode), 0);
        let printed = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
        assert!(!printed.is_empty() && printed.lines().all(|line| line != inode.to_string()), "{printed}");
    }

    #[test]
    fn files_are_closed_when_the_program_is_not_started() {
        let file = tempfile::tempfile().unwrap();
        let inode = file.metadata().unwrap().ino();
        let mut command = Command::new("/nonexistent/program");
        let over = keep_until_exec(&mut command, vec![file]).unwrap();
        assert!(command.spawn().is_err());
        drop(command);
        over.finish();
        assert_eq!(holders(inode), 0);
        // Not even tried.
        let mut command = Command::new("true");
        let over = keep_until_exec(&mut command, vec![tempfile::tempfile().unwrap()]).unwrap();
        drop(command);
        over.finish();
    }
}
