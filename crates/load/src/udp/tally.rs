//! What a receiver of datagrams knows of them: which came, in which order, how late. Pure.
//!
//! What comes in: sequence numbers and transit times. What goes out: counts, gaps, jitter, delays. Clocks of
//! the two ends need not agree: only differences between transit times are used.

use linerate_model::histogram::Histogram;
use linerate_model::load::UdpEnd;

use super::plan::SEQUENCE_MAX;

/// Transit times that are kept, 8 bytes each; of longer flows every second, every fourth, … one.
const DELAYS_MAX: usize = 1 << 20;

/// Which datagrams came.
#[derive(Default)]
pub(super) struct Tally {
    seen: Vec<u64>,
    next: u64,
    pub(super) end: UdpEnd,
    pub(super) bytes: u64,
}

impl Tally {
    pub(super) fn note(&mut self, sequence: u64, bytes: usize) {
        if sequence >= SEQUENCE_MAX {
            return;
        }
        let (word, bit) = ((sequence / 64) as usize, 1_u64 << (sequence % 64));
        if self.seen.len() <= word {
            self.seen.resize(word + 1, 0);
        }
        if self.seen[word] & bit != 0 {
            self.end.duplicates += 1;
            return;
        }
        self.seen[word] |= bit;
        self.end.datagrams += 1;
        self.bytes += bytes as u64;
        if sequence < self.next {
            self.end.reordered += 1;
        }
        self.next = self.next.max(sequence + 1);
    }

    /// Numbers that are missing in a row, by length; `sent` is how many there were, where the sender reported
    /// it.
    pub(super) fn gaps(&self, sent: Option<u64>) -> Histogram {
        let end = sent.unwrap_or(self.next).min(SEQUENCE_MAX);
        let mut gaps = Histogram::default();
        let (mut at, mut missing) = (0, 0);
        while at < end {
            let word = self.seen.get((at / 64) as usize).copied().unwrap_or(0);
            if at % 64 == 0 && at + 64 <= end && (word == u64::MAX || word == 0) {
                if word == 0 {
                    missing += 64;
                } else if missing > 0 {
                    gaps.record(missing);
                    missing = 0;
                }
                at += 64;
                continue;
            }
            if word >> (at % 64) & 1 == 0 {
                missing += 1;
            } else if missing > 0 {
                gaps.record(missing);
                missing = 0;
            }
            at += 1;
        }
        if missing > 0 {
            gaps.record(missing);
        }
        gaps
    }
}

/// Transit times: time of arrival on the receiver's clock less time of sending on the sender's, nanoseconds.
#[derive(Default)]
pub(super) struct Delays {
    kept: Vec<i64>,
    /// One of so many is kept, as a power of two.
    thin: u32,
    noted: u64,
    last: i64,
    jitter_ns: f64,
    jitter_most_ns: f64,
}

impl Delays {
    pub(super) fn note(&mut self, transit_ns: i64) {
        if self.noted > 0 {
            // RFC 3550, section 6.4.1 and appendix A.8.
            let step = transit_ns.wrapping_sub(self.last).unsigned_abs() as f64;
            self.jitter_ns += (step - self.jitter_ns) / 16.0;
            self.jitter_most_ns = self.jitter_most_ns.max(self.jitter_ns);
        }
        self.last = transit_ns;
        if self.noted.trailing_zeros() >= self.thin {
            self.kept.push(transit_ns);
            if self.kept.len() >= DELAYS_MAX {
                let mut index = 0_usize;
                self.kept.retain(|_| {
                    index += 1;
                    index % 2 == 1
                });
                self.thin += 1;
            }
        }
        self.noted += 1;
    }

    /// Highest and last value of the smoothed jitter.
    pub(super) fn jitter_us(&self) -> Option<(f64, f64)> {
        (self.noted > 1).then_some((self.jitter_most_ns / 1e3, self.jitter_ns / 1e3))
    }

    /// How much later than the fastest one the datagrams came.
    pub(super) fn changes(&self) -> Option<Histogram> {
        let fastest = *self.kept.iter().min()?;
        Some(self.kept.iter().map(|ns| ns.wrapping_sub(fastest).unsigned_abs()).collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn duplicates_and_reordering_are_counted_apart() {
        let mut tally = Tally::default();
        for sequence in [0, 1, 3, 2, 2, 5, 4, 100, 100, SEQUENCE_MAX] {
            tally.note(sequence, 10);
        }
        let end = UdpEnd { datagrams: 7, reordered: 2, duplicates: 2, kernel_drops: None };
        assert_eq!((tally.end, tally.bytes), (end, 70));
        let gaps: Vec<u64> = tally.gaps(Some(104)).buckets().flat_map(|(l, _, n)| [l, n]).collect();
        assert_eq!(gaps, [3, 1, 94, 1], "6 to 99, and 101 to 103");
    }

    proptest! {
        #[test]
        fn gaps_are_those_of_a_list(lost in prop::collection::btree_set(0_u64..700, 0..120), sent in 700_u64..900) {
            let mut tally = Tally::default();
            (0..sent).filter(|n| !lost.contains(n)).for_each(|n| tally.note(n, 1));
            let mut plain = Histogram::default();
            let mut run = 0;
            for n in 0..=sent {
                if n < sent && lost.contains(&n) {
                    run += 1;
                } else if run > 0 {
                    plain.record(run);
                    run = 0;
                }
            }
            prop_assert_eq!(tally.gaps(Some(sent)), plain);
        }
    }

    #[test]
    fn jitter_is_that_of_the_standard_with_any_clock_offset() {
        for offset in [0, -1_000_000_000_000, i64::MAX - 10_000_000] {
            let mut delays = Delays::default();
            for step in 0..2000 {
                delays.note(offset.wrapping_add(if step % 2 == 0 { 1_000_000 } else { 1_160_000 }));
            }
            let (most, end) = delays.jitter_us().expect("datagrams came");
            assert!((end - 160.0).abs() < 0.1 && (most - end).abs() < 0.1, "{most} {end}");
            let changes = delays.changes().expect("datagrams came");
            assert_eq!((changes.min(), changes.max(), changes.count()), (Some(0), Some(160_000), 2000));
        }
    }

    #[test]
    fn a_long_flow_keeps_a_sample_of_its_delays() {
        let mut delays = Delays::default();
        (0..5_000_000_i64).for_each(|n| delays.note(n % 1000));
        let changes = delays.changes().expect("datagrams came");
        assert!(
            (500_000..=1_100_000).contains(&changes.count()) && changes.max() == Some(992),
            "{changes:?}"
        );
    }
}
