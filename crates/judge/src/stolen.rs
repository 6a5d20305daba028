//! CPU time that a hypervisor took from this machine (steal) while a run lasted. Such a run measures the
//! neighbours more than the verdict.
//!
//! In: the ticks of all CPUs before and after. Out: a share of all CPU time. It does not know the verdict:
//! whether a run counts must not depend on its result.

use linerate_sys::cpu::CpuTicks;

/// Share of stolen CPU time between two samples, 0 to 1; 0 without ticks.
pub(crate) fn between(before: &[CpuTicks], after: &[CpuTicks]) -> f64 {
    let sum =
        |ticks: &[CpuTicks], of: fn(&CpuTicks) -> u64| ticks.iter().map(of).fold(0, u64::saturating_add);
    let gone = |of: fn(&CpuTicks) -> u64| sum(after, of).saturating_sub(sum(before, of));
    match gone(|t| t.total) {
        0 => 0.0,
        all => gone(|t| t.steal) as f64 / all as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(cpu: u32, total: u64, steal: u64) -> CpuTicks {
        CpuTicks { cpu, total, steal, ..CpuTicks::default() }
    }

    #[test]
    fn the_stolen_share_is_that_of_all_cpus_between_two_samples() {
        let before = [ticks(0, 600, 10), ticks(1, 400, 10)];
        let after = [ticks(0, 650, 12), ticks(1, 450, 18)];
        assert!((between(&before, &after) - 0.1).abs() < 1e-12);
        // The clock of a machine that was moved may go back.
        assert!(between(&after, &before).abs() < 1e-12);
        assert!(between(&[], &[]).abs() < 1e-12);
    }
}
