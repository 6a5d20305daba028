//! Datagrams of a stream: their header, and loss, order and jitter from their numbers. Pure.
//!
//! What comes in: first bytes of datagrams with their time of arrival. What goes out: counts as iperf3 makes
//! them: loss is the highest number minus what came, jitter after RFC 1889 (gain 1/16). Nothing is stored per
//! datagram, so that a duplicate counts as one that came late.

use std::time::Duration;

/// Bytes of the longest header: seconds, microseconds, number of 64 bits.
pub(crate) const HEADER_BYTES: usize = 16;

/// The header of datagram `number` (from 1), sent at `at`.
pub(crate) fn header(at: Duration, number: u64, wide: bool) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..4].copy_from_slice(&(at.as_secs() as u32).to_be_bytes());
    bytes[4..8].copy_from_slice(&at.subsec_micros().to_be_bytes());
    if wide {
        bytes[8..].copy_from_slice(&number.to_be_bytes());
    } else {
        bytes[8..12].copy_from_slice(&(number as u32).to_be_bytes());
    }
    bytes
}

/// Time of sending in seconds and number of a datagram; `None` when it is too short to have them.
fn parse(head: &[u8], wide: bool) -> Option<(f64, u64)> {
    let word = |at: usize| Some(u32::from_be_bytes(head.get(at..at + 4)?.try_into().ok()?));
    let sent_s = f64::from(word(0)?) + f64::from(word(4)?) / 1e6;
    let number =
        if wide { u64::from_be_bytes(head.get(8..16)?.try_into().ok()?) } else { u64::from(word(8)?) };
    Some((sent_s, number))
}

/// What came of a stream.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Tally {
    /// Highest number seen.
    pub(crate) packets: u64,
    /// Numbers below it that did not come.
    pub(crate) lost: i64,
    /// Came after a higher one.
    pub(crate) out_of_order: u64,
    /// Seconds.
    pub(crate) jitter_s: f64,
    transit_s: Option<f64>,
}

impl Tally {
    /// Counts a datagram by its first bytes, which arrived at `at`; `false` when it is none.
    pub(crate) fn note(&mut self, head: &[u8], wide: bool, at: Duration) -> bool {
        let Some((sent_s, number)) = parse(head, wide) else { return false };
        // A number far beyond anything that can have been sent comes from a stranger.
        if number == 0 || number > i64::MAX as u64 {
            return false;
        }
        if number > self.packets {
            self.lost = self.lost.saturating_add((number - self.packets - 1) as i64);
            self.packets = number;
        } else {
            self.out_of_order += 1;
            self.lost = (self.lost - 1).max(0);
        }
        let transit_s = at.as_secs_f64() - sent_s;
        if let Some(before) = self.transit_s {
            self.jitter_s += ((transit_s - before).abs() - self.jitter_s) / 16.0;
        }
        self.transit_s = Some(transit_s);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn note(tally: &mut Tally, number: u64) {
        assert!(tally.note(&header(Duration::ZERO, number, false), false, Duration::ZERO));
    }

    #[test]
    fn loss_is_what_is_missing_and_late_ones_take_it_back() {
        let mut tally = Tally::default();
        for number in [1, 2, 5, 4, 6, 9] {
            note(&mut tally, number);
        }
        assert_eq!((tally.packets, tally.lost, tally.out_of_order), (9, 3, 1));
    }

    #[test]
    fn jitter_is_a_sixteenth_of_the_first_change() {
        let mut tally = Tally::default();
        let sent = [Duration::from_micros(0), Duration::from_micros(100)];
        tally.note(&header(sent[0], 1, true), true, Duration::from_micros(500));
        tally.note(&header(sent[1], 2, true), true, Duration::from_micros(760));
        assert!((tally.jitter_s - 160e-6 / 16.0).abs() < 1e-9, "{}", tally.jitter_s);
    }

    proptest! {
        #[test]
        fn no_datagram_makes_it_panic(heads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..20), wide: bool) {
            let mut tally = Tally::default();
            for head in heads {
                tally.note(&head, wide, Duration::from_secs(1));
                prop_assert!(tally.lost >= 0 && !tally.jitter_s.is_nan());
            }
        }
    }
}
