//! Noise of real tests: how much repetitions differ, how often one is disturbed, and the cost of that.
//!
//! In: snapshots of clusters in which nothing is wrong. Out: the numbers that `Nature` wants. Tests between
//! the same two ends, in the same direction and layer, are compared with the best of them only.

use std::collections::BTreeMap;

use linerate_diagnose::stats::median;
use linerate_model::kind::TcpPlan;
use linerate_model::sample::Outcome;
use linerate_model::snapshot::Snapshot;

/// Noise of the transfers of some snapshots.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Noise {
    /// Transfers that were measured more than once between the same ends.
    pub tests: usize,
    /// Scale of a Student t with three degrees of freedom that has the measured quartiles, doublings.
    pub test_sigma: f64,
    /// Share of the transfers that are further below the others than eight times that.
    pub contended: f64,
    /// What those lose on average, doublings.
    pub disturbance: f64,
    /// Standard deviation of the hosts' own levels (median over what each receives), doublings.
    pub host_sigma: f64,
    /// Share of the transfers that could not run or were invalid.
    pub refused: f64,
}

/// Third quartile of Student's t with three degrees of freedom, over the square root of two for the
/// difference of two tests.
const QUARTILE: f64 = 0.765;
/// Beyond so many scales it is no noise.
const FAR: f64 = 8.0;

/// Reads the noise off; `None` where nothing was repeated.
pub fn of(snapshots: &[Snapshot]) -> Option<Noise> {
    let mut cells: BTreeMap<(usize, &str, &str, String), Vec<f64>> = BTreeMap::new();
    let (mut all, mut refused) = (0, 0);
    for (number, snapshot) in snapshots.iter().enumerate() {
        for sample in &snapshot.samples {
            if !sample.test.kind.get().is_some_and(TcpPlan::is_single) {
                continue;
            }
            all += 1;
            let rate = match &sample.outcome {
                Outcome::Measured(measured) => measured.throughput_bps.filter(|bps| *bps > 0.0),
                _ => None,
            };
            let Some(bps) = rate else {
                refused += 1;
                continue;
            };
            let layer = format!("{:?}", sample.test.layer);
            cells.entry((number, &sample.test.from, &sample.test.to, layer)).or_default().push(bps.log2());
        }
    }
    let repeated: Vec<&Vec<f64>> = cells.values().filter(|rates| rates.len() > 1).collect();
    let best = |rates: &[f64]| rates.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let below: Vec<f64> = repeated.iter().flat_map(|rates| rates.iter().map(|r| best(rates) - r)).collect();
    // Differences of couples: of each cell the first two.
    let differences: Vec<f64> = repeated.iter().map(|rates| (rates[0] - rates[1]).abs()).collect();
    let test_sigma = median(&differences)? / (QUARTILE * std::f64::consts::SQRT_2);
    let far: Vec<f64> = below.iter().copied().filter(|b| *b > FAR * test_sigma.max(0.005)).collect();
    let mut by_receiver: BTreeMap<(usize, &str, &str), Vec<f64>> = BTreeMap::new();
    for ((number, _, to, layer), rates) in &cells {
        by_receiver.entry((*number, layer.as_str(), to)).or_default().push(best(rates));
    }
    let levels: Vec<f64> = by_receiver.values().filter_map(|rates| median(rates)).collect();
    let middle = median(&levels)?;
    // Hosts on one machine are a hundred times as fast with each other; only what is near the middle is the
    // same kind.
    let near: Vec<f64> = levels.iter().map(|l| l - middle).filter(|d| d.abs() < 0.5).collect();
    let host_sigma = (near.iter().map(|d| d * d).sum::<f64>() / near.len().max(1) as f64).sqrt();
    Some(Noise {
        tests: below.len(),
        test_sigma,
        contended: far.len() as f64 / below.len() as f64,
        disturbance: far.iter().sum::<f64>() / far.len().max(1) as f64,
        host_sigma,
        refused: f64::from(refused) / f64::from(all.max(1)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{ClusterSize, Nature, draw};

    #[test]
    fn the_noise_of_a_drawn_cluster_is_what_it_was_drawn_with() {
        // Every pair of few hosts is measured again and again.
        let size = ClusterSize { hosts: 6, faults: 0, rounds: 60, lost: 0.5 };
        let nature = Nature { links: [0.0, 1.0, 0.0], unreachable: 0.0, ..Nature::default() };
        let noise = of(&[draw(size, &nature, 8).snapshot]).unwrap();
        assert!((0.01..0.1).contains(&noise.test_sigma), "{noise:?}");
        assert!((0.01..0.12).contains(&noise.contended), "{noise:?}");
        assert!((0.4..1.2).contains(&noise.disturbance) && noise.host_sigma < 0.1, "{noise:?}");
        assert_eq!(of(&[]), None);
    }
}
