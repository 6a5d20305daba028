//! Elements that harm what passes them at times: some tests of each of their paths show it, and others do
//! not.
//!
//! Located losses come in, the same go out, with one element in the place of the paths that look like several
//! because most of what passes them was tested at a good moment. The search before it works on one value of
//! each path and wants most paths of an element to be bad; here single tests count. Of healthy ones hardly
//! any is bad, so that three of an element's eight are enough, if they lie apart in time. Before it
//! `intermittent` has looked for a limit, which is one rate; what is left for here are transfers that lose at
//! times, and not alike.

use std::collections::BTreeSet;

use linerate_model::finding::{Element, Response};
use linerate_model::inventory::Layer;

use super::column::Column;
use super::located::{Located, alike};
use crate::evidence::{CellEvidence, Single};
use crate::responses::{DEAD, Row, badness, singles};
use crate::stats::median;

/// A response of which single tests are looked at.
struct Kind {
    response: Response,
    /// Badness from which on one counts, and at least so many times the noise. Below half of it a test is
    /// good; what lies between says nothing, for a place that is always a little bad scatters around any
    /// limit.
    bad_min: f64,
    sigmas: f64,
    /// Badness above which nothing gets through: that is another state, and says nothing here.
    dead: f64,
    /// Rows with a rougher scale, whose healthy value is known from peers only, are left out.
    effect_max: f64,
    /// Whether a path that was tested more than once has to show both states. A healthy probe loses nothing,
    /// so that good ones elsewhere are enough.
    must_change: bool,
    /// Share of healthy tests that are bad by chance, before anything was measured, and so many tests' worth
    /// of it.
    chance: f64,
    chance_tests: f64,
}

/// Of 5131 probes in healthy clusters of the lab none lost or reordered a datagram (`docs/dev/accuracy.md`),
/// but real ones have other people's load in them; a queue that is nearly three times as long as elsewhere is
/// seen more often, and so is a transfer that loses 30 %: one in 24 transfers of each of 3 in 32 healthy
/// clusters.
const KINDS: [Kind; 4] = [
    Kind { response: Response::Loss, ..OF_PROBES },
    Kind { response: Response::Reordering, ..OF_PROBES },
    Kind { response: Response::RttLoaded, bad_min: 1.5, sigmas: 3.0, ..OF_TRANSFERS },
    Kind { response: Response::Throughput, effect_max: 0.5, dead: DEAD, ..OF_TRANSFERS },
];
const OF_PROBES: Kind = Kind {
    response: Response::Loss,
    bad_min: 1.3,
    sigmas: 0.0,
    dead: f64::INFINITY,
    effect_max: f64::INFINITY,
    must_change: false,
    chance: 0.002,
    chance_tests: 500.0,
};
const OF_TRANSFERS: Kind = Kind {
    response: Response::Throughput,
    bad_min: 0.5,
    must_change: true,
    chance: 0.01,
    chance_tests: 100.0,
    ..OF_PROBES
};
/// Fewer bad or good tests tell nothing; nor do bad ones that all began within this time, for one moment
/// disturbs all that is under way.
const BAD_MIN: usize = 3;
const GOOD_MIN: usize = 2;
const MOMENT_MS: u64 = 1000;
/// What is bad in a larger share of its tests is found without this; in a smaller one, not worth a name.
const SHARE: std::ops::RangeInclusive<f64> = 0.12..=0.85;
/// Log odds against an element that is bad at times, how much better it has to explain the tests than what
/// was found without it, and from which on it is worth a repetition.
const AT_TIMES: f64 = 2.0;
const BETTER: f64 = 1.0;
const SUSPECTED: f64 = -1.2;
/// Share of the tests of a place that are good although it is bad.
const EXCEPTIONS: f64 = 0.05;

/// The tests of one response, by cell.
struct Tests {
    kind: &'static Kind,
    by_cell: Vec<Vec<Test>>,
    bad: usize,
    all: usize,
}

#[derive(Debug, Clone, Copy)]
struct Test {
    start_ms: u64,
    is_bad: bool,
    value: f64,
    expected: f64,
    /// Not by several connections at once, which hide a limit that each of them has.
    is_single: bool,
}

/// What an element explains if it is bad at times.
#[derive(Debug)]
struct Fit {
    score: f64,
    /// Whether its tests are enough to say that it is not always so.
    comes_and_goes: bool,
    /// Cells with a bad test.
    cells: BTreeSet<usize>,
}

/// Replaces what one element explains better that is bad at times, or adds it as a suspicion where that needs
/// a repetition.
pub(super) fn instead(
    found: Vec<Located>,
    columns: &[Column],
    rows: &[Row],
    cells: &[CellEvidence<'_>],
    accept: [f64; 2],
) -> Vec<Located> {
    // What is slow everywhere leaves nothing to compare with.
    if rows.iter().any(|row| row.common > 0.0) {
        return found;
    }
    KINDS.iter().fold(found, |found, kind| {
        let tests = Tests::new(kind, rows, cells);
        // Nothing is computed for the many clusters in which nothing of the kind happens.
        if tests.bad == 0 { found } else { with_best(found, columns, rows, cells, &tests, accept) }
    })
}

impl Kind {
    /// Badness from which on a test of a row's path counts.
    fn bad_min(&self, row: &Row) -> f64 {
        self.bad_min.max(self.sigmas * row.sigma)
    }
}

/// Whether a test of the path of a row was bad in its response, whatever the row says of all of them.
pub(super) fn is_ever_bad(row: &Row, cells: &[CellEvidence<'_>]) -> bool {
    // Of transfers the rates are at hand.
    let mut kinds = KINDS.iter().filter(|k| k.response == row.response && k.response != Response::Throughput);
    kinds.any(|kind| {
        let is_bad = |single: &Single| badness(row.response, single.value, row.expected) >= kind.bad_min(row);
        singles(row.response, &cells[row.cell]).iter().any(is_bad)
    })
}

impl Tests {
    fn new(kind: &'static Kind, rows: &[Row], cells: &[CellEvidence<'_>]) -> Self {
        let response = kind.response;
        let mut by_cell = vec![Vec::new(); cells.len()];
        for row in rows.iter().filter(|row| row.response == response && row.effect_min <= kind.effect_max) {
            let bad_min = kind.bad_min(row);
            let test = |single: Single| {
                let bad = badness(response, single.value, row.expected);
                let counts = (bad >= bad_min || bad < 0.5 * bad_min) && bad < kind.dead;
                counts.then_some(Test {
                    start_ms: single.start_ms,
                    is_bad: bad >= bad_min,
                    value: single.value,
                    expected: row.expected,
                    is_single: !single.several,
                })
            };
            by_cell[row.cell] = singles(response, &cells[row.cell]).into_iter().filter_map(test).collect();
        }
        let all = || by_cell.iter().flatten();
        let (bad, all) = (all().filter(|t| t.is_bad).count(), all().count());
        Self { kind, by_cell, bad, all }
    }

    fn is_bad(&self, cell: usize) -> bool {
        self.by_cell[cell].iter().any(|t| t.is_bad)
    }

    /// What is expected in these cells, and what their bad tests had.
    fn values(&self, cells: &BTreeSet<usize>) -> Option<[f64; 2]> {
        let bad = || cells.iter().flat_map(|cell| &self.by_cell[*cell]).filter(|t| t.is_bad);
        let middle = |pick: fn(&Test) -> f64| median(&bad().map(pick).collect::<Vec<_>>());
        Some([middle(|t| t.expected)?, middle(|t| t.value)?])
    }
}

fn with_best(
    found: Vec<Located>,
    columns: &[Column],
    rows: &[Row],
    cells: &[CellEvidence<'_>],
    tests: &Tests,
    [accept, accept_more]: [f64; 2],
) -> Vec<Located> {
    let fits: Vec<Option<Fit>> = columns.iter().map(|column| fit(column, tests)).collect();
    // What comes and goes before what explains as much and does not.
    let rank = |i: usize| {
        let fit = fits[i].as_ref();
        fit.map_or((false, f64::NEG_INFINITY), |f| (f.comes_and_goes && f.score >= accept, f.score))
    };
    let order = |a: &usize, b: &usize| {
        let ((is_one, one), (is_other, other)) = (rank(*a), rank(*b));
        is_one.cmp(&is_other).then(one.total_cmp(&other))
    };
    let Some(best) = (0..columns.len()).max_by(order) else { return found };
    let Some(mine) = fits[best].as_ref().filter(|f| f.score >= SUSPECTED) else { return found };
    let bad_here = |l: &Located| l.rows.iter().any(|row| mine.cells.contains(&rows[*row].cell));
    let is_alone = !found.iter().any(|l| !l.unconfirmed && !bad_here(l));
    let is_proven = mine.comes_and_goes && mine.score >= if is_alone { accept } else { accept_more };
    let mut located = located(best, columns, &fits, rows, tests);
    let mut found = found;
    if !is_proven {
        // What is suspected or found there already is repeated for its own sake.
        if !found.iter().any(bad_here) {
            located.unconfirmed = true;
            found.push(located);
        }
        return found;
    }
    // That these tests say nothing for it takes nothing away from what others say.
    let always = |l: &Located| steady(l, tests, rows, cells).max(0.0);
    let others: f64 = found
        .iter()
        .filter(|l| !l.unconfirmed && bad_here(l))
        .map(|l| always(l) + besides(l, tests.kind.response))
        .sum();
    if mine.score >= others + BETTER {
        found.retain(|l| !bad_here(l));
        found.insert(0, located);
    }
    found
}

/// What a located loss explains of the tests if it is always there, in the layers in which it was seen. That
/// several connections hide it says nothing against it.
fn steady(located: &Located, tests: &Tests, rows: &[Row], cells: &[CellEvidence<'_>]) -> f64 {
    let layers: BTreeSet<Layer> = located.rows.iter().map(|row| cells[rows[*row].cell].layer).collect();
    let chance = tests.kind.chance;
    let gain = |test: &Test| match test {
        Test { is_bad: true, .. } => ((1.0 - EXCEPTIONS) / chance).ln(),
        Test { is_single: true, .. } => (EXCEPTIONS / (1.0 - chance)).ln(),
        Test { .. } => 0.0,
    };
    let its = located.column.cells().into_iter().filter(|cell| layers.contains(&cells[*cell].layer));
    its.flat_map(|cell| &tests.by_cell[cell]).map(gain).sum::<f64>() - located.column.penalty
}

/// What a located loss explains beside these tests and what follows from them.
fn besides(located: &Located, response: Response) -> f64 {
    let of_transfers =
        |r: &Response| matches!(r, Response::TwoState | Response::RttLoaded | Response::CpuCost);
    let follows = |r: &Response| {
        *r == response
            || matches!(r, Response::Retransmits | Response::Stalls)
            || (response == Response::Throughput && of_transfers(r))
    };
    located.gains.iter().filter(|(r, _)| !follows(r)).map(|(_, gain)| *gain).sum()
}

/// How well it explains its tests that each of them is bad with one probability, instead of by chance as
/// elsewhere.
fn fit(column: &Column, tests: &Tests) -> Option<Fit> {
    // Several faults look like one that is everywhere at times.
    if column.element == Element::All {
        return None;
    }
    let is_bad = |cell: &usize| tests.is_bad(*cell);
    // A direction in which nothing is bad is not part of it.
    if column.parts.iter().any(|part| !part.iter().any(is_bad)) {
        return None;
    }
    let of_column = || column.parts.iter().flatten().flat_map(|cell| &tests.by_cell[*cell]);
    let (bad, all) = (of_column().filter(|t| t.is_bad).count(), of_column().count());
    let share = bad as f64 / all as f64;
    let Kind { chance, chance_tests, .. } = tests.kind;
    let chance =
        ((tests.bad - bad) as f64 + chance * chance_tests) / ((tests.all - all) as f64 + chance_tests);
    let gain = |n: usize, here: f64, chance: f64| if n == 0 { 0.0 } else { n as f64 * (here / chance).ln() };
    let price = column.penalty + AT_TIMES + 0.5 * ((all + 1) as f64).ln();
    let cells: BTreeSet<usize> = column.parts.iter().flatten().copied().filter(is_bad).collect();
    // A limit of each connection spares tests with several of them.
    let good_singles = of_column().filter(|t| !t.is_bad && t.is_single).count();
    let enough = bad >= BAD_MIN && all - bad >= GOOD_MIN && good_singles > 0 && SHARE.contains(&share);
    Some(Fit {
        score: gain(bad, share, chance) + gain(all - bad, 1.0 - share, 1.0 - chance) - price,
        comes_and_goes: enough && lie_apart(of_column()) && changes(&cells, tests),
        cells,
    })
}

/// Whether bad tests lie apart in time. Foreign evidence has tests without one.
fn lie_apart<'t>(tests: impl Iterator<Item = &'t Test>) -> bool {
    let times: Vec<u64> = tests.filter(|t| t.is_bad && t.start_ms > 0).map(|t| t.start_ms).collect();
    times.iter().max().zip(times.iter().min()).is_some_and(|(last, first)| last - first >= MOMENT_MS)
}

/// Whether at least half of the bad cells that were tested more than once were good as well.
fn changes(bad: &BTreeSet<usize>, tests: &Tests) -> bool {
    let repeated = bad.iter().map(|cell| &tests.by_cell[*cell]).filter(|tests| tests.len() > 1);
    let (steady, changing): (Vec<_>, Vec<_>) = repeated.partition(|tests| tests.iter().all(|t| t.is_bad));
    changing.len() >= steady.len() && !(changing.is_empty() && tests.kind.must_change)
}

fn located(best: usize, columns: &[Column], fits: &[Option<Fit>], rows: &[Row], tests: &Tests) -> Located {
    let response = tests.kind.response;
    let of = |i: usize| fits[i].as_ref().map(|f| (f.score, &f.cells));
    let (score, cells) = of(best).map_or((0.0, BTreeSet::new()), |(score, cells)| (score, cells.clone()));
    let bad = |row: &Row| row.response == response && cells.contains(&row.cell);
    let two_states = (response == Response::Throughput).then_some((Response::TwoState, score));
    Located {
        column: columns[best].clone(),
        score,
        gains: two_states.into_iter().chain([(response, score)]).collect(),
        rows: (0..rows.len()).filter(|i| bad(&rows[*i])).collect(),
        alternatives: alike(best, columns, of),
        unconfirmed: false,
        values: tests.values(&cells),
    }
}
