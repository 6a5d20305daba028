//! CPU time that a hypervisor took from this machine (steal) while a run lasted. A run that was held up says more about the neighbours
//! than about the verdict.
//!
//! In: `/proc/stat` before and after. Out: a share of all CPU time. It does not know what was said: whether a run counts must not
//! depend on whether it went well.

/// Ticks of all CPUs since the boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ticks {
    stolen: u64,
    all: u64,
}

/// Fields of the first line that add up to all time: user, nice, system, idle, iowait, irq, softirq, steal (proc(5)). Guests are in user already.
const FIELDS: usize = 8;

impl Ticks {
    /// As they are now; without `/proc/stat` nothing is ever stolen.
    pub(super) fn now() -> Self {
        Self::parse(&std::fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu ")).unwrap_or_default();
        let values: Vec<u64> =
            line.split_whitespace().map_while(|value| value.parse().ok()).take(FIELDS).collect();
        Self {
            stolen: values.get(FIELDS - 1).copied().unwrap_or(0),
            all: values.iter().fold(0, |sum, value| sum.saturating_add(*value)),
        }
    }

    /// Share of the CPU time since `before` that was stolen, 0 to 1.
    pub(super) fn stolen_since(self, before: Self) -> f64 {
        let all = self.all.saturating_sub(before.all);
        if all == 0 { 0.0 } else { self.stolen.saturating_sub(before.stolen) as f64 / all as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stolen_share_is_that_of_all_cpus_between_two_looks() {
        let before = Ticks::parse("cpu  100 0 50 800 10 0 20 20 7 7\ncpu0 1 2 3\n");
        let after = Ticks::parse("cpu  150 0 60 830 10 0 20 30 9 9\n");
        assert_eq!((before.stolen, before.all), (20, 1000));
        assert!((after.stolen_since(before) - 0.1).abs() < 1e-12);
        // The clock of a machine that was moved may go back, and a kernel of long ago counts no steal.
        assert!(before.stolen_since(after).abs() < 1e-12);
        assert_eq!(Ticks::parse("cpu 1 2 3\n"), Ticks { stolen: 0, all: 6 });
        assert_eq!(Ticks::parse("nonsense \u{fffd}"), Ticks { stolen: 0, all: 0 });
    }
}
