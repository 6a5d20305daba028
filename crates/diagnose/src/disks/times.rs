//! How long single requests took: two readings of the counts by time become percentiles.
//!
//! In: counters `disk_time.*`. Out: percentiles of what ended in between, as near as the ranges of the counts
//! are narrow. What makes no sense (a range that is none, a count that went back) gives nothing.

use std::collections::BTreeMap;

use linerate_model::disk::{DiskTimes, TIMES};
use linerate_model::fact::FactKey;
use linerate_model::histogram::Histogram;

type Counters = BTreeMap<FactKey, i64>;

/// What requests of a direction took between two readings; `None` without any.
pub(super) fn times(before: &Counters, after: &Counters, device: &str, direction: &str) -> Option<DiskTimes> {
    let head = format!("{TIMES}{device}.{direction}.");
    let mut histogram = Histogram::default();
    let mut longest = 0;
    for (key, count) in after.range(head.clone()..).take_while(|(key, _)| key.starts_with(&head)) {
        let (low, high) = range(key.get(head.len()..)?)?;
        // A range without requests has no counter yet.
        let new = count.checked_sub(before.get(key).copied().unwrap_or(0))?;
        histogram.record_many(low + (high - low) / 2, u64::try_from(new).ok()?);
        longest = if new > 0 { longest.max(high) } else { longest };
    }
    let ms = |ns: u64| ns as f64 / 1e6;
    let within = |share| histogram.quantile(share).map(ms);
    Some(DiskTimes {
        requests: histogram.count(),
        p50_ms: within(0.5)?,
        p90_ms: within(0.9)?,
        p99_ms: within(0.99)?,
        max_ms: ms(longest),
    })
}

/// `1048576-1310719`; the range of all that is longer ends with the largest number and stands for its
/// beginning.
fn range(text: &str) -> Option<(u64, u64)> {
    let (low, high) = text.split_once('-')?;
    let (low, high) = (low.parse().ok()?, high.parse().ok()?);
    let high = if high == u64::MAX { low } else { high };
    (low <= high).then_some((low, high))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn counters(values: &[(&str, i64)]) -> Counters {
        values.iter().map(|(key, value)| (format!("disk_time.{key}"), *value)).collect()
    }

    #[test]
    fn only_what_came_in_between_counts() {
        let before = counters(&[("sda.read.1000000-1249999", 50), ("sdaa.read.1-2", 7)]);
        let after = counters(&[
            ("sda.read.1000000-1249999", 110),
            ("sda.read.4000000-4999999", 38),
            ("sda.read.80000000-99999999", 2),
            ("sda.write.80000000-99999999", 5),
            ("sdaa.read.1-2", 900),
        ]);
        let read = times(&before, &after, "sda", "read").unwrap();
        assert_eq!(read.requests, 100);
        let near =
            |got: f64, wanted: f64| assert!((got / wanted - 1.0).abs() < 0.13, "{got} is not {wanted}");
        near(read.p50_ms, 1.12);
        near(read.p90_ms, 4.5);
        near(read.p99_ms, 90.0);
        assert!((read.max_ms - 99.999_999).abs() < 1e-9);
        assert!(read.p50_ms <= read.p90_ms && read.p90_ms <= read.p99_ms && read.p99_ms <= read.max_ms);
        assert_eq!(times(&after, &after, "sda", "read"), None, "nothing came");
        assert_eq!(times(&before, &after, "sda", "flush"), None);
    }

    #[test]
    fn what_makes_no_sense_is_nothing() {
        let none = Counters::new();
        for key in
            ["sda.read.x", "sda.read.9-1", "sda.read.", "sda.read.1-99999999999999999999", "sda.read.-5-7"]
        {
            assert_eq!(times(&none, &counters(&[(key, 1)]), "sda", "read"), None, "{key}");
        }
        let back = times(&counters(&[("sda.read.1-2", 5)]), &counters(&[("sda.read.1-2", 4)]), "sda", "read");
        assert_eq!(back, None);
        let open = counters(&[("sda.read.2000000000-18446744073709551615", 1)]);
        assert!((times(&none, &open, "sda", "read").unwrap().max_ms - 2000.0).abs() < 1e-9);
    }
}
