//! How often single tests of a large cluster are contended by something else, and by how much.
//!
//! Rows come in, a density of noise goes out. In a small cluster the tests are repeated and the few bad cells
//! are the finding itself; among thousands some hosts have several contended tests by chance alone, and must
//! not look bad for it.

use linerate_model::finding::Metric;

use crate::metrics::Row;
use crate::rules::LocateRules;
use crate::stats::student_t_log_density;

/// What disturbances look like here.
#[derive(Debug, Clone, Copy)]
pub(super) struct Contended {
    /// Share of the tests.
    share: f64,
    /// What they lose, doublings; exponentially distributed.
    mean: f64,
}

impl Contended {
    /// From the throughput of all cells; `None` for small clusters and where nothing is contended. Real
    /// faults are counted in, which makes the search a little more careful than it had to be.
    pub(super) fn of(hosts: usize, rows: &[Row], rules: &LocateRules) -> Option<Self> {
        let all = rows.iter().filter(|r| r.response == Metric::Throughput).count();
        let is_bad = |r: &&Row| r.response == Metric::Throughput && r.y >= r.effect_min;
        let (bad, sum) = rows.iter().filter(is_bad).fold((0_usize, 0.0), |(n, sum), r| (n + 1, sum + r.y));
        if hosts < rules.crowd_hosts_min || bad == 0 {
            return None;
        }
        Some(Self { share: (bad as f64 / all as f64).min(rules.crowd_noise_max), mean: sum / bad as f64 })
    }

    /// Logarithm of the density of an effect when nothing is wrong: mostly Student's t, sometimes a
    /// disturbance.
    pub(super) fn log_density(self, y: f64, sigma: f64, freedom: f64) -> f64 {
        let uncontended = (1.0 - self.share) * student_t_log_density(y, sigma, freedom).exp();
        let contended = if y > 0.0 { self.share * (-y / self.mean).exp() / self.mean } else { 0.0 };
        (uncontended + contended).max(f64::MIN_POSITIVE).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contended_test_surprises_less_than_the_tail_of_the_noise() {
        let contended = Contended { share: 0.05, mean: 0.7 };
        let far = contended.log_density(1.0, 0.05, 3.0);
        assert!(far > student_t_log_density(1.0, 0.05, 3.0) + 1.0, "{far}");
        let near = contended.log_density(0.02, 0.05, 3.0) - student_t_log_density(0.02, 0.05, 3.0);
        assert!(near.abs() < 0.1, "{near}");
        assert!(contended.log_density(0.0, 0.05, 3.0).is_finite());
    }
}
