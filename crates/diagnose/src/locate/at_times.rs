//! Suspects that harm what passes them at times: some tests of each of their paths show it, and others do
//! not.
//!
//! Located losses come in, the same go out, with one suspect in the place of the paths that look like several
//! because most of what passes them was tested at a good moment. The search before it works on one value of
//! each path and wants most paths of a suspect to be bad; here single tests count. Of healthy ones hardly
//! any is bad, so that three of a suspect's eight are enough, if they lie apart in time. Before it
//! `intermittent` has looked for a limit, which is one rate; what is left for here are transfers that lose at
//! times, and not alike.

use std::collections::BTreeSet;

use linerate_model::finding::{Metric, Suspect};
use linerate_model::inventory::Layer;

use super::column::Column;
use super::located::{Located, alike};
use crate::evidence::{CellEvidence, Single};
use crate::metrics::{Row, effect, singles};
use crate::rules::Rules;
use crate::stats::median;

/// A response that is examined test by test.
#[derive(Clone, Copy)]
struct Kind {
    response: Metric,
    /// Effect from which on one counts, and at least so many times the noise. Below half of it a test is
    /// good; what lies between says nothing, for a place that is always a little bad scatters around any
    /// limit.
    bad_min: f64,
    sigmas: f64,
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
/// but real ones have other load in them; a queue that is nearly three times as long as elsewhere is
/// seen more often, and so is a transfer that loses 30 %: one in 24 transfers of each of 3 in 32 healthy
/// clusters.
fn kinds(rules: &Rules) -> [Kind; 4] {
    let locate = &rules.locate;
    let probes = Kind {
        response: Metric::Loss,
        bad_min: locate.probe_bad_min,
        sigmas: 0.0,
        effect_max: f64::INFINITY,
        must_change: false,
        chance: locate.probe_chance,
        chance_tests: locate.probe_chance_tests,
    };
    let transfers = Kind {
        response: Metric::Throughput,
        bad_min: locate.transfer_bad_min,
        must_change: true,
        chance: locate.transfer_chance,
        chance_tests: locate.transfer_chance_tests,
        effect_max: locate.transfer_effect_max,
        ..probes
    };
    let queues = Kind {
        response: Metric::RttLoaded,
        bad_min: locate.rtt_bad_min,
        sigmas: locate.rtt_bad_sigmas,
        effect_max: f64::INFINITY,
        ..transfers
    };
    [probes, Kind { response: Metric::Reordering, ..probes }, queues, transfers]
}

/// The tests of one response, by cell.
struct Tests<'r> {
    rules: &'r Rules,
    kind: Kind,
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

/// What a suspect explains if it is intermittent.
#[derive(Debug)]
struct Fit {
    score: f64,
    /// Whether its tests are enough to say that it is not always so.
    comes_and_goes: bool,
    /// Cells with a bad test.
    cells: BTreeSet<usize>,
}

/// Replaces what one suspect explains better that is bad at times, or adds it as a suspicion where that needs
/// a repetition.
pub(super) fn instead(
    found: Vec<Located>,
    columns: &[Column],
    rows: &[Row],
    cells: &[CellEvidence<'_>],
    accept: [f64; 2],
    rules: &Rules,
) -> Vec<Located> {
    // What is slow everywhere leaves nothing to compare with.
    if rows.iter().any(|row| row.common > 0.0) {
        return found;
    }
    kinds(rules).into_iter().fold(found, |found, kind| {
        let tests = Tests::new(kind, rows, cells, rules);
        // Nothing is computed for the many clusters in which nothing of the kind happens.
        if tests.bad == 0 { found } else { with_best(found, columns, rows, cells, &tests, accept) }
    })
}

impl Kind {
    /// Effect from which on a test of a row's path counts.
    fn bad_min(&self, row: &Row) -> f64 {
        self.bad_min.max(self.sigmas * row.sigma)
    }
}

/// Whether a test of the path of a row was bad in its response, whatever the row says of all of them.
pub(super) fn is_ever_bad(row: &Row, cells: &[CellEvidence<'_>], rules: &Rules) -> bool {
    // Of transfers the rates are at hand.
    if row.response == Metric::Throughput {
        return false;
    }
    kinds(rules).into_iter().filter(|kind| kind.response == row.response).any(|kind| {
        let effect = |single: &Single| effect(row.response, single.value, row.expected, &rules.metrics);
        let is_bad = |single: &Single| effect(single) >= kind.bad_min(row);
        singles(row.response, &cells[row.cell]).iter().any(is_bad)
    })
}

impl<'r> Tests<'r> {
    fn new(kind: Kind, rows: &[Row], cells: &[CellEvidence<'_>], rules: &'r Rules) -> Self {
        let response = kind.response;
        let mut by_cell = vec![Vec::new(); cells.len()];
        for row in rows.iter().filter(|row| row.response == response && row.effect_min <= kind.effect_max) {
            let bad_min = kind.bad_min(row);
            let test = |single: Single| {
                let bad = effect(response, single.value, row.expected, &rules.metrics);
                let counts = bad >= bad_min || bad < rules.locate.tests_good * bad_min;
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
        Self { rules, kind, by_cell, bad, all }
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
    tests: &Tests<'_>,
    [accept, accept_more]: [f64; 2],
) -> Vec<Located> {
    let rules = &tests.rules.locate;
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
    let Some(mine) = fits[best].as_ref().filter(|f| f.score >= rules.tests_suspected) else { return found };
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
    // That these tests do not support it takes nothing away from the others. Transfers at one limit are no
    // loss that is always there, and are more evidence than bad ones.
    let is_limit = |l: &Located| l.at_limit() && tests.kind.response == Metric::Throughput;
    let always = |l: &Located| if is_limit(l) { l.score } else { steady(l, tests, rows, cells).max(0.0) };
    let others: f64 = found
        .iter()
        .filter(|l| !l.unconfirmed && bad_here(l))
        .map(|l| always(l) + besides(l, tests.kind.response))
        .sum();
    if mine.score >= others + rules.intermittent_better {
        found.retain(|l| !bad_here(l));
        found.insert(0, located);
    }
    found
}

/// What a located loss explains of the tests if it is always there, in the layers in which it was seen. That
/// several connections hide it says nothing against it.
fn steady(located: &Located, tests: &Tests<'_>, rows: &[Row], cells: &[CellEvidence<'_>]) -> f64 {
    let layers: BTreeSet<Layer> = located.rows.iter().map(|row| cells[rows[*row].cell].layer).collect();
    let chance = tests.kind.chance;
    let rules = &tests.rules.locate;
    let gain = |test: &Test| match test {
        Test { is_bad: true, .. } => ((1.0 - rules.tests_exceptions) / chance).ln(),
        Test { is_single: true, .. } => (rules.tests_exceptions / (1.0 - chance)).ln(),
        Test { .. } => 0.0,
    };
    let its = located.column.cells().into_iter().filter(|cell| layers.contains(&cells[*cell].layer));
    its.flat_map(|cell| &tests.by_cell[cell]).map(gain).sum::<f64>() - located.column.penalty
}

/// What a located loss explains beside these tests and what follows from them.
fn besides(located: &Located, response: Metric) -> f64 {
    let of_transfers = |r: &Metric| matches!(r, Metric::TwoState | Metric::RttLoaded | Metric::CpuCost);
    let follows = |r: &Metric| {
        *r == response
            || matches!(r, Metric::Retransmits | Metric::Stalls)
            || (response == Metric::Throughput && of_transfers(r))
    };
    located.gains.iter().filter(|(r, _)| !follows(r)).map(|(_, gain)| *gain).sum()
}

/// How well it explains its tests that each of them is bad with one probability, instead of by chance as
/// elsewhere.
fn fit(column: &Column, tests: &Tests<'_>) -> Option<Fit> {
    // Several faults look like one that is everywhere at times.
    if column.suspect == Suspect::All {
        return None;
    }
    let rules = &tests.rules.locate;
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
    let price = column.penalty + rules.intermittent + rules.size_penalty * ((all + 1) as f64).ln();
    let cells: BTreeSet<usize> = column.parts.iter().flatten().copied().filter(is_bad).collect();
    // A limit of each connection spares tests with several of them.
    let good_singles = of_column().filter(|t| !t.is_bad && t.is_single).count();
    let shares = rules.tests_share_min..=rules.intermittent_share_max;
    let enough = bad >= rules.bad_tests_min
        && all - bad >= rules.good_tests_min
        && good_singles > 0
        && shares.contains(&share);
    Some(Fit {
        score: gain(bad, share, chance) + gain(all - bad, 1.0 - share, 1.0 - chance) - price,
        comes_and_goes: enough
            && lie_apart(of_column(), tests.rules.evidence.moment_ms)
            && changes(&cells, tests),
        cells,
    })
}

/// Whether bad tests lie apart in time. Imported evidence has tests without one.
fn lie_apart<'t>(tests: impl Iterator<Item = &'t Test>, moment_ms: u64) -> bool {
    let times: Vec<u64> = tests.filter(|t| t.is_bad && t.start_ms > 0).map(|t| t.start_ms).collect();
    times.iter().max().zip(times.iter().min()).is_some_and(|(last, first)| last - first >= moment_ms)
}

/// Whether at least half of the bad cells that were tested more than once were good as well.
fn changes(bad: &BTreeSet<usize>, tests: &Tests<'_>) -> bool {
    let repeated = bad.iter().map(|cell| &tests.by_cell[*cell]).filter(|tests| tests.len() > 1);
    let (steady, changing): (Vec<_>, Vec<_>) = repeated.partition(|tests| tests.iter().all(|t| t.is_bad));
    changing.len() >= steady.len() && !(changing.is_empty() && tests.kind.must_change)
}

fn located(
    best: usize,
    columns: &[Column],
    fits: &[Option<Fit>],
    rows: &[Row],
    tests: &Tests<'_>,
) -> Located {
    let response = tests.kind.response;
    let of = |i: usize| fits[i].as_ref().map(|f| (f.score, &f.cells));
    let (score, cells) = of(best).map_or((0.0, BTreeSet::new()), |(score, cells)| (score, cells.clone()));
    let bad = |row: &Row| row.response == response && cells.contains(&row.cell);
    let two_states = (response == Metric::Throughput).then_some((Metric::TwoState, score));
    Located {
        column: columns[best].clone(),
        score,
        gains: two_states.into_iter().chain([(response, score)]).collect(),
        rows: (0..rows.len()).filter(|i| bad(&rows[*i])).collect(),
        alternatives: alike(best, columns, of, &tests.rules.locate),
        unconfirmed: false,
        values: tests.values(&cells),
    }
}
