//! What came from one partner: by the numbers of its datagrams, and by the clock when none comes. Pure.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use linerate_model::probe::{PartnerCounts, RTTS_MAX};

/// A number that was left out counts as lost when it has not come after this time: another path may be
/// slower.
const LATE: Duration = Duration::from_millis(500);
/// A partner is silent when nothing came for this time; each of its datagrams is due once a second and once
/// more as an answer.
const SILENT: Duration = Duration::from_secs(3);
/// What is expected of a silent partner: a probe and an answer each second.
const EXPECTED: Duration = Duration::from_millis(500);
/// Numbers that are left out at a time at most: of an hour at the highest pace.
const LEFT_OUT_MAX: u64 = 72_000;

/// One partner.
#[derive(Debug)]
pub(super) struct Counts {
    run: Option<u64>,
    /// The next number that was not seen.
    next: u64,
    arrived: u64,
    lost: u64,
    /// Losses by the clock since the last datagram.
    silent: u64,
    /// Numbers that were left out, and since when.
    missing: VecDeque<(Instant, u64)>,
    seen: Instant,
    rtts_us: Vec<u32>,
}

impl Counts {
    /// Of a partner that is expected from now on.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            run: None,
            next: 0,
            arrived: 0,
            lost: 0,
            silent: 0,
            missing: VecDeque::new(),
            seen: now,
            rtts_us: Vec::new(),
        }
    }

    /// A datagram came.
    pub(super) fn arrived(&mut self, run: u64, sequence: u64, now: Instant) {
        self.arrived += 1;
        self.seen = now;
        // Its number reports better than the clock what was lost: a busy partner had sent less.
        self.lost = self.lost.saturating_sub(std::mem::take(&mut self.silent));
        if self.run != Some(run) {
            // The first, or a new run of its program: what came before it is not known.
            (self.run, self.next) = (Some(run), sequence.saturating_add(1));
            self.missing.clear();
            return;
        }
        if sequence < self.next {
            if let Some(last) = self.missing.back_mut() {
                last.1 -= 1;
                if last.1 == 0 {
                    self.missing.pop_back();
                }
            }
            return;
        }
        // A partner that lies loses no more than an hour of probes at once.
        let left_out = (sequence - self.next).min(LEFT_OUT_MAX);
        if left_out > 0 {
            self.missing.push_back((now, left_out));
        }
        self.next = sequence.saturating_add(1);
    }

    /// A probe was answered after this time.
    pub(super) fn answered(&mut self, rtt_us: u32) {
        if self.rtts_us.len() < RTTS_MAX {
            self.rtts_us.push(rtt_us);
        }
    }

    /// Counts what is late and what does not come. Whether anything is newly lost.
    pub(super) fn pass(&mut self, now: Instant) -> bool {
        let before = self.lost;
        while self.missing.front().is_some_and(|(since, _)| now >= *since + LATE) {
            self.lost = self.lost.saturating_add(self.missing.pop_front().map_or(0, |(_, count)| count));
        }
        if let Some(silence) = now.saturating_duration_since(self.seen).checked_sub(SILENT) {
            let due = silence.div_duration_f64(EXPECTED) as u64;
            self.lost = self.lost.saturating_add(due.saturating_sub(self.silent));
            self.silent = self.silent.max(due);
        }
        self.lost > before
    }

    /// So far; RTTs since the last report.
    pub(super) fn report(&mut self, number: u32) -> PartnerCounts {
        let mut rtts_us = std::mem::take(&mut self.rtts_us);
        rtts_us.sort_unstable();
        PartnerCounts { number, arrived: self.arrived, lost: self.lost, rtts_us }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(counts: &mut Counts, start: Instant, ms: u64, sequences: &[u64]) -> u64 {
        let now = start + Duration::from_millis(ms);
        for sequence in sequences {
            counts.arrived(1, *sequence, now);
        }
        counts.pass(now);
        counts.report(0).lost
    }

    #[test]
    fn a_number_that_is_left_out_is_lost_unless_it_comes_late() {
        let start = Instant::now();
        let mut counts = Counts::new(start);
        assert_eq!(after(&mut counts, start, 0, &[5, 6, 8]), 0);
        assert_eq!(after(&mut counts, start, 100, &[7, 9]), 0);
        assert_eq!(after(&mut counts, start, 700, &[12]), 0);
        assert_eq!(after(&mut counts, start, 1300, &[13]), 2);
        // Twice the same is no loss, and no gain.
        assert_eq!(after(&mut counts, start, 1400, &[13, 13]), 2);
    }

    #[test]
    fn a_silent_partner_loses_two_a_second_until_its_numbers_are_known() {
        let start = Instant::now();
        let mut counts = Counts::new(start);
        assert_eq!(after(&mut counts, start, 0, &[0]), 0);
        assert_eq!(after(&mut counts, start, 2900, &[]), 0);
        assert_eq!(after(&mut counts, start, 5000, &[]), 4);
        assert_eq!(after(&mut counts, start, 8000, &[]), 10);
        assert_eq!(after(&mut counts, start, 8000, &[17]), 0);
        assert_eq!(after(&mut counts, start, 8600, &[18]), 16);
        // It had sent nothing for a while: nothing was lost.
        assert_eq!(after(&mut counts, start, 14_000, &[]), 20);
        assert_eq!(after(&mut counts, start, 14_500, &[19]), 16);
    }

    #[test]
    fn a_program_that_begins_anew_has_lost_nothing() {
        let start = Instant::now();
        let mut counts = Counts::new(start);
        counts.arrived(1, 700, start);
        counts.arrived(2, 0, start);
        counts.arrived(2, 1, start);
        assert!(!counts.pass(start + LATE));
        assert_eq!(counts.report(3), PartnerCounts { number: 3, arrived: 3, lost: 0, rtts_us: Vec::new() });
    }

    #[test]
    fn rtts_are_those_since_the_last_report() {
        let mut counts = Counts::new(Instant::now());
        for rtt_us in [30, 10, 20] {
            counts.answered(rtt_us);
        }
        assert_eq!(counts.report(0).rtts_us, [10, 20, 30]);
        assert_eq!(counts.report(0).rtts_us, [0; 0]);
    }
}
