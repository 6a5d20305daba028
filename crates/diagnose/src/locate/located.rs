//! A hypothesis that explains rows, and what else explains nearly as much.

use std::collections::BTreeSet;

use linerate_model::finding::Metric;

use super::column::Column;
use crate::rules::LocateRules;

/// A column that explains rows.
#[derive(Debug, Clone)]
pub(crate) struct Located {
    /// The hypothesis.
    pub column: Column,
    /// Log odds for it.
    pub score: f64,
    /// Gain by response, largest first.
    pub gains: Vec<(Metric, f64)>,
    /// Rows that it explains.
    pub rows: Vec<usize>,
    /// Other hypotheses that explain nearly as much, with their scores. A hypothesis of several columns gives
    /// several.
    pub alternatives: Vec<(Column, f64)>,
    /// Too little to believe, such as one cell alone, which nothing confirmed yet: a suspicion for the second
    /// stage, not a finding.
    pub unconfirmed: bool,
    /// What is expected and what was measured while it was bad, where the rows do not say so: they hold one
    /// value of good and bad times.
    pub values: Option<[f64; 2]>,
}

impl Located {
    /// Whether its transfers jump between what is expected and one limit.
    pub(super) fn at_limit(&self) -> bool {
        self.values.is_some() && self.gains.first().is_some_and(|(metric, _)| *metric == Metric::TwoState)
    }
}

/// What else explains nearly as much of nearly the same bad cells, where single tests were looked at. `of`
/// gives score and bad cells of a column.
pub(super) fn alike<'f>(
    best: usize,
    columns: &[Column],
    of: impl Fn(usize) -> Option<(f64, &'f BTreeSet<usize>)>,
    rules: &LocateRules,
) -> Vec<(Column, f64)> {
    let Some((most, mine)) = of(best) else { return Vec::new() };
    let near = |i: usize| {
        let (score, theirs) = of(i).filter(|(score, _)| i != best && *score >= most - rules.ambiguous)?;
        let same = theirs.intersection(mine).count() as f64 >= rules.overlap_min * mine.len() as f64;
        same.then(|| (columns[i].clone(), score))
    };
    let mut alike: Vec<(Column, f64)> = (0..columns.len()).filter_map(near).collect();
    alike.sort_by(|a, b| b.1.total_cmp(&a.1));
    alike
}
