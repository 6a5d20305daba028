//! Whether a series jumps between two levels. Their mean would be a number that never occurred, so it is
//! never formed.

use super::{median, quantile};
use crate::rules::EvidenceRules;

/// Two levels of one series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TwoLevels {
    /// The upper one.
    pub high: f64,
    /// The lower one.
    pub low: f64,
    /// Share of the time in the lower one.
    pub low_share: f64,
    /// How often the series went from one to the other.
    pub switches: usize,
}

/// The two levels of a series of positive values, in time order; `None` when one level explains it.
///
/// Intervals longer than a state mix the two, so the extremes of each cluster stand for the pure states.
pub fn two_levels(series: &[f64], rules: &EvidenceRules) -> Option<TwoLevels> {
    let logs: Vec<f64> = series.iter().filter(|v| v.is_finite()).map(|v| v.max(1.0).log2()).collect();
    if logs.len() < rules.series_min {
        return None;
    }
    let cut = best_cut(&logs)?;
    let side = |up: bool| -> Vec<f64> { logs.iter().copied().filter(|v| (*v > cut) == up).collect() };
    let (high, low) = (side(true), side(false));
    let low_share = low.len() as f64 / logs.len() as f64;
    let (top, bottom) = (quantile(&high, rules.level_high)?, quantile(&low, rules.level_low)?);
    let gap = top - bottom;
    let near = |values: &[f64], level: f64| {
        let away: Vec<f64> = values.iter().map(|v| (v - level).abs()).collect();
        median(&away).unwrap_or(f64::INFINITY)
    };
    let clean = near(&high, top) <= rules.level_spread_max * gap
        && near(&low, bottom) <= rules.level_spread_max * gap;
    let switches = logs.windows(2).filter(|w| (w[0] > cut) != (w[1] > cut)).count();
    // Start-up and one disturbance also split a series once; two long plateaus or several switches do not
    // come by chance.
    let plateaus = high.len().min(low.len()) >= rules.plateau_min && low_share >= rules.plateau_share_min;
    let lasting = switches >= rules.switches_min || (plateaus && switches >= 1);
    let shares = (rules.level_share_min..=1.0 - rules.level_share_min).contains(&low_share);
    (gap >= rules.level_ratio_min.log2() && clean && lasting && shares).then(|| TwoLevels {
        high: top.exp2(),
        low: floored(bottom.exp2()),
        low_share,
        switches,
    })
}

/// A value whose logarithm was taken with a floor of 1, which stands for nothing.
pub fn floored(value: f64) -> f64 {
    if value.round() <= 1.0 { 0.0 } else { value }
}

/// The cut that leaves the least squares within the two sides.
fn best_cut(logs: &[f64]) -> Option<f64> {
    let mut sorted = logs.to_vec();
    sorted.sort_by(f64::total_cmp);
    let within = |side: &[f64]| {
        let mean = side.iter().sum::<f64>() / side.len() as f64;
        side.iter().map(|v| (v - mean).powi(2)).sum::<f64>()
    };
    (1..sorted.len())
        .filter(|i| sorted[*i] > sorted[*i - 1])
        .map(|i| (within(&sorted[..i]) + within(&sorted[i..]), f64::midpoint(sorted[i - 1], sorted[i])))
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, cut)| cut)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Rules;

    fn two_levels(series: &[f64]) -> Option<TwoLevels> {
        super::two_levels(series, &Rules::DEFAULT.evidence)
    }

    #[test]
    fn casebook_series_have_two_levels() {
        let c2 = [8570., 9470., 9470., 9470., 7820., 2330., 2320., 2320., 2320., 2330.];
        let c4 = [
            8920., 6060., 8920., 2330., 2330., 7350., 6980., 8470., 3730., 9150., 5790., 9470., 8940., 2330.,
            2880., 9470., 8920., 2330., 2330., 2330.,
        ];
        for series in [&c2[..], &c4[..]] {
            let two = two_levels(series).expect("two levels");
            assert!((9100.0..=9500.0).contains(&two.high), "{two:?}");
            assert!((2300.0..=2400.0).contains(&two.low), "{two:?}");
        }
    }

    #[test]
    fn a_standstill_is_no_rate_of_one() {
        let series = [187e6, 0.0, 0.0, 186e6, 187e6, 0.0, 0.0, 0.0, 187e6, 186e6];
        let two = two_levels(&series).expect("two levels");
        assert!(two.low == 0.0 && two.high > 180e6, "{two:?}");
    }

    #[test]
    fn noise_ramps_and_a_single_dip_have_one() {
        let mut rng = super::super::Rng::new(1);
        for _ in 0..200 {
            let noise: Vec<f64> = (0..40).map(|_| 190.0 * (1.0 + 0.08 * rng.normal())).collect();
            assert_eq!(two_levels(&noise), None);
            let mut dip = noise.clone();
            dip[20] = 20.0;
            dip[21] = 40.0;
            assert_eq!(two_levels(&dip), None);
        }
        assert_eq!(two_levels(&[]), None);
    }
}
