//! CPU time of the calling thread and of every CPU of the host.
//!
//! In: the calling thread, `/proc/thread-self/schedstat`, `/proc/stat`. Out: seconds and ticks since some
//! start; only differences mean something. One call requests a CPU sooner. It never interprets a value.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

/// Nice value of a thread that keeps the time for others.
const PREFERRED_NICE: libc::c_int = -10;

/// What the calling thread used so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadTimes {
    /// On a CPU, user and system together.
    pub running: Duration,
    /// Ready to run but waiting for a CPU; zero where the kernel keeps no scheduler statistics.
    pub waiting: Duration,
}

/// Time of the calling thread on a CPU; cheaper than [`thread_times`].
pub fn thread_running() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec into `time`, which outlives the call.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    if result == 0 {
        Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
    } else {
        Duration::ZERO
    }
}

/// What all threads of this process used so far: in user mode, in the kernel.
pub fn process_times() -> (Duration, Duration) {
    // SAFETY: all zero bytes are a valid rusage, and getrusage writes one.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    let duration = |time: libc::timeval| {
        Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0))
            + Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or(0))
    };
    (duration(usage.ru_utime), duration(usage.ru_stime))
}

/// Reads the times of the calling thread.
pub fn thread_times() -> ThreadTimes {
    let schedstat = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    ThreadTimes { running: thread_running(), waiting: parse_waiting(&schedstat) }
}

/// Lets the calling thread have a CPU before others of its process when all of them want one; returns its
/// nice value before.
pub fn prefer_thread() -> io::Result<libc::c_int> {
    // SAFETY: getpriority only returns a number; for a thread that exists it cannot fail.
    let before = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    set_nice(PREFERRED_NICE).map(|()| before)
}

/// Gives the calling thread a nice value.
pub fn set_nice(nice: libc::c_int) -> io::Result<()> {
    // SAFETY: setpriority only changes the nice value of the calling thread (0).
    let result = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The second field of a schedstat line: nanoseconds in the run queue.
fn parse_waiting(schedstat: &str) -> Duration {
    let nanoseconds = schedstat.split_ascii_whitespace().nth(1).and_then(|field| field.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

/// Ticks of one CPU since boot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTicks {
    /// Number of the CPU.
    pub cpu: u32,
    /// Everything but idle and waiting for I/O.
    pub busy: u64,
    /// Busy and idle together.
    pub total: u64,
    /// Part of `busy` in softirq: where frames are received.
    pub softirq: u64,
    /// Part of `busy` that the hypervisor took.
    pub steal: u64,
}

/// Ticks of every CPU that is online; empty where `/proc/stat` below `root` cannot be read.
pub fn cpu_ticks(root: &Path) -> Vec<CpuTicks> {
    parse_stat(&fs::read_to_string(root.join("proc/stat")).unwrap_or_default())
}

/// Identity of the running kernel: equal on everything that shares its CPUs, another after each boot.
pub fn boot_id() -> Option<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned()).filter(|id| !id.is_empty())
}

/// Ticks of several CPUs between two readings, summed over those that are in both.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TicksSince {
    /// Busy, without what the hypervisor took.
    pub busy: u64,
    /// Part of `busy` in softirq.
    pub softirq: u64,
    /// What the hypervisor took.
    pub steal: u64,
    /// All of it, idle time too.
    pub total: u64,
}

/// What all CPUs did between two readings.
pub fn ticks_since(before: &[CpuTicks], after: &[CpuTicks]) -> TicksSince {
    let mut sum = TicksSince::default();
    for now in after {
        let Some(then) = before.iter().find(|then| then.cpu == now.cpu) else { continue };
        let steal = now.steal.saturating_sub(then.steal);
        sum.busy += now.busy.saturating_sub(then.busy).saturating_sub(steal);
        sum.softirq += now.softirq.saturating_sub(then.softirq);
        sum.steal += steal;
        sum.total += now.total.saturating_sub(then.total);
    }
    sum
}

/// Ticks per second of [`cpu_ticks`].
pub fn ticks_per_second() -> u64 {
    // SAFETY: sysconf only returns a number.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    u64::try_from(ticks).ok().filter(|&ticks| ticks > 0).unwrap_or(100)
}

fn parse_stat(text: &str) -> Vec<CpuTicks> {
    text.lines().filter_map(parse_stat_line).collect()
}

/// `cpu0 user nice system idle iowait irq softirq steal guest guest_nice`; guest time is already part of user
/// time.
pub(crate) fn parse_stat_line(line: &str) -> Option<CpuTicks> {
    let mut fields = line.strip_prefix("cpu")?.split_ascii_whitespace();
    let cpu = fields.next()?.parse().ok()?;
    // The line of the sum starts with `cpu ` and has its first number here: it is told apart by the blank.
    if !line.as_bytes().get(3)?.is_ascii_digit() {
        return None;
    }
    let mut ticks = [0_u64; 8];
    for slot in &mut ticks {
        let Some(field) = fields.next() else { break };
        *slot = field.parse().ok()?;
    }
    let total = ticks.iter().fold(0_u64, |sum, &value| sum.saturating_add(value));
    let idle = ticks[3].saturating_add(ticks[4]);
    Some(CpuTicks { cpu, busy: total.saturating_sub(idle), total, softirq: ticks[6], steal: ticks[7] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_lines_of_each_cpu_are_read_and_the_sum_is_left_out() {
        let text =
            "cpu  10 0 10 100 0 0 4 0 0 0\ncpu0 5 0 5 50 1 0 2 3 9 9\ncpu1 5 0 5 50 0 0 2 0\nintr 5 1 2\n";
        let ticks = parse_stat(text);
        assert_eq!(ticks.len(), 2);
        assert_eq!(ticks[0], CpuTicks { cpu: 0, busy: 15, total: 66, softirq: 2, steal: 3 });
        assert_eq!(ticks[1].cpu, 1);
    }

    #[test]
    fn ticks_of_all_cpus_are_summed_and_steal_is_kept_apart() {
        let cpu = |cpu, busy, total, softirq, steal| CpuTicks { cpu, busy, total, softirq, steal };
        let before = [cpu(0, 100, 200, 10, 5), cpu(1, 50, 200, 0, 0)];
        // CPU 2 came online in between.
        let after = [cpu(0, 160, 300, 30, 25), cpu(1, 60, 300, 1, 0), cpu(2, 9, 9, 9, 0)];
        let sum = TicksSince { busy: 50, softirq: 21, steal: 20, total: 200 };
        assert_eq!(ticks_since(&before, &after), sum);
        assert_eq!(ticks_since(&after, &before), TicksSince::default());
        assert!(boot_id().is_none_or(|id| id.len() == 36));
    }

    #[test]
    fn garbage_is_left_out() {
        assert!(parse_stat("cpu\ncpux 1 2\ncpu0 a b\ncpu-1 3\n\u{fffd}").is_empty());
        assert_eq!(parse_waiting(""), Duration::ZERO);
        assert_eq!(parse_waiting("x y z"), Duration::ZERO);
        assert_eq!(parse_waiting("12 34 5"), Duration::from_nanos(34));
    }

    #[test]
    fn work_costs_time() {
        let before = thread_times();
        let mut sum = 0_u64;
        while thread_times().running <= before.running {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert!(thread_times().running > before.running);
        assert!(!cpu_ticks(Path::new("/")).is_empty());
    }
}
