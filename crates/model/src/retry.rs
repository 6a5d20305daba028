//! When a lost session is opened again: soon, then less and less often, never all hosts at once.

use crate::random::Random;

/// First wait before a lost session is opened again, milliseconds.
const RETRY_MS: u64 = 1_000;
/// Longest wait, milliseconds: 5 minutes.
const RETRY_MS_MAX: u64 = 300_000;
/// A session that lasted this long has ended the trouble, milliseconds: the next wait is the first again.
const RETRY_STABLE_MS: u64 = 60_000;

/// The waits of one host.
#[derive(Debug, Clone)]
pub struct Retry {
    random: Random,
    failed: u32,
}

impl Retry {
    /// For a host; the number makes its waits its own.
    pub fn new(host: u64) -> Self {
        Self::after(host, 0)
    }

    /// The same after so many failures.
    pub fn after(host: u64, failed: u32) -> Self {
        Self { random: Random(host), failed }
    }

    /// How many failed since the last that lasted.
    pub fn failed(&self) -> u32 {
        self.failed
    }

    /// How long to wait now, milliseconds: twice as long after each failure, between half of it and all of
    /// it, so that hosts that were lost together do not return together.
    pub fn wait_ms(&mut self) -> u64 {
        let wait = RETRY_MS.saturating_mul(1 << self.failed.min(16)).min(RETRY_MS_MAX);
        self.failed = self.failed.saturating_add(1);
        wait / 2 + self.random.below(wait as usize / 2 + 1) as u64
    }

    /// The session lasted so long. A short one counts as a failure.
    pub fn lasted(&mut self, ms: u64) {
        if ms >= RETRY_STABLE_MS {
            self.failed = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_five_minutes_and_begin_anew_after_a_stable_session() {
        let mut retry = Retry::new(3);
        let waits: Vec<u64> = (0..12).map(|_| retry.wait_ms()).collect();
        for (at, wait) in waits.iter().enumerate() {
            let most = (RETRY_MS << at).min(RETRY_MS_MAX);
            assert!(*wait <= most && *wait >= most / 2, "{waits:?}");
        }
        retry.lasted(RETRY_STABLE_MS - 1);
        assert!(retry.wait_ms() > RETRY_MS_MAX / 2 - 1);
        retry.lasted(RETRY_STABLE_MS);
        assert!(retry.wait_ms() <= RETRY_MS);
    }

    #[test]
    fn hosts_do_not_return_together() {
        let mut firsts: Vec<u64> = (0..50).map(|host| Retry::new(host).wait_ms()).collect();
        firsts.sort_unstable();
        firsts.dedup();
        assert!(firsts.len() > 30, "{firsts:?}");
    }
}
