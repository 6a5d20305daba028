//! From the strength of the reasoning to the probability that a reader sees.
//!
//! The scores of places and causes add up log odds as if every piece of evidence were independent, and as if
//! every cause were known. Neither is so. A map with two numbers fixes that: a temperature, which stretches
//! or squeezes all log odds alike, and a lapse, the share of verdicts that are wrong however clear they look.
//! It keeps the order and knows no cause by its name. The numbers are fitted on kept runs of which the truth
//! is known: `linerate-judge run --again FOLDER --fit` prints them, and `docs/dev/accuracy.md` says on which.
//! It never changes what is concluded, only how sure it is said to be.

use crate::rules::CalibrationRules;

/// A monotone map of probabilities.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProbabilityMap {
    /// Log odds are divided by this: above 1 the reasoning was too sure, below 1 not sure enough.
    pub temperature: f64,
    /// Share of verdicts that are wrong however sure they look.
    pub lapse: f64,
}

/// Keeps log odds finite.
const NEARLY: f64 = 1e-12;

impl ProbabilityMap {
    /// Says what the reasoning says.
    pub const NONE: Self = Self { temperature: 1.0, lapse: 0.0 };

    /// The probability of one statement.
    pub fn chance(&self, raw: f64) -> f64 {
        let raw = raw.clamp(NEARLY, 1.0 - NEARLY);
        let odds = (raw / (1.0 - raw)).ln() / self.temperature;
        (1.0 - self.lapse) / (1.0 + (-odds).exp())
    }

    /// The probabilities of statements of which at most one is true. What they leave to one stays the share
    /// of "none of these".
    pub fn shares(&self, raw: &[f64]) -> Vec<f64> {
        let power = |p: f64| if p > 0.0 { (p.max(NEARLY).ln() / self.temperature).exp() } else { 0.0 };
        let left = 1.0 - raw.iter().sum::<f64>();
        // What sums cannot hold is nothing left.
        let total = raw.iter().map(|p| power(*p)).sum::<f64>() + if left > 1e-9 { power(left) } else { 0.0 };
        let total = if total > 0.0 { total } else { 1.0 };
        raw.iter().map(|p| (1.0 - self.lapse) * power(*p) / total).collect()
    }
}

/// The maps of all probabilities that a diagnosis gives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibration {
    /// That something is wrong where a finding says.
    pub finding: ProbabilityMap,
    /// That it is the first place and not one of the others.
    pub place: ProbabilityMap,
    /// That it is this cause, if the place is right.
    pub cause: ProbabilityMap,
}

impl Calibration {
    /// What readers get: fitted on kept runs of odd seeds, judged with all files and without that of their
    /// cause: 59, 53 and 50 statements (`docs/dev/accuracy.md`). In imported evidence causes are as certain
    /// as the reasoning is, for no runs of known truth have fitted that.
    #[must_use]
    pub fn of(rules: &CalibrationRules, imported: bool) -> Self {
        let r = rules;
        let cause = if imported {
            ProbabilityMap { temperature: r.import_cause_temperature, lapse: r.import_cause_lapse }
        } else {
            ProbabilityMap { temperature: r.cause_temperature, lapse: r.cause_lapse }
        };
        Self {
            finding: ProbabilityMap { temperature: r.finding_temperature, lapse: r.finding_lapse },
            place: ProbabilityMap { temperature: r.location_temperature, lapse: r.location_lapse },
            cause,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WARM: ProbabilityMap = ProbabilityMap { temperature: 2.0, lapse: 0.02 };

    #[test]
    fn the_order_stays_and_nothing_becomes_certain() {
        let raw = [0.6, 0.25, 0.1];
        let said = WARM.shares(&raw);
        assert!(said.windows(2).all(|pair| pair[0] > pair[1]), "{said:?}");
        assert!(said.iter().sum::<f64>() < 0.98 + 1e-9 && said[0] < raw[0], "{said:?}");
        assert!((WARM.shares(&[1.0])[0] - 0.98).abs() < 1e-9);
        let rising: Vec<f64> = (0..=20).map(|i| WARM.chance(f64::from(i) / 20.0)).collect();
        assert!(rising.windows(2).all(|pair| pair[0] < pair[1]) && rising[20] < 0.98, "{rising:?}");
    }

    #[test]
    fn no_map_changes_nothing() {
        let said = ProbabilityMap::NONE.shares(&[0.7, 0.2]);
        assert!((said[0] - 0.7).abs() < 1e-9 && (said[1] - 0.2).abs() < 1e-9);
        assert!((ProbabilityMap::NONE.chance(0.3) - 0.3).abs() < 1e-9);
        assert_eq!(ProbabilityMap::NONE.shares(&[]), Vec::<f64>::new());
        assert_eq!(WARM.shares(&[0.0]), [0.0]);
    }
}
