//! Intervals of a host for the store, in bounded memory over any time.
//!
//! In: one interval after the other. Out: all of them, or every second, fourth, eighth … once there are too
//! many, so that the whole watch is covered. Idle devices are not kept. Pure.

use linerate_model::disk::DiskInterval;

/// Intervals of a host.
#[derive(Debug)]
pub struct Thinned {
    kept: Vec<DiskInterval>,
    /// Devices in all of them.
    rows: usize,
    rows_max: usize,
    /// One of so many is kept.
    stride: usize,
    seen: usize,
}

impl Thinned {
    /// Keeps at most so many devices in all intervals together.
    pub(super) fn new(rows_max: usize) -> Self {
        Self { kept: Vec::new(), rows: 0, rows_max, stride: 1, seen: 0 }
    }

    /// Takes an interval.
    pub(super) fn push(&mut self, interval: &DiskInterval) {
        let wanted = self.seen.is_multiple_of(self.stride);
        self.seen += 1;
        if !wanted {
            return;
        }
        let disks = interval.disks.iter().filter(|disk| !disk.is_idle()).cloned().collect();
        let interval = DiskInterval {
            host: interval.host.clone(),
            disks,
            times_missing: interval.times_missing.clone(),
            ..*interval
        };
        self.rows += rows(&interval);
        self.kept.push(interval);
        while self.rows > self.rows_max && self.kept.len() > 1 {
            let mut number = 0;
            self.kept.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.stride = self.stride.saturating_mul(2);
            self.rows = self.kept.iter().map(rows).sum();
        }
    }

    /// What was kept.
    pub fn intervals(&self) -> &[DiskInterval] {
        &self.kept
    }

    /// One interval of so many was kept.
    pub fn stride(&self) -> usize {
        self.stride
    }
}

/// An interval without devices takes memory too.
fn rows(interval: &DiskInterval) -> usize {
    interval.disks.len().max(1)
}

#[cfg(test)]
mod tests {
    use linerate_model::disk::DiskRates;

    use super::*;

    fn interval(at_ms: u64, busy: usize, idle: usize) -> DiskInterval {
        let disk = |number: usize| DiskRates {
            device: format!("sd{number}"),
            busy: if number < busy { 0.5 } else { 0.0 },
            ..DiskRates::default()
        };
        let disks = (0..busy + idle).map(disk).collect();
        DiskInterval { host: "store".into(), at_ms, seconds: 1.0, disks, times_missing: None }
    }

    #[test]
    fn idle_devices_are_not_kept() {
        let mut thinned = Thinned::new(100);
        thinned.push(&interval(1, 2, 30));
        let devices: Vec<&str> = thinned.intervals()[0].disks.iter().map(|d| d.device.as_str()).collect();
        assert_eq!(devices, ["sd0", "sd1"]);
        assert_eq!(thinned.stride(), 1);
    }

    #[test]
    fn a_long_watch_is_kept_from_begin_to_end_in_bounded_memory() {
        let mut thinned = Thinned::new(100);
        for at_ms in 0..100_000 {
            thinned.push(&interval(at_ms, 4, 0));
        }
        let kept = thinned.intervals();
        assert!(kept.len() <= 25 && kept.len() > 10, "{}", kept.len());
        let stride = thinned.stride() as u64;
        assert!(kept.windows(2).all(|two| two[1].at_ms - two[0].at_ms == stride), "{kept:?}");
        assert_eq!(kept[0].at_ms, 0);
        assert!(kept[kept.len() - 1].at_ms + stride >= 100_000);
        // Intervals without a busy device are bounded too.
        let mut idle = Thinned::new(100);
        (0..1000).for_each(|at_ms| idle.push(&interval(at_ms, 0, 9)));
        assert!(idle.intervals().len() <= 100);
    }
}
