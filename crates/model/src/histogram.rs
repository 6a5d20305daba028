//! A histogram of durations with a bounded relative error, small enough to travel in a report.
//!
//! What comes in: whole numbers, here nanoseconds. What goes out: counts, percentiles, and the buckets for a
//! drawing. Below 128 every value has its bucket; above, every power of two is cut into 128 equal parts (the
//! log-linear scheme of HdrHistogram), so that a value is off by less than 0.8 %. Minimum, maximum and sum
//! are exact. It never forgets a value and never grows beyond 60 kB.
//!
//! The crate `hdrhistogram` keeps no exact minimum, maximum and sum and has no JSON of its own: both would
//! stay here around it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parts of each power of two, as a power of two.
const PART_BITS: u32 = 7;
const PARTS: u64 = 1 << PART_BITS;
/// The bucket of `u64::MAX` is the last one.
const BUCKETS: usize = ((64 - PART_BITS as usize) << PART_BITS) + PARTS as usize;

/// Counts of values, by size.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Packed", into = "Packed")]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    min: u64,
    max: u64,
    sum: u128,
}

/// What travels: buckets that are not empty, each as the number of empty ones before it and its count.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
struct Packed {
    min: u64,
    max: u64,
    sum: f64,
    buckets: Vec<u64>,
}

fn index_of(value: u64) -> usize {
    if value < PARTS {
        return value as usize;
    }
    let shift = value.ilog2() - PART_BITS;
    ((shift as usize + 1) << PART_BITS) + ((value >> shift) - PARTS) as usize
}

/// Smallest and largest value of a bucket.
fn range_of(index: usize) -> (u64, u64) {
    let (octave, part) = ((index >> PART_BITS) as u32, index as u64 & (PARTS - 1));
    let Some(shift) = octave.checked_sub(1) else { return (part, part) };
    let low = (PARTS + part) << shift;
    (low, low + ((1_u64 << shift) - 1))
}

impl Histogram {
    /// Counts one value.
    pub fn record(&mut self, value: u64) {
        self.record_many(value, 1);
    }

    /// Counts a value several times.
    pub fn record_many(&mut self, value: u64, times: u64) {
        if times == 0 {
            return;
        }
        let index = index_of(value);
        if self.counts.len() <= index {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] = self.counts[index].saturating_add(times);
        self.min = if self.total == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.total = self.total.saturating_add(times);
        self.sum = self.sum.saturating_add(u128::from(value) * u128::from(times));
    }

    /// Adds what another histogram counted.
    pub fn merge(&mut self, other: &Self) {
        if other.total == 0 {
            return;
        }
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine = mine.saturating_add(*theirs);
        }
        self.min = if self.total == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.total = self.total.saturating_add(other.total);
        self.sum = self.sum.saturating_add(other.sum);
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.total
    }

    /// Smallest value, exact; `None` when empty.
    pub fn min(&self) -> Option<u64> {
        (self.total > 0).then_some(self.min)
    }

    /// Largest value, exact.
    pub fn max(&self) -> Option<u64> {
        (self.total > 0).then_some(self.max)
    }

    /// Mean, exact as far as a float is.
    pub fn mean(&self) -> Option<f64> {
        (self.total > 0).then(|| self.sum as f64 / self.total as f64)
    }

    /// The smallest value that at least this share (0 to 1) of all values does not exceed, within 0.8 %.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        if self.total == 0 {
            return None;
        }
        let wanted = ((share.clamp(0.0, 1.0) * self.total as f64).ceil() as u64).clamp(1, self.total);
        let mut below = 0_u64;
        for (index, count) in self.counts.iter().enumerate() {
            below = below.saturating_add(*count);
            if below >= wanted {
                let (low, high) = range_of(index);
                return Some((low + (high - low) / 2).clamp(self.min, self.max));
            }
        }
        Some(self.max)
    }

    /// Buckets that are not empty: smallest and largest value, count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        self.counts.iter().enumerate().filter(|(_, count)| **count > 0).map(|(index, count)| {
            let (low, high) = range_of(index);
            (low, high, *count)
        })
    }
}

impl FromIterator<u64> for Histogram {
    fn from_iter<T: IntoIterator<Item = u64>>(values: T) -> Self {
        let mut histogram = Self::default();
        values.into_iter().for_each(|value| histogram.record(value));
        histogram
    }
}

impl From<Histogram> for Packed {
    fn from(histogram: Histogram) -> Self {
        let mut buckets = Vec::new();
        let mut empty = 0;
        for count in &histogram.counts {
            if *count == 0 {
                empty += 1;
            } else {
                buckets.extend([empty, *count]);
                empty = 0;
            }
        }
        Self { min: histogram.min, max: histogram.max, sum: histogram.sum as f64, buckets }
    }
}

impl TryFrom<Packed> for Histogram {
    type Error = String;

    fn try_from(packed: Packed) -> Result<Self, String> {
        let mut histogram = Self::default();
        let mut next = 0_usize;
        for pair in packed.buckets.chunks(2) {
            let &[empty, count] = pair else { return Err("a histogram with half a bucket".to_owned()) };
            let index = usize::try_from(empty).ok().and_then(|empty| next.checked_add(empty));
            let Some(index) = index.filter(|index| *index < BUCKETS) else {
                return Err(format!("a histogram with more than {BUCKETS} buckets"));
            };
            histogram.counts.resize(index + 1, 0);
            histogram.counts[index] = count;
            histogram.total = histogram.total.saturating_add(count);
            next = index + 1;
        }
        if histogram.total > 0 {
            (histogram.min, histogram.max) = (packed.min, packed.max.max(packed.min));
            histogram.sum = if packed.sum > 0.0 { packed.sum as u128 } else { 0 };
        }
        Ok(histogram)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_value_is_in_the_range_of_its_bucket() {
        for value in [0, 1, 127, 128, 129, 255, 256, 1000, 65_535, 1 << 40, u64::MAX - 1, u64::MAX] {
            let (low, high) = range_of(index_of(value));
            assert!((low..=high).contains(&value), "{value} {low} {high}");
        }
        assert_eq!(index_of(u64::MAX) + 1, BUCKETS);
        let neighbours = (0..BUCKETS - 1).all(|i| range_of(i).1 + 1 == range_of(i + 1).0);
        assert!(neighbours, "the buckets leave no gap");
    }

    #[test]
    fn an_empty_histogram_says_nothing() {
        let empty = Histogram::default();
        assert_eq!((empty.quantile(0.5), empty.min(), empty.max(), empty.mean()), (None, None, None, None));
    }

    #[test]
    fn what_is_no_histogram_is_refused() {
        for wrong in [
            r#"{"min":1,"max":2,"sum":3,"buckets":[1]}"#,
            r#"{"min":1,"max":2,"sum":3,"buckets":[99999999,1]}"#,
            r#"{"min":1,"max":2,"sum":3,"buckets":[18446744073709551615,1]}"#,
        ] {
            assert!(serde_json::from_str::<Histogram>(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn percentiles_are_those_of_the_sorted_values(
            mut values in prop::collection::vec(0_u64..10_000_000_000, 1..400), share in 0.0..=1.0_f64
        ) {
            let histogram: Histogram = values.iter().copied().collect();
            values.sort_unstable();
            let place = ((share * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let (exact, got) = (values[place - 1] as f64, histogram.quantile(share).unwrap() as f64);
            prop_assert!((got - exact).abs() <= exact / 128.0 + 0.5, "{got} for {exact}");
            prop_assert_eq!(histogram.min(), values.first().copied());
            prop_assert_eq!(histogram.max(), values.last().copied());
            prop_assert_eq!(histogram.count(), values.len() as u64);
        }

        #[test]
        fn merging_is_counting_together(
            a in prop::collection::vec(any::<u64>(), 0..100), b in prop::collection::vec(any::<u64>(), 0..100)
        ) {
            let mut merged: Histogram = a.iter().copied().collect();
            merged.merge(&b.iter().copied().collect());
            let together: Histogram = a.into_iter().chain(b).collect();
            prop_assert_eq!(merged, together);
        }

        #[test]
        fn it_survives_the_way(values in prop::collection::vec(0_u64..1 << 40, 0..200)) {
            let histogram: Histogram = values.into_iter().collect();
            let text = serde_json::to_string(&histogram).unwrap();
            prop_assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), histogram);
        }
    }
}
