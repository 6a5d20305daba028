//! The time that is read, cut into equal intervals. Pure.

/// Intervals at most: enough to see when a level changed, few enough for a thousand hosts.
const INTERVALS_MAX: u64 = 96;
/// Shortest interval, seconds: several scrapes of the usual minute or less.
const STEP_MIN_S: u64 = 300;
/// Fewer intervals show no level.
const INTERVALS_MIN: u64 = 6;

/// A time in intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredRange {
    /// Begin, Unix seconds.
    pub start_s: u64,
    /// Length of an interval, seconds.
    pub step_s: u64,
    /// Intervals.
    pub intervals: usize,
}

impl StoredRange {
    /// From and to, Unix milliseconds. An error names what is wrong, with a hint.
    pub fn new(from_ms: u64, to_ms: u64) -> Result<Self, String> {
        const HINT: &str = "hint: such as --range 24h, --range 2026-11-20T00:00/2026-11-21T00:00";
        if from_ms >= to_ms {
            return Err(format!("the range ends before it begins\n{HINT}"));
        }
        let (from_s, end_s) = (from_ms / 1000, to_ms / 1000);
        let seconds = end_s - from_s;
        let least = INTERVALS_MIN * STEP_MIN_S;
        if seconds < least {
            return Err(format!("a range of {seconds} s is too short: at least {least} s\n{HINT}"));
        }
        // Whole minutes, which are easier to read.
        let step_s = seconds.div_ceil(INTERVALS_MAX).div_ceil(60).saturating_mul(60).max(STEP_MIN_S);
        let intervals = seconds / step_s;
        Ok(Self { start_s: end_s - intervals * step_s, step_s, intervals: intervals as usize })
    }

    /// End, Unix seconds.
    #[must_use]
    pub fn end_s(&self) -> u64 {
        self.start_s + self.step_s * self.intervals as u64
    }

    /// The number of the bound between intervals that a point stands at, from 0 to the number of intervals.
    pub(super) fn bound(&self, at_s: f64) -> Option<usize> {
        let at = (at_s - self.start_s as f64) / self.step_s as f64;
        let bound = at.round();
        let is_there = (at - bound).abs() < 0.01 && bound >= 0.0 && bound <= self.intervals as f64;
        is_there.then_some(bound as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_whole_minutes_and_at_most_96_intervals() {
        let of = |seconds: u64| StoredRange::new(1_795_000_000_000 - seconds * 1000, 1_795_000_000_000);
        let day = of(86_400).unwrap();
        assert_eq!((day.step_s, day.intervals, day.end_s()), (900, 96, 1_795_000_000));
        assert_eq!(of(3600).map(|r| (r.step_s, r.intervals)), Ok((300, 12)));
        let month = of(30 * 86_400).unwrap();
        assert!(month.step_s == 27_000 && month.intervals == 96, "{month:?}");
        assert!(of(600).unwrap_err().contains("600 s is too short"));
        assert!(StoredRange::new(5, 5).is_err() && StoredRange::new(0, u64::MAX).is_ok());
        assert_eq!(day.bound(day.start_s as f64 + 1800.0), Some(2));
        for none in [f64::NAN, f64::INFINITY, -1.0, day.start_s as f64 + 1000.0, 1e300] {
            assert_eq!(day.bound(none), None, "{none}");
        }
    }
}
