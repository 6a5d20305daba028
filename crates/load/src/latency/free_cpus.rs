//! Whether a host has a CPU free for each end that spins on it. An end that shares its CPU with other work
//! measures the scheduler, not the path.
//!
//! What comes in: two readings of `/proc/stat`. What goes out: how many CPUs were idle in between, and yes or
//! no. A host is sampled once, before its first spinning phase.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use linerate_sys::affinity;
use linerate_sys::cpu::{self, CpuTicks};

use crate::job::{Job, LoadError, SLICE};

/// Long enough for twenty ticks of each CPU.
const SAMPLE: Duration = Duration::from_millis(200);
/// A CPU that other work has for at most a fifth of the time counts as free.
const FREE_SHARE: f64 = 0.8;

/// What was idle, and what is needed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct FreeCpus {
    /// CPUs that were idle, fractions of them summed.
    idle: f64,
    /// CPUs that this program may use.
    usable: usize,
    /// One for each end on this host.
    needed: u32,
}

impl FreeCpus {
    /// Samples the CPUs of this host; `None` where the kernel does not report them.
    pub(super) fn sample(job: &Job<'_>) -> Result<Option<Self>, LoadError> {
        let read = || cpu::cpu_ticks(Path::new("/"));
        let (before, begun) = (read(), Instant::now());
        while begun.elapsed() < SAMPLE {
            job.check("sampling the CPUs")?;
            thread::sleep(SLICE.min(SAMPLE.saturating_sub(begun.elapsed())));
        }
        let usable = affinity::allowed().unwrap_or_default();
        Ok(Self::between(&before, &read(), &usable, if job.spec.same_host { 2 } else { 1 }))
    }

    fn between(before: &[CpuTicks], after: &[CpuTicks], usable: &[u32], needed: u32) -> Option<Self> {
        let mine = |ticks: &[CpuTicks]| -> Vec<CpuTicks> {
            ticks.iter().copied().filter(|cpu| usable.is_empty() || usable.contains(&cpu.cpu)).collect()
        };
        let (before, after) = (mine(before), mine(after));
        let shares = after.iter().filter_map(|now| {
            let then = before.iter().find(|then| then.cpu == now.cpu)?;
            let (total, busy) = (now.total.checked_sub(then.total)?, now.busy.saturating_sub(then.busy));
            (total > 0).then(|| 1.0 - busy as f64 / total as f64)
        });
        let shares: Vec<f64> = shares.collect();
        (!shares.is_empty()).then(|| Self { idle: shares.iter().sum(), usable: shares.len(), needed })
    }

    /// Why an end must not spin here; `None` where it may.
    pub(super) fn refusal(self) -> Option<String> {
        let Self { idle, usable, needed } = self;
        let both = if needed > 1 { format!(", both ends here need {needed}") } else { String::new() };
        (idle < f64::from(needed) * FREE_SHARE)
            .then(|| format!("no free CPU to spin on: {idle:.1} of {usable} idle{both}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(cpu: u32, busy: u64, total: u64) -> CpuTicks {
        CpuTicks { cpu, busy, total, ..CpuTicks::default() }
    }

    #[test]
    fn each_end_needs_an_idle_cpu() {
        let before = [ticks(0, 0, 0), ticks(1, 100, 100), ticks(2, 0, 0)];
        let after = [ticks(0, 1, 20), ticks(1, 118, 120), ticks(2, 0, 20)];
        let of = |usable: &[u32], needed| FreeCpus::between(&before, &after, usable, needed);
        let free = of(&[0, 1], 1).unwrap();
        assert!((free.idle - 1.05).abs() < 1e-9 && free.refusal().is_none(), "{free:?}");
        let both = of(&[0, 1], 2).unwrap().refusal().unwrap();
        assert!(both.contains("of 2 idle, both ends here need 2"), "{both}");
        // CPUs outside the own cpuset do not help.
        assert!(of(&[1], 1).unwrap().refusal().is_some() && of(&[], 2).unwrap().refusal().is_none());
        assert_eq!(FreeCpus::between(&[], &[], &[0], 1), None);
    }
}
