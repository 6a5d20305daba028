//! CPU affinity of threads, the CPU that a thread runs on, and the limit of open files of this process.
//!
//! In: numbers of CPUs and threads. Out: the kernel's answer. It never decides where a thread should run.

use std::io;
use std::mem::{size_of, zeroed};

/// CPUs that a set of the C library holds.
const CPUS_MAX: u32 = libc::CPU_SETSIZE as u32;

/// CPU on which the calling thread runs now.
pub fn current_cpu() -> Option<u32> {
    // SAFETY: sched_getcpu only returns a number.
    u32::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// CPUs on which the calling thread may run, in order.
pub fn allowed() -> io::Result<Vec<u32>> {
    // SAFETY: all zero bytes are an empty set.
    let mut set: libc::cpu_set_t = unsafe { zeroed() };
    // SAFETY: the kernel writes at most the size of the set into it.
    let result = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the number is below the size of the set.
    Ok((0..CPUS_MAX).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu as usize, &set) }).collect())
}

/// Lets a thread of this process (0: the calling one) run only on these CPUs.
pub fn restrict(thread: i32, cpus: &[u32]) -> io::Result<()> {
    // SAFETY: all zero bytes are an empty set.
    let mut set: libc::cpu_set_t = unsafe { zeroed() };
    for &cpu in cpus {
        if cpu >= CPUS_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("no CPU has the number {cpu}")));
        }
        // SAFETY: the number is below the size of the set.
        unsafe { libc::CPU_SET(cpu as usize, &mut set) };
    }
    // SAFETY: the kernel only reads the set, which outlives the call.
    let result = unsafe { libc::sched_setaffinity(thread, size_of::<libc::cpu_set_t>(), &raw const set) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Lets this process have as many open files as its hard limit allows; returns how many.
pub fn raise_open_files() -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes one rlimit.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } < 0 {
        return Err(io::Error::last_os_error());
    }
    if limit.rlim_cur < limit.rlim_max {
        limit.rlim_cur = limit.rlim_max;
        // SAFETY: the kernel only reads the rlimit.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(limit.rlim_cur)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stays_where_it_was_put() {
        let cpus = allowed().unwrap();
        assert!(!cpus.is_empty());
        std::thread::spawn(move || {
            let last = *cpus.last().unwrap();
            restrict(0, &[last]).unwrap();
            assert_eq!((allowed().unwrap(), current_cpu()), (vec![last], Some(last)));
            assert!(restrict(0, &[CPUS_MAX]).is_err());
            assert!(restrict(0, &[]).is_err());
            restrict(0, &cpus).unwrap();
            assert_eq!(allowed().unwrap(), cpus);
        })
        .join()
        .unwrap();
        assert!(raise_open_files().unwrap() > 0);
    }
}
