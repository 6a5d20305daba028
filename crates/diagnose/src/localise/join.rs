//! Several paths that are bad by themselves and end at the same host. What comes and goes there hits some tests and misses others;
//! what limits it to a rate hurts only those partners that are faster. No column of the host is bad enough as a whole.
//!
//! Located losses come in, the same go out with such paths joined. Two paths that are broken independently and share an end by chance are
//! far less likely than one host that is bad at times or for some.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::finding::{Direction, Element, Response};

use super::columns::Column;
use super::search::Located;
use crate::responses::Row;

/// A loss above so many doublings is none that comes and goes: nothing got through.
const DEAD: f64 = 6.0;
/// Fewer paths than this are paths.
const PATHS_MIN: usize = 2;

/// Sender and receiver of a row.
type Ends<'e, 'a> = &'e dyn Fn(usize) -> (&'a str, &'a str);

/// Joins until nothing is left to join.
pub(super) fn join(
    mut found: Vec<Located>,
    columns: &[Column],
    rows: &[Row],
    ends: Ends<'_, '_>,
) -> Vec<Located> {
    while let Some((host, direction, members)) = common_end(&found, rows, ends) {
        let Some(column) =
            columns.iter().find(|c| c.direction == direction && c.element == Element::Host(host.to_owned()))
        else {
            return found;
        };
        let mut joined: Vec<Located> = members.iter().rev().map(|i| found.remove(*i)).collect();
        joined.reverse();
        found.insert(members[0], one(column.clone(), joined));
    }
    found
}

/// The host at which most paths end, with the direction and the places of the paths in the list.
fn common_end<'a>(
    found: &[Located],
    rows: &[Row],
    ends: Ends<'_, 'a>,
) -> Option<(&'a str, Direction, Vec<usize>)> {
    let mut by_end: BTreeMap<(&str, Direction), Vec<usize>> = BTreeMap::new();
    for (number, path) in found.iter().enumerate().filter(|(_, l)| is_path(l, rows)) {
        let of = |pick: fn((&'a str, &'a str)) -> &'a str| -> BTreeSet<&'a str> {
            path.rows.iter().map(|row| pick(ends(*row))).collect()
        };
        for (hosts, direction) in [(of(|e| e.0), Direction::Tx), (of(|e| e.1), Direction::Rx)] {
            if let Some(host) = hosts.first().filter(|_| hosts.len() == 1) {
                by_end.entry((host, direction)).or_default().push(number);
            }
        }
    }
    let most = by_end.into_iter().filter(|(_, paths)| paths.len() >= PATHS_MIN);
    most.max_by_key(|(_, paths)| paths.len()).map(|((host, direction), paths)| (host, direction, paths))
}

/// A loss of throughput on a way between two hosts or groups that does not let nothing through.
fn is_path(located: &Located, rows: &[Row]) -> bool {
    let is_way = match located.column.element {
        Element::Pair(..) => located.column.direction == Direction::Tx,
        Element::GroupToGroup(..) => true,
        _ => false,
    };
    is_way
        && !located.unconfirmed
        && located.rows.iter().all(|row| rows[*row].y < DEAD)
        && located.gains.iter().any(|(response, _)| *response == Response::Throughput)
}

/// The host in place of its paths; they stay as what else it could be.
fn one(column: Column, mut paths: Vec<Located>) -> Located {
    paths.sort_by(|a, b| b.score.total_cmp(&a.score));
    let rows: BTreeSet<usize> = paths.iter().flat_map(|l| l.rows.iter().copied()).collect();
    let score = paths[0].score + paths[0].column.penalty - column.penalty;
    let alternatives = paths.iter().map(|l| (l.column.clone(), l.score - l.column.penalty)).collect();
    let gains = paths[0].gains.clone();
    Located { column, score, gains, rows: rows.into_iter().collect(), alternatives, unconfirmed: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Kind;
    use linerate_model::inventory::Layer;

    fn path(from: &str, to: &str, row: usize) -> Located {
        let element = Element::Pair(from.into(), to.into());
        Located {
            column: Column { element, direction: Direction::Tx, parts: vec![vec![row]], penalty: 4.6 },
            score: 9.0,
            gains: vec![(Response::Throughput, 13.0)],
            rows: vec![row],
            alternatives: Vec::new(),
            unconfirmed: false,
        }
    }

    fn row(cell: usize, y: f64) -> Row {
        Row {
            cell,
            response: Response::Throughput,
            kind: Kind { layer: Layer::Underlay, shared_groups: 0 },
            y,
            sigma: 0.1,
            effect_min: 0.2,
            common: 0.0,
            expected: 1.0,
            measured: 0.5,
        }
    }

    #[test]
    fn paths_with_a_common_end_become_the_host_and_others_stay() {
        let host = Column {
            element: Element::Host("a".into()),
            direction: Direction::Tx,
            parts: vec![vec![0, 1, 2, 3]],
            penalty: 2.8,
        };
        let rows = [row(0, 1.0), row(1, 1.1), row(2, 1.0), row(3, 0.0)];
        let found = vec![path("a", "b", 0), path("x", "y", 2), path("a", "c", 1)];
        let ends = |row: usize| [("a", "b"), ("a", "c"), ("x", "y"), ("a", "d")][row];
        let joined = join(found, std::slice::from_ref(&host), &rows, &ends);
        assert_eq!(joined.len(), 2);
        assert_eq!(
            (&joined[0].column.element, joined[0].rows.as_slice()),
            (&host.element, [0, 1].as_slice())
        );
        assert_eq!(joined[0].alternatives.len(), 2);
        let dead = [row(0, 9.0), row(1, 9.0)];
        let blocked = join(vec![path("a", "b", 0), path("a", "c", 1)], &[host], &dead, &ends);
        assert_eq!(blocked.len(), 2, "what lets nothing through does not come and go");
    }
}
