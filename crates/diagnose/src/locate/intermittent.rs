//! Suspects that limit what passes to one rate intermittently, and let all of it through at others.
//!
//! Located losses come in, the same go out, with one suspect in the place of those that looked like several
//! because its tests were partly good. The search before it works on pairs, of which most were measured once
//! or twice, and wants most pairs of a suspect to be bad; here single transfers count, so that good ones
//! between bad ones are expected.

use std::collections::BTreeSet;

use linerate_model::finding::Metric;

use super::column::Column;
use super::located::{Located, alike};
use crate::metrics::Row;
use crate::rules::LocateRules;
use crate::stats::{floored, median, student_t_log_density};

/// The transfers of each cell, and what is expected of them. Tens of thousands of cells are looked at where
/// they are.
#[derive(Clone)]
struct Transfers<'r> {
    rules: &'r LocateRules,
    rates: &'r [&'r [f64]],
    /// Bit/s; `None` for cells that do not count.
    expected: Vec<Option<f64>>,
    /// The same of cells between neighbours, whose rate is only known from others and scatters by itself:
    /// they count where they are at the limit of the others, far below what they reach.
    inside: Vec<Option<f64>>,
}

impl<'r> Transfers<'r> {
    fn new(rows: &[Row], rates: &'r [&'r [f64]], rules: &'r LocateRules) -> Self {
        let [mut expected, mut inside] = [vec![None; rates.len()], vec![None; rates.len()]];
        for row in rows.iter().filter(|r| r.response == Metric::Throughput) {
            let known = if row.effect_min <= rules.limit_min { &mut expected } else { &mut inside };
            known[row.cell] = Some(row.expected);
        }
        Self { rules, rates, expected, inside }
    }

    /// How many transfers of a cell between neighbours are at a rate, bit/s, which is far below theirs.
    fn inside_at(&self, cell: usize, limit_bps: f64) -> usize {
        let rules = self.rules;
        let Some(expected) = self.inside[cell] else { return 0 };
        let is_there = |rate: &&f64| {
            (expected / rate.max(1.0)).log2() >= rules.collapsed
                && (*rate / limit_bps).log2().abs() <= rules.limit_sigmas * rules.limit_sigma
        };
        self.rates[cell].iter().filter(is_there).count()
    }

    /// The middle of the rates of transfers that are low, bit/s.
    fn low_bps(&self, cells: impl Iterator<Item = usize>) -> f64 {
        let low = |cell: usize| self.of(cell).zip(self.rates[cell]).filter(|(y, _)| is_low(*y, self.rules));
        median(&cells.flat_map(low).map(|(_, bps)| *bps).collect::<Vec<_>>()).unwrap_or(0.0)
    }

    /// Losses of the transfers of a cell, doublings.
    fn of(&self, cell: usize) -> impl Iterator<Item = f64> {
        let expected = self.expected[cell];
        let rates = expected.map_or(&[][..], |_| self.rates[cell]);
        rates.iter().map(move |rate| (expected.unwrap_or(0.0) / rate.max(1.0)).log2().max(0.0))
    }

    fn is_bad(&self, cell: usize) -> bool {
        self.of(cell).any(|y| is_low(y, self.rules))
    }
}

/// What a suspect explains if it is bad intermittently.
struct Fit {
    score: f64,
    share: f64,
    /// Bad and good transfers, and those of the bad ones that have the same rate.
    counts: [usize; 2],
    alike: usize,
    /// Cells with a bad transfer.
    bad: BTreeSet<usize>,
    /// Doublings below what is expected.
    level: f64,
}

/// Replaces what one suspect explains better that comes and goes. `rates` are the transfers of each cell,
/// bit/s.
pub(super) fn instead(
    found: Vec<Located>,
    columns: &[Column],
    rows: &[Row],
    rates: &[&[f64]],
    rules: &LocateRules,
) -> Vec<Located> {
    let by_cell = Transfers::new(rows, rates, rules);
    // Nothing is computed for the many clusters in which nothing of the kind happens.
    let low = (0..rates.len()).flat_map(|cell| by_cell.of(cell)).filter(|y| is_low(*y, rules)).count();
    if low < rules.bad_tests_min || rows.iter().any(|r| r.common > 0.0) {
        return found;
    }
    let fits: Vec<Option<Fit>> = columns.iter().map(|column| fit(column, &by_cell)).collect();
    let score = |i: usize| fits[i].as_ref().map_or(f64::NEG_INFINITY, |f| f.score);
    let Some(best) = (0..columns.len()).max_by(|a, b| score(*a).total_cmp(&score(*b))) else { return found };
    let Some(mine) =
        fits[best].as_ref().filter(|f| f.score >= rules.limit_suspected && f.comes_and_goes(rules))
    else {
        return found;
    };
    let overlaps = |l: &Located| l.rows.iter().any(|row| mine.bad.contains(&rows[*row].cell));
    if mine.score < rules.limit_accept {
        // What is suspected or found there already is repeated for its own sake.
        let suspicion = || Located { unconfirmed: true, ..located(best, columns, &fits, mine, rows, rules) };
        let more = (!found.iter().any(overlaps)).then(suspicion);
        return found.into_iter().chain(more).collect();
    }
    let others = explained(found.iter().filter(|l| overlaps(l) && !l.unconfirmed), by_cell.clone());
    if mine.score < others + rules.intermittent_better {
        return found;
    }
    let here = located(best, columns, &fits, mine, rows, rules);
    let mut kept: Vec<Located> = found.into_iter().filter(|l| !overlaps(l)).collect();
    kept.insert(0, here);
    kept
}

/// What located losses explain together, each transfer once, and what they explain besides.
fn explained<'l>(found: impl Iterator<Item = &'l Located>, mut by_cell: Transfers<'_>) -> f64 {
    // What follows from a transfer at a lower rate tells nothing more than the transfer.
    let besides = |l: &Located| -> f64 {
        l.gains.iter().filter(|(response, _)| is_besides(*response)).map(|(_, gain)| *gain).sum()
    };
    let mut total = 0.0;
    for located in found {
        total += besides(located);
        if let Some(fit) = fit(&located.column, &by_cell) {
            total += fit.score;
            for cell in fit.bad {
                (by_cell.expected[cell], by_cell.inside[cell]) = (None, None);
            }
        }
    }
    total
}

fn is_besides(response: Metric) -> bool {
    !matches!(response, Metric::Throughput | Metric::Retransmits | Metric::RttLoaded | Metric::CpuCost)
}

impl Fit {
    fn comes_and_goes(&self, rules: &LocateRules) -> bool {
        let alike = self.alike as f64 >= rules.limit_alike_min * self.counts[0] as f64;
        alike
            && shares(rules).contains(&self.share)
            && self.counts[0] >= rules.bad_tests_min
            && self.counts[1] >= rules.good_tests_min
    }
}

/// What is bad in a smaller or larger share of its transfers is not intermittent.
fn shares(rules: &LocateRules) -> std::ops::RangeInclusive<f64> {
    rules.limit_share_min..=rules.intermittent_share_max
}

fn is_low(y: f64, rules: &LocateRules) -> bool {
    (rules.limit_min..rules.limit_max).contains(&y)
}

/// How well it explains its transfers that each of them was at one lower rate with a probability, instead of
/// being contended by chance.
fn fit(column: &Column, by_cell: &Transfers<'_>) -> Option<Fit> {
    let rules = by_cell.rules;
    // A direction in which nothing is bad is not part of it.
    if column.parts.iter().any(|part| !part.iter().any(|cell| by_cell.is_bad(*cell))) {
        return None;
    }
    let cells = || column.parts.iter().flatten().copied();
    let mut all: Vec<f64> = cells().flat_map(|cell| by_cell.of(cell)).collect();
    let level = median(&all.iter().copied().filter(|y| is_low(*y, rules)).collect::<Vec<_>>())?;
    let limit_bps = by_cell.low_bps(cells());
    let at_limit = |cell| std::iter::repeat_n(cell, by_cell.inside_at(cell, limit_bps));
    let inside: Vec<usize> = cells().flat_map(at_limit).collect();
    all.extend(inside.iter().map(|_| level));
    let low: Vec<f64> = all.iter().copied().filter(|y| is_low(*y, rules)).collect();
    let share = low.len() as f64 / all.len() as f64;
    let gain = |y: f64| {
        let [at, good] = [y - level, y]
            .map(|away| student_t_log_density(away, rules.limit_sigma, rules.degrees_of_freedom));
        let [low, high] = [share.ln() + at, (1.0 - share).ln() + good];
        let (more, less) = (low.max(high), low.min(high));
        more + (less - more).exp().ln_1p() - good
    };
    let at_times = if shares(rules).contains(&share) { rules.intermittent } else { 0.0 };
    let price = column.penalty + at_times + rules.size_penalty * ((all.len() + 1) as f64).ln();
    Some(Fit {
        score: all.iter().map(|y| gain(*y)).sum::<f64>() - price,
        share,
        counts: [low.len(), all.len() - low.len()],
        alike: low.iter().filter(|y| (**y - level).abs() <= rules.limit_sigmas * rules.limit_sigma).count(),
        bad: cells().filter(|cell| by_cell.is_bad(*cell)).chain(inside).collect(),
        level,
    })
}

fn located(
    best: usize,
    columns: &[Column],
    fits: &[Option<Fit>],
    mine: &Fit,
    rows: &[Row],
    rules: &LocateRules,
) -> Located {
    let bad = |row: &Row| row.response == Metric::Throughput && mine.bad.contains(&row.cell);
    let expected: Vec<f64> = rows.iter().filter(|row| bad(row)).map(|row| row.expected).collect();
    let values = median(&expected).map(|expected| [expected, floored(expected * (-mine.level).exp2())]);
    Located {
        column: columns[best].clone(),
        score: mine.score,
        gains: vec![(Metric::TwoState, mine.score), (Metric::Throughput, mine.score)],
        rows: (0..rows.len()).filter(|i| bad(&rows[*i])).collect(),
        alternatives: alike(best, columns, |i| fits[i].as_ref().map(|f| (f.score, &f.bad)), rules),
        unconfirmed: false,
        values,
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::finding::{Direction, Suspect};
    use linerate_model::inventory::Layer;

    use super::*;
    use crate::evidence::Kind;
    use crate::rules::Rules;

    fn instead(found: Vec<Located>, columns: &[Column], rows: &[Row], rates: &[&[f64]]) -> Vec<Located> {
        super::instead(found, columns, rows, rates, &Rules::DEFAULT.locate)
    }

    const FULL: f64 = 188e6;

    /// Two suspects with four cells each, two in each direction, and what was located with the transfers of
    /// the first one.
    fn look(rates: [&[f64]; 4]) -> Vec<Located> {
        let column = |name: &str, parts: [usize; 4]| Column {
            suspect: Suspect::Group(name.into()),
            direction: Direction::Both,
            parts: vec![parts[..2].to_vec(), parts[2..].to_vec()],
            penalty: 3.1,
        };
        let columns = [column("a", [0, 1, 2, 3]), column("b", [4, 5, 6, 7])];
        let row = |cell| Row {
            cell,
            response: Metric::Throughput,
            kind: Kind { layer: Layer::Underlay, shared_groups: 0 },
            y: 0.0,
            sigma: 0.3,
            effect_min: 0.2,
            common: 0.0,
            expected: FULL,
            measured: FULL,
        };
        let rows: Vec<Row> = (0..8).map(row).collect();
        let good: &[f64] = &[FULL, 0.97 * FULL];
        let all: Vec<&[f64]> = rates.into_iter().chain([good; 4]).collect();
        instead(Vec::new(), &columns, &rows, &all)
    }

    #[test]
    fn an_suspect_that_is_slow_at_times_is_found_by_its_transfers() {
        let low = 0.3 * FULL;
        let found = look([&[low, FULL], &[FULL, low], &[low, 0.98 * low], &[FULL, FULL]]);
        let [located] = &found[..] else { panic!("{found:?}") };
        assert_eq!(located.column.suspect, Suspect::Group("a".into()));
        assert_eq!(located.rows, [0, 1, 2]);
        assert!(located.at_limit());
    }

    #[test]
    fn traffic_between_neighbours_counts_where_it_is_at_the_same_limit() {
        let low = 0.3 * FULL;
        let column = Column {
            suspect: Suspect::Host("a".into()),
            direction: Direction::Rx,
            parts: vec![vec![0, 1, 2]],
            penalty: 2.8,
        };
        let row = |cell: usize| Row {
            cell,
            response: Metric::Throughput,
            kind: Kind { layer: Layer::Underlay, shared_groups: usize::from(cell == 2) },
            y: 0.0,
            sigma: 0.3,
            effect_min: if cell == 2 { 1.0 } else { 0.2 },
            common: 0.0,
            expected: if cell == 2 { 80.0 * FULL } else { FULL },
            measured: FULL,
        };
        let rows: Vec<Row> = (0..3).map(row).collect();
        let of = |inside: f64| {
            let rates: [&[f64]; 3] = [&[low, FULL, FULL], &[FULL, low, low], &[inside]];
            instead(Vec::new(), std::slice::from_ref(&column), &rows, &rates)
        };
        let [at_limit, apart] = [of(1.05 * low), of(9.0 * low)];
        assert_eq!((&at_limit[0].rows[..], &apart[0].rows[..]), (&[0, 1, 2][..], &[0, 1][..]));
        assert!(at_limit[0].score > apart[0].score + 3.0, "{at_limit:?} {apart:?}");
    }

    #[test]
    fn what_is_always_slow_or_slow_by_chance_is_left_to_the_others() {
        let low = 0.3 * FULL;
        assert!(look([&[low, low]; 4]).is_empty(), "steady");
        let losses = [0.65, 0.2, 0.45, 0.1].map(|share| share * FULL);
        let [a, b, c, d] = losses.map(|rate| [rate, FULL]);
        assert!(look([&a, &b, &c, &d]).is_empty(), "no two alike");
        assert!(look([&[low, FULL], &[FULL, low], &[FULL, FULL], &[FULL, FULL]]).is_empty(), "two of eight");
    }

    #[test]
    fn what_is_slow_in_few_transfers_is_suspected() {
        let low = 0.5 * FULL;
        let few =
            look([&[low, FULL, FULL, FULL], &[FULL, low, FULL, FULL], &[low, FULL, FULL, FULL], &[FULL; 4]]);
        assert!(
            matches!(&few[..], [one] if one.unconfirmed && one.score < Rules::DEFAULT.locate.limit_accept),
            "{few:?}"
        );
    }
}
