//! Medians, ranges, and ratios of what was measured in the same round.

/// Middle, smallest and largest of the finite values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    /// Median.
    pub(crate) median: f64,
    /// Smallest.
    pub(crate) min: f64,
    /// Largest.
    pub(crate) max: f64,
}

/// The spread of values; nothing of an empty list.
pub(crate) fn spread(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
    let mut sorted: Vec<f64> = values.into_iter().filter(|v| v.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let (min, max) = (*sorted.first()?, *sorted.last()?);
    let middle = sorted.len() / 2;
    let median = if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    };
    Some(Spread { median, min, max })
}

/// Ratios of values of the same round; rounds in which one of them is missing do not count.
pub(crate) fn paired(ours: &[Option<f64>], theirs: &[Option<f64>]) -> Option<Spread> {
    spread(ours.iter().zip(theirs).filter_map(|(a, b)| Some((*a)? / (*b)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rounds_with_both_values_count() {
        let ours = [Some(2.0), None, Some(9.0), Some(4.0)];
        let theirs = [Some(1.0), Some(1.0), None, Some(4.0)];
        assert_eq!(paired(&ours, &theirs), Some(Spread { median: 1.5, min: 1.0, max: 2.0 }));
        assert_eq!(paired(&[None], &[Some(1.0)]), None);
        assert_eq!(paired(&[Some(1.0)], &[Some(0.0)]), None, "a ratio to nothing says nothing");
    }
}
