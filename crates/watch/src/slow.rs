//! The steps about what is slow, and the median by which it is judged.

use linerate_model::slow::SlowAlarm;

/// What is to be reported.
#[derive(Debug, Clone, PartialEq)]
pub enum SlowStep {
    /// Something is slow.
    Opened(SlowAlarm),
    /// An alarm that was reported is of more than it was reported.
    Widened(SlowAlarm),
    /// It is as fast as usual again.
    Closed(SlowAlarm),
}

/// The median; 0 of none.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(0.0)
}
