//! A small seeded generator and the bootstrap interval of a ratio of medians.

use linerate_model::random::Random;

use super::median;
use crate::rules::Rules;

/// Numbers for resampling.
#[derive(Debug, Clone)]
pub struct Rng(Random);

impl Rng {
    /// A generator that gives the same numbers for the same seed.
    pub fn new(seed: u64) -> Self {
        Self(Random(seed))
    }

    /// From 0 (included) to 1 (excluded).
    pub fn unit(&mut self) -> f64 {
        self.0.fraction()
    }

    /// From 0 to `n - 1`; 0 when `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        ((self.unit() * n as f64) as usize).min(n.saturating_sub(1))
    }

    /// Normally distributed, mean 0, deviation 1 (sum of twelve uniforms: good to three deviations).
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }
}

/// Bootstrap interval (95 %) of median(after) / median(before). `None` when a side is empty or its median is
/// not positive, for then there is no ratio.
pub fn median_ratio_interval(before: &[f64], after: &[f64], seed: u64) -> Option<(f64, f64)> {
    let rules = &Rules::DEFAULT.trials;
    median(before).filter(|m| *m > 0.0)?;
    median(after)?;
    let mut rng = Rng::new(seed);
    let mut draw = |from: &[f64]| {
        let again: Vec<f64> = from.iter().map(|_| from[rng.below(from.len())]).collect();
        median(&again).unwrap_or(f64::NAN)
    };
    let mut ratios: Vec<f64> = (0..rules.resamples)
        .map(|_| draw(after) / draw(before).max(f64::MIN_POSITIVE))
        .filter(|r| r.is_finite())
        .collect();
    ratios.sort_by(f64::total_cmp);
    let last = ratios.len().checked_sub(1)?;
    let outside = (1.0 - rules.confidence) / 2.0;
    let at = |share: f64| ratios[(last as f64 * share) as usize];
    Some((at(outside), at(1.0 - outside)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_interval() {
        let (a, b) = ([1.0, 1.1, 0.9, 1.05], [2.0, 2.1, 1.9, 2.2]);
        let one = median_ratio_interval(&a, &b, 7).unwrap();
        assert_eq!(Some(one), median_ratio_interval(&a, &b, 7));
        assert!(one.0 > 1.6 && one.1 < 2.5, "{one:?}");
        assert_eq!(median_ratio_interval(&[], &b, 7), None);
        assert_eq!(median_ratio_interval(&[0.0], &b, 7), None);
    }
}
