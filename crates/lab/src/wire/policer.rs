//! A policer: drops traffic above its rate at once. A shaper would queue it.
//!
//! In: packets with the time they came. Out: how many of them pass. It never reads a clock.

/// What may come at once after silence: about 2 ms at the rates of the labs, as switches have it by default.
const BURST_BYTES: f64 = 32_000.0;

/// The bucket of tokens.
#[derive(Debug)]
pub struct Policer {
    tokens: f64,
    at_ns: u64,
}

impl Default for Policer {
    fn default() -> Self {
        Self { tokens: BURST_BYTES, at_ns: 0 }
    }
}

impl Policer {
    /// How many of `count` packets of `bytes` each pass at this rate.
    pub fn pass(&mut self, now_ns: u64, rate_bps: u64, bytes: usize, count: usize) -> usize {
        let earned = now_ns.saturating_sub(self.at_ns) as f64 * rate_bps as f64 / 8e9;
        self.at_ns = self.at_ns.max(now_ns);
        self.tokens = (self.tokens + earned).min(BURST_BYTES);
        let passing = count.min((self.tokens / bytes.max(1) as f64) as usize);
        self.tokens -= (passing * bytes) as f64;
        passing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_kept_and_the_burst_passes() {
        let mut policer = Policer::default();
        assert_eq!(policer.pass(0, 8_000_000, 1000, 100), 32, "the burst");
        assert_eq!(policer.pass(0, 8_000_000, 1000, 100), 0);
        let second: usize = (1..=1000).map(|ms| policer.pass(ms * 1_000_000, 8_000_000, 1000, 5)).sum();
        assert_eq!(second, 1000, "8 Mbit/s are 1000 packets of 1000 bytes a second");
    }
}
