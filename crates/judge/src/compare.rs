//! Other methods beside `linerate`, on the same runs: how often each was right.
//!
//! In: records with the guesses of all methods. Out: a table. Where the rules leave a choice, they favour the
//! others: they get the number of faults, a member counts for its group, either end for a pair.

use std::fmt::Write as _;

use serde::Serialize;

use crate::guess::Guess;
use crate::methods::METHODS;
use crate::record::JudgedRun;
use crate::reliability::wilson;

/// A row of the comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparisonRow {
    /// Method; `linerate` is ours.
    pub method: String,
    /// Runs with faults.
    pub runs: usize,
    /// Of these: every fault located.
    pub right: usize,
    /// Healthy runs.
    pub healthy: usize,
    /// Of these: with an alarm.
    pub alarms: usize,
}

/// All methods on the same runs, ours first. Runs without cells are left out for all.
pub fn rows(records: &[JudgedRun]) -> Vec<ComparisonRow> {
    let asked: Vec<&JudgedRun> = records.iter().filter(|r| !r.guesses.is_empty()).collect();
    let (sick, healthy): (Vec<&JudgedRun>, Vec<&JudgedRun>) =
        asked.iter().partition(|r| !r.run.broken.is_empty());
    let ours = ComparisonRow {
        method: "linerate".to_owned(),
        runs: sick.len(),
        right: sick.iter().filter(|r| r.exact).count(),
        healthy: healthy.len(),
        alarms: healthy.iter().filter(|r| !r.findings.is_empty()).count(),
    };
    let theirs = METHODS.iter().map(|method| {
        let is = |r: &JudgedRun, pick: fn(&Guess) -> bool| {
            r.guesses.iter().any(|guess| guess.method == method.name && pick(guess))
        };
        ComparisonRow {
            method: method.name.to_owned(),
            runs: sick.len(),
            right: sick.iter().filter(|r| is(r, |g| g.right)).count(),
            healthy: healthy.len(),
            alarms: healthy.iter().filter(|r| is(r, |g| g.alarm)).count(),
        }
    });
    std::iter::once(ours).chain(theirs).collect()
}

/// The comparison as Markdown; nothing when no run has cells.
pub fn table(records: &[JudgedRun]) -> String {
    let rows = rows(records);
    if rows.iter().all(|row| row.runs + row.healthy == 0) {
        return String::new();
    }
    let mut text = String::from(
        "| method | runs with faults | every fault located | 95 % interval | healthy runs | with an alarm |\n\
         | --- | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for row in rows {
        let (low, high) = wilson(row.right, row.runs);
        let _ = writeln!(
            text,
            "| {} | {} | {:.0} % | {:.0} to {:.0} % | {} | {} |",
            row.method,
            row.runs,
            100.0 * row.right as f64 / row.runs.max(1) as f64,
            100.0 * low,
            100.0 * high,
            row.healthy,
            row.alarms
        );
    }
    for method in &METHODS {
        let _ = write!(text, "\n{}: {}.", method.name, method.source);
    }
    text + "\nAll but linerate get the number of faults, and a host of a bad group counts as right for them.\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

    #[test]
    fn every_method_has_a_row_over_the_same_runs() {
        let guess =
            |right| METHODS.iter().map(|m| Guess { method: m.name.into(), right, alarm: true }).collect();
        let mut sick = record(Some("f"), true, true, 0);
        sick.guesses = guess(false);
        let mut healthy = record(None, false, false, 0);
        healthy.guesses = guess(false);
        let unasked = record(Some("f"), true, true, 0);
        let rows = rows(&[sick, healthy, unasked]);
        assert_eq!(rows.len(), 1 + METHODS.len());
        assert_eq!((rows[0].runs, rows[0].right, rows[0].healthy, rows[0].alarms), (1, 1, 1, 0));
        assert_eq!((rows[1].runs, rows[1].right, rows[1].alarms), (1, 0, 1));
        assert!(table(&[record(None, true, true, 0)]).is_empty());
    }
}
