//! The series of a test: what went through in each short interval.
//!
//! What comes in: running totals with the time at which they were read. What goes out: a list of
//! [`Interval`]. It never averages over more than one interval, because a throughput that jumps between two
//! levels must stay visible.

use std::time::{Duration, Instant};

use linerate_model::load::Interval;

/// Usual length of an interval; the promise is 50 ms.
pub const INTERVAL: Duration = Duration::from_millis(20);

/// Intervals that are kept: 10 minutes. A longer test keeps its beginning.
const INTERVALS_MAX: usize = 30_000;

/// Running totals of all streams, and the state of the first one.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Totals {
    /// Bytes through.
    pub bytes: u64,
    /// Segments retransmitted.
    pub retransmits: u64,
    /// Smoothed RTT of the first stream, microseconds.
    pub rtt_us: f64,
    /// Congestion window of the first stream, segments.
    pub cwnd: u32,
    /// Delivery rate of the first stream, bit/s.
    pub delivery_bps: f64,
}

/// A series that grows.
pub(crate) struct Series {
    start: Instant,
    /// What comes later is the rest of the queues and not part of the series.
    end: Instant,
    last: Instant,
    totals: Totals,
    points: Vec<Interval>,
}

impl Series {
    /// Starts at `start` with these totals; the interval in which `duration` is over is the last one.
    pub(crate) fn new(start: Instant, duration: Duration, totals: Totals) -> Self {
        Self { start, end: start + duration, last: start, totals, points: Vec::new() }
    }

    /// Whether the time of the series is not over.
    pub(crate) fn is_open(&self) -> bool {
        self.last < self.end
    }

    /// Ends an interval at `now`.
    pub(crate) fn push(&mut self, now: Instant, totals: Totals) {
        let seconds = now.saturating_duration_since(self.last).as_secs_f64();
        if !self.is_open() || seconds <= 0.0 || self.points.len() >= INTERVALS_MAX {
            return;
        }
        let bytes = totals.bytes.saturating_sub(self.totals.bytes);
        self.points.push(Interval {
            at_ms: now.saturating_duration_since(self.start).as_secs_f64() * 1e3,
            throughput_bps: bytes as f64 * 8.0 / seconds,
            rtt_us: totals.rtt_us,
            retransmits: totals.retransmits.saturating_sub(self.totals.retransmits),
            cwnd: totals.cwnd,
            delivery_bps: totals.delivery_bps,
        });
        self.last = now;
        self.totals = totals;
    }

    /// The series.
    pub(crate) fn finish(self) -> Vec<Interval> {
        self.points
    }
}

/// A reading that took longer is repeated: its bytes belong to a time that is not known well enough.
const READING_MAX: Duration = Duration::from_millis(1);

/// Reads totals together with the time to which they belong.
pub(crate) fn read_at<T>(mut read: impl FnMut() -> T) -> (Instant, T) {
    for _ in 0..3 {
        let before = Instant::now();
        let value = read();
        let took = before.elapsed();
        if took <= READING_MAX {
            return (before + took / 2, value);
        }
    }
    let before = Instant::now();
    let value = read();
    (before + before.elapsed() / 2, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_hold_differences() {
        let start = Instant::now();
        let mut series = Series::new(
            start,
            Duration::from_millis(25),
            Totals { bytes: 100, retransmits: 1, ..Totals::default() },
        );
        let at = |ms| start + Duration::from_millis(ms);
        series.push(at(10), Totals { bytes: 1350, retransmits: 3, cwnd: 10, ..Totals::default() });
        series.push(at(10), Totals { bytes: 9999, ..Totals::default() });
        series.push(at(30), Totals { bytes: 1350, retransmits: 3, ..Totals::default() });
        series.push(at(50), Totals { bytes: 5000, retransmits: 3, ..Totals::default() });
        let points = series.finish();
        assert_eq!(points.len(), 2);
        assert!((points[0].throughput_bps - 1e6).abs() < 1.0 && points[0].retransmits == 2);
        assert!((points[1].at_ms - 30.0).abs() < 1e-6 && points[1].throughput_bps.abs() < 1e-9);
    }
}
