//! How a transfer goes on from second to second: a burst, then a steady lower rate.
//!
//! In: the intervals of the transfers of a cell. Out: both levels.

use linerate_model::kind::TcpPlan;
use linerate_model::load::Interval;
use linerate_model::symptom::Sign;

use crate::evidence::CellEvidence;
use crate::rules::SymptomRules;
use crate::stats::{mean, median};

/// The burst of a cell, where at least half of its transfers begin with one.
pub(super) fn burst(cell: &CellEvidence<'_>, rules: &SymptomRules) -> Option<Sign> {
    let transfers = cell.measured().filter(|(sample, _)| sample.test.kind.is::<TcpPlan>());
    let series: Vec<&[Interval]> = transfers
        .filter_map(|(_, m)| {
            let ends = [&m.rx, &m.tx].into_iter().flatten();
            ends.map(|end| end.series.as_slice()).find(|series| series.len() > rules.burst_later_min)
        })
        .collect();
    let bursts: Vec<Burst> = series.iter().filter_map(|series| Burst::of(series, rules)).collect();
    if bursts.is_empty() || 2 * bursts.len() < series.len() {
        return None;
    }
    let middle = |of: fn(&Burst) -> f64| median(&bursts.iter().map(of).collect::<Vec<_>>());
    Some(Sign::Burst {
        first_bps: middle(|b| b.first_bps)?,
        bps: middle(|b| b.bps)?,
        after_s: middle(|b| b.after_s)?,
    })
}

struct Burst {
    first_bps: f64,
    bps: f64,
    after_s: f64,
}

impl Burst {
    /// Intervals of the beginning that are well above all later ones: as many as there are.
    fn of(series: &[Interval], rules: &SymptomRules) -> Option<Self> {
        let rates: Vec<f64> = series.iter().map(|interval| interval.throughput_bps).collect();
        let is_burst = |fast: &usize| {
            let (first, later) = rates.split_at(*fast);
            let least = first.iter().copied().fold(f64::INFINITY, f64::min);
            least >= rules.burst_factor * later.iter().copied().fold(0.0, f64::max)
        };
        let fast = (1..=rates.len().checked_sub(rules.burst_later_min)?).rev().find(is_burst)?;
        // A bucket lets packets through in portions: their mean is the rate.
        let bps = mean(&rates[fast..]).filter(|bps| *bps > 0.0)?;
        let first_bps = mean(&rates[..fast])?;
        let after_s = series[fast - 1].at_ms / 1e3;
        // What a sender's socket takes in is not on the wire yet.
        let extra_bytes = (first_bps - bps) * after_s / 8.0;
        (extra_bytes >= rules.burst_bytes_min).then_some(Self { first_bps, bps, after_s })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Rules;

    fn of(mbit: &[f64]) -> Option<(f64, f64)> {
        let interval = |(at, mbit): (usize, &f64)| Interval {
            at_ms: 1e3 * (at + 1) as f64,
            throughput_bps: mbit * 1e6,
            ..Interval::default()
        };
        let series: Vec<Interval> = mbit.iter().enumerate().map(interval).collect();
        Burst::of(&series, &Rules::DEFAULT.symptoms).map(|b| (b.first_bps / 1e6, b.bps / 1e6))
    }

    #[test]
    fn a_bucket_that_runs_empty() {
        assert_eq!(of(&[1900.0, 30.0, 22.0, 14.0, 30.0, 14.0, 22.0, 22.0]), Some((1900.0, 22.0)));
        assert_eq!(of(&[19000.0, 18000.0, 9900.0, 9900.0, 9900.0, 9900.0, 9900.0]), Some((18500.0, 9900.0)));
    }

    #[test]
    fn neither_jumps_nor_a_filled_socket_nor_slow_start() {
        assert_eq!(of(&[9000.0, 2000.0, 2000.0, 9000.0, 2000.0, 2000.0, 2000.0]), None);
        assert_eq!(of(&[70.0, 40.0, 40.0, 40.0, 40.0, 40.0, 40.0]), None, "3.75 MB more than later");
        assert_eq!(of(&[200.0, 900.0, 940.0, 940.0, 940.0, 940.0]), None);
        assert_eq!(of(&[1900.0, 20.0, 20.0]), None, "too short to show a level");
        assert_eq!(of(&[0.0; 8]), None);
    }
}
