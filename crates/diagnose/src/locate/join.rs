//! Several paths that are bad by themselves and have an end in common. What comes and goes there hits some
//! tests and misses others; what limits it to a rate hurts only those partners that are faster. No column of
//! the end is bad enough as a whole.
//!
//! Located losses come in, the same go out with such paths joined, and with those paths left to a host or
//! group that is bad anyway. Two places that are broken independently and share an end by chance are far less
//! likely than one that is bad intermittently or for some.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::finding::{Direction, Metric, Suspect};

use super::column::Column;
use super::located::Located;
use crate::metrics::Row;
use crate::rules::Rules;
use crate::stats::median;

/// Joins until nothing is left to join.
pub(super) fn join(mut found: Vec<Located>, columns: &[Column], rows: &[Row], rules: &Rules) -> Vec<Located> {
    let touching = touching(&found, columns, rows, rules);
    while let Some((column, members)) = common_end(&found, columns, rows, &touching, rules) {
        let mut joined: Vec<Located> = members.iter().rev().map(|i| found.remove(*i)).collect();
        joined.reverse();
        found.insert(members[0], one(columns[column].clone(), joined));
    }
    absorb(&mut found, rows, rules);
    found
}

/// The columns of each cell of a path; nothing is computed for the many clusters without one.
fn touching(found: &[Located], columns: &[Column], rows: &[Row], rules: &Rules) -> Vec<Vec<usize>> {
    let paths = found.iter().filter(|located| is_path(located, rows, rules));
    let cells: BTreeSet<usize> = paths.flat_map(|path| path.rows.iter().map(|row| rows[*row].cell)).collect();
    let Some(last) = cells.last() else { return Vec::new() };
    let mut touching = vec![Vec::new(); last + 1];
    for (number, column) in columns.iter().enumerate() {
        for cell in column.parts.iter().flatten().filter(|cell| cells.contains(cell)) {
            touching[*cell].push(number);
        }
    }
    touching
}

/// The host or group at which most paths begin, or end, with their places in the list; the narrowest when
/// several have as many.
fn common_end(
    found: &[Located],
    columns: &[Column],
    rows: &[Row],
    touching: &[Vec<usize>],
    rules: &Rules,
) -> Option<(usize, Vec<usize>)> {
    let mut by_end: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (number, path) in found.iter().enumerate().filter(|(_, l)| is_path(l, rows, rules)) {
        let Some(first) = path.rows.first() else { continue };
        for column in &touching[rows[*first].cell] {
            let end = &columns[*column];
            let is_end = matches!(end.suspect, Suspect::Host(_) | Suspect::Group(_))
                && end.direction != Direction::Both
                && passes(path, end, rows);
            if is_end {
                by_end.entry(*column).or_default().push(number);
            }
        }
    }
    let most = by_end.into_iter().filter(|(_, paths)| paths.len() >= rules.locate.paths_min);
    most.max_by_key(|(column, paths)| (paths.len(), std::cmp::Reverse(columns[*column].cells().len())))
}

/// Whether all that is bad on a path goes through a suspect.
fn passes(path: &Located, end: &Column, rows: &[Row]) -> bool {
    let cells = end.cells();
    path.rows.iter().all(|row| cells.contains(&rows[*row].cell))
}

/// Leaves a path to the host or group that it passes, when that is bad anyway and no less, or comes and goes.
fn absorb(found: &mut Vec<Located>, rows: &[Row], rules: &Rules) {
    let mut number = 0;
    while number < found.len() {
        let path = &found[number];
        let end = found.iter().position(|end| {
            matches!(end.column.suspect, Suspect::Host(_) | Suspect::Group(_))
                && !end.unconfirmed
                && is_path(path, rows, rules)
                && passes(path, &end.column, rows)
                && explains(end, path, rows, rules)
        });
        let Some(end) = end else {
            number += 1;
            continue;
        };
        let path = found.remove(number);
        let end = &mut found[end - usize::from(end > number)];
        end.rows.extend(path.rows);
        end.rows.sort_unstable();
        end.rows.dedup();
    }
}

/// Whether what is wrong at the end of a path may be all that is wrong on it.
fn explains(end: &Located, path: &Located, rows: &[Row], rules: &Rules) -> bool {
    let bad: BTreeSet<usize> = end.rows.iter().map(|row| rows[*row].cell).collect();
    let steady = bad.len() as f64 >= rules.locate.steady_share * end.column.cells().len() as f64;
    let lost = |l: &Located| {
        let throughput = l.rows.iter().map(|row| &rows[*row]).filter(|r| r.response == Metric::Throughput);
        median(&throughput.map(|r| r.y).collect::<Vec<_>>())
    };
    !steady || lost(end).zip(lost(path)).is_some_and(|(end, path)| path <= end + rules.locate.same_loss)
}

/// A loss of throughput on a way between two hosts or groups that does not let nothing through.
fn is_path(located: &Located, rows: &[Row], rules: &Rules) -> bool {
    let is_way = match located.column.suspect {
        Suspect::Pair(..) => located.column.direction == Direction::Tx,
        Suspect::GroupToGroup(..) => true,
        _ => false,
    };
    is_way
        && !located.unconfirmed
        && located.rows.iter().all(|row| rows[*row].y < rules.metrics.dead)
        && located.gains.iter().any(|(response, _)| *response == Metric::Throughput)
}

/// The host in place of its paths; they stay as what else it could be.
fn one(column: Column, mut paths: Vec<Located>) -> Located {
    paths.sort_by(|a, b| b.score.total_cmp(&a.score));
    let rows: BTreeSet<usize> = paths.iter().flat_map(|l| l.rows.iter().copied()).collect();
    let score = paths[0].score + paths[0].column.penalty - column.penalty;
    let alternatives = paths.iter().map(|l| (l.column.clone(), l.score - l.column.penalty)).collect();
    let gains = paths[0].gains.clone();
    Located {
        column,
        score,
        gains,
        rows: rows.into_iter().collect(),
        alternatives,
        unconfirmed: false,
        values: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn join(found: Vec<Located>, columns: &[Column], rows: &[Row]) -> Vec<Located> {
        super::join(found, columns, rows, &Rules::DEFAULT)
    }

    use crate::evidence::Kind;
    use linerate_model::inventory::Layer;

    fn column(suspect: Suspect, direction: Direction, cells: &[usize]) -> Column {
        Column { suspect, direction, parts: vec![cells.to_vec()], penalty: 2.8 }
    }

    fn located(column: Column, rows: Vec<usize>) -> Located {
        let gains = vec![(Metric::Throughput, 13.0)];
        Located {
            column,
            score: 9.0,
            gains,
            rows,
            alternatives: Vec::new(),
            unconfirmed: false,
            values: None,
        }
    }

    fn path(from: &str, to: &str, row: usize) -> Located {
        located(column(Suspect::Pair(from.into(), to.into()), Direction::Tx, &[row]), vec![row])
    }

    fn row(cell: usize, y: f64) -> Row {
        Row {
            cell,
            response: Metric::Throughput,
            kind: Kind { layer: Layer::Underlay, shared_groups: 0 },
            y,
            sigma: 0.1,
            effect_min: 0.2,
            common: 0.0,
            expected: 1.0,
            measured: 0.5,
        }
    }

    /// Cells: a to b, a to c, x to y, a to d. The group holds a and x.
    fn ends() -> Vec<Column> {
        vec![
            column(Suspect::Group("g".into()), Direction::Tx, &[0, 1, 2, 3]),
            column(Suspect::Host("a".into()), Direction::Tx, &[0, 1, 3]),
            column(Suspect::Host("x".into()), Direction::Tx, &[2]),
        ]
    }

    #[test]
    fn paths_with_a_common_end_become_the_host_and_others_stay() {
        let rows = [row(0, 1.0), row(1, 1.1), row(2, 1.0), row(3, 0.0)];
        let columns = &ends()[1..];
        let found = vec![path("a", "b", 0), path("x", "y", 2), path("a", "c", 1)];
        let joined = join(found, columns, &rows);
        assert_eq!(joined.len(), 2);
        assert_eq!(
            (&joined[0].column.suspect, &joined[0].rows[..]),
            (&Suspect::Host("a".into()), &[0, 1][..])
        );
        assert_eq!(joined[0].alternatives.len(), 2);
        let dead = [row(0, 9.0), row(1, 9.0)];
        let blocked = join(vec![path("a", "b", 0), path("a", "c", 1)], columns, &dead);
        assert_eq!(blocked.len(), 2, "what lets nothing through does not come and go");
    }

    #[test]
    fn paths_of_several_hosts_of_a_group_become_the_group_and_those_of_one_host_the_host() {
        let rows = [row(0, 1.0), row(1, 1.1), row(2, 1.0), row(3, 0.0)];
        let both = join(vec![path("a", "b", 0), path("x", "y", 2)], &ends(), &rows);
        assert_eq!(both[0].column.suspect, Suspect::Group("g".into()));
        let one = join(vec![path("a", "b", 0), path("a", "c", 1)], &ends(), &rows);
        assert_eq!(one[0].column.suspect, Suspect::Host("a".into()));
    }

    #[test]
    fn a_path_is_left_to_what_it_passes_unless_it_loses_far_more() {
        let whole = || located(ends()[0].clone(), vec![0, 1, 2]);
        let left = |rows: &[Row]| join(vec![whole(), path("a", "d", 3)], &ends(), rows);
        let same = left(&[row(0, 1.0), row(1, 1.1), row(2, 1.0), row(3, 1.9)]);
        assert_eq!((same.len(), &same[0].rows[..]), (1, &[0, 1, 2, 3][..]));
        assert_eq!(
            left(&[row(0, 1.0), row(1, 1.1), row(2, 1.0), row(3, 3.0)]).len(),
            2,
            "a place of its own"
        );
        let at_times = located(ends()[0].clone(), vec![0, 1]);
        let rows = [row(0, 1.0), row(1, 1.1), row(2, 1.0), row(3, 3.0)];
        assert_eq!(join(vec![at_times, path("a", "d", 3)], &ends(), &rows).len(), 1);
    }
}
