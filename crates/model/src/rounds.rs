//! When a watch may measure throughput.

use crate::day_hours::DayHours;

/// Rounds of the inventory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThroughputRounds {
    /// When links may be loaded.
    pub windows: Vec<DayHours>,
    /// From the begin of a round to that of the next, seconds.
    pub every_s: u32,
}

impl ThroughputRounds {
    /// Whether links may be loaded at a moment, Unix milliseconds.
    #[must_use]
    pub fn allow(&self, at_ms: u64) -> bool {
        self.windows.iter().any(|window| window.holds(at_ms))
    }
}
