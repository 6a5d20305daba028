//! The matrix: what each cell could reach, which of its two levels are a loss, and the cells as they are
//! reported.
//!
//! Evidence and ports come in; each stage gives a new value: ceilings, then the evidence beside them, then
//! the report.

use linerate_model::finding::{Ceiling, Cell};

use super::ceiling;
use crate::ceilings::Ports;
use crate::evidence::{CellEvidence, Facts, peer_rates};
use crate::rules::CeilingRules;
use crate::stats::TwoLevels;

/// Whether two levels are a property of a path with a known ceiling. A level above it stood still and came
/// all
/// at once; what made up with its queue for a moment of standstill has the mean of a path that lost nothing.
fn lost_by(two: &TwoLevels, mean_bps: Option<f64>, ceiling_bps: f64, rules: &CeilingRules) -> bool {
    two.high <= rules.level_max * ceiling_bps
        && mean_bps.is_none_or(|mean| mean < rules.mean_max * ceiling_bps)
}

/// The evidence with its ceilings: two levels that a known ceiling explains are taken out.
pub(crate) fn with_ceilings<'a>(
    facts: &Facts<'_>,
    cells: Vec<CellEvidence<'a>>,
    ports: &Ports<'a>,
) -> (Vec<CellEvidence<'a>>, Vec<Ceiling>) {
    let mut peers = peer_rates(&cells, &facts.rules.evidence);
    // A lone pair is not what it should reach itself.
    peers.retain(|kind, _| {
        let mut pairs = cells.iter().filter(|c| c.kind == *kind).map(|c| {
            let [a, b] = c.ends;
            if a < b { [a, b] } else { [b, a] }
        });
        let first = pairs.next();
        pairs.any(|pair| Some(pair) != first)
    });
    let lost = |two: &TwoLevels, mean, bps| lost_by(two, mean, bps, &facts.rules.ceilings);
    cells
        .into_iter()
        .map(|cell| {
            let peers = ports.of(&cell).or_else(|| peers.get(&cell.kind).copied());
            let ceiling = ceiling::of(facts, &cell, peers);
            let known = ceiling.known_bps();
            let two = cell.two.filter(|two| known.is_none_or(|bps| lost(two, cell.throughput_bps, bps)));
            (CellEvidence { two, ..cell }, ceiling)
        })
        .unzip()
}

/// The matrix as it is reported.
pub(crate) fn report(cells: &[CellEvidence<'_>], ceilings: Vec<Ceiling>) -> Vec<Cell> {
    cells.iter().zip(ceilings).map(|(cell, ceiling)| reported(cell, ceiling)).collect()
}

fn reported(cell: &CellEvidence<'_>, ceiling: Ceiling) -> Cell {
    let share = cell.throughput_bps.zip(ceiling.bps).filter(|(_, c)| *c > 0.0).map(|(t, c)| t / c);
    Cell {
        from: cell.from.to_owned(),
        to: cell.to.to_owned(),
        layer: cell.layer,
        // Two levels have no middle: the upper one stands for the cell, and both are given.
        throughput_bps: cell.two.map_or(cell.throughput_bps, |t| Some(t.high)),
        two_state_bps: cell.two.map(|t| (t.high, t.low)),
        loss: cell.loss,
        rtt_idle_us: cell.rtt_idle_us,
        rtt_loaded_us: cell.rtt_loaded_us,
        retransmits_per_s: cell.retransmits_per_s,
        cpu_s_per_gb: cell.cpu_s_per_gb,
        ceiling,
        share: cell.two.map_or(share, |_| None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 185 Mbit/s of 188, in intervals that jump between 134 and 216: seen on a machine whose CPUs were taken
    /// away.
    #[test]
    fn levels_whose_mean_is_the_ceiling_lost_nothing() {
        let two = |high, low| TwoLevels { high, low, low_share: 0.3, switches: 4 };
        let lost =
            |two: &TwoLevels, mean, bps| lost_by(two, mean, bps, &crate::rules::Rules::DEFAULT.ceilings);
        assert!(!lost(&two(216e6, 134e6), Some(185e6), 188e6), "made up for");
        assert!(!lost(&two(260e6, 90e6), Some(150e6), 188e6), "no path carries the upper one");
        assert!(lost(&two(188e6, 94e6), Some(160e6), 188e6));
        assert!(lost(&two(188e6, 94e6), None, 188e6));
    }
}
