//! How far a synchronisation or comparison is, and how long it still takes.
//!
//! The kernel's own remaining time starts up to six times too long, because it counts from the first moment,
//! and its percentage is rounded up to steps of 4 MiB. Here it is what is left over what went in the last
//! seconds, and there is no estimate before there is data for one.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::Serialize;

/// A rate is taken over so long, s: long enough for the steps in which the kernel's controller works, short
/// enough to follow it.
const WINDOW_S: f64 = 15.0;
/// Before that there is no remaining time, s.
const SPAN_MIN_S: f64 = 2.0;
/// Without any block for so long it stands still, s.
const STUCK_S: f64 = 10.0;

/// What is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct SyncProgress {
    /// Share that is done, 0 to 1.
    pub share: f64,
    /// What is left, KiB.
    pub left_kib: u64,
    /// Rate, KiB/s; not before it means something.
    pub kib_per_s: Option<f64>,
    /// Remaining time, s; not before it means something, and not while nothing moves.
    pub left_s: Option<f64>,
    /// It has stood still for so long, s.
    pub stuck_s: Option<f64>,
}

/// Follows a synchronisation.
#[derive(Debug, Clone)]
pub struct SyncMeter {
    total_kib: u64,
    samples: VecDeque<(f64, u64)>,
    moved_s: f64,
}

impl SyncMeter {
    /// Begins with what there is to do.
    #[must_use]
    pub fn new(total_kib: u64) -> Self {
        Self { total_kib, samples: VecDeque::new(), moved_s: 0.0 }
    }

    /// What is left at a time, s.
    pub fn add(&mut self, at_s: f64, left_kib: u64) {
        // More than before: it began again, or was written to meanwhile.
        if self.samples.back().is_some_and(|(_, before)| left_kib > *before) {
            self.samples.clear();
        }
        self.total_kib = self.total_kib.max(left_kib);
        if self.samples.back().is_none_or(|(_, before)| left_kib < *before) {
            self.moved_s = at_s;
        }
        self.samples.push_back((at_s, left_kib));
        while self.samples.len() > 2 && at_s - self.samples[1].0 >= WINDOW_S {
            self.samples.pop_front();
        }
    }

    /// What is known now; `None` before the first sample.
    #[must_use]
    pub fn now(&self) -> Option<SyncProgress> {
        let (&(begun_s, begun_kib), &(at_s, left_kib)) = (self.samples.front()?, self.samples.back()?);
        let share = if self.total_kib == 0 { 1.0 } else { 1.0 - left_kib as f64 / self.total_kib as f64 };
        let span = at_s - begun_s;
        let rate = (begun_kib - left_kib) as f64 / span;
        let kib_per_s = (span >= SPAN_MIN_S && rate > 0.0).then_some(rate);
        let idle = at_s - self.moved_s;
        let stuck_s = (left_kib > 0 && idle >= STUCK_S).then_some(idle);
        let left_s = kib_per_s.filter(|_| stuck_s.is_none()).map(|rate| left_kib as f64 / rate);
        Some(SyncProgress { share, left_kib, kib_per_s, left_s, stuck_s })
    }
}
