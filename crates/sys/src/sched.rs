//! Precise timing: real-time priority, timer slack, the monotonic clock, and waiting for a descriptor or a
//! deadline.
//!
//! In: priorities, descriptors, times in nanoseconds. Out: whether the kernel agreed, and what happened
//! first.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Gives the calling thread `SCHED_FIFO` with `priority` (1 to 99), not inherited by children.
///
/// # Errors
/// `PermissionDenied` without `CAP_SYS_NICE` of the first user namespace.
pub fn set_fifo(priority: i32) -> io::Result<()> {
    set(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, priority)
}

/// Gives a thread of any process the normal policy back.
pub fn set_normal(thread: i32) -> io::Result<()> {
    set(thread, libc::SCHED_OTHER, 0)
}

fn set(thread: i32, policy: libc::c_int, priority: i32) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the parameters outlive the call, which only reads them.
    if unsafe { libc::sched_setscheduler(thread, policy, &raw const parameters) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Sets how late the kernel may make the timers of the calling thread, in nanoseconds (50 000 by default).
pub fn set_timer_slack(nanoseconds: u64) -> io::Result<()> {
    // SAFETY: this option takes its arguments by value.
    if unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, nanoseconds as libc::c_ulong, 0, 0, 0) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Nanoseconds of `CLOCK_MONOTONIC`.
pub fn monotonic_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the timespec is valid for writing; this clock always exists on Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Waits until one of the descriptors is readable or the monotonic clock reaches `until_ns`. Returns one flag
/// per descriptor; none is set when the time came first or a signal interrupted the wait.
///
/// The kernel turns the relative time of `ppoll` into a high-resolution timer at once, so that one call
/// replaces the pair of arming an absolute timer and polling it.
pub fn wait_readable<const N: usize>(
    descriptors: [BorrowedFd<'_>; N],
    until_ns: u64,
) -> io::Result<[bool; N]> {
    let mut polled = descriptors.map(asked);
    wait(&mut polled, until_ns)?;
    Ok(polled.map(|p| p.revents != 0))
}

/// The same for any number of descriptors; says only whether one of them is readable.
pub fn wait_any_readable(descriptors: &[BorrowedFd<'_>], until_ns: u64) -> io::Result<bool> {
    let mut polled: Vec<libc::pollfd> = descriptors.iter().map(|d| asked(*d)).collect();
    wait(&mut polled, until_ns)?;
    Ok(polled.iter().any(|p| p.revents != 0))
}

fn asked(descriptor: BorrowedFd<'_>) -> libc::pollfd {
    libc::pollfd { fd: descriptor.as_raw_fd(), events: libc::POLLIN, revents: 0 }
}

fn wait(polled: &mut [libc::pollfd], until_ns: u64) -> io::Result<()> {
    let left = until_ns.saturating_sub(monotonic_ns());
    let timeout = libc::timespec {
        tv_sec: (left / 1_000_000_000) as libc::time_t,
        tv_nsec: (left % 1_000_000_000) as libc::c_long,
    };
    let count = polled.len() as libc::nfds_t;
    // SAFETY: the slice and the timespec outlive the call; the length is that of the slice; no signal mask is
    // given.
    let ready = unsafe { libc::ppoll(polled.as_mut_ptr(), count, &raw const timeout, std::ptr::null()) };
    if ready < 0 {
        let error = io::Error::last_os_error();
        // Interrupted before anything was written into the slice: nothing is readable.
        return if error.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(error) };
    }
    Ok(())
}
