//! Which methods won the calibration. Pure.
//!
//! What comes in: the turns. What goes out: the index of a pair of methods. Speed comes first; among those
//! that are about as fast, the one with the least CPU time on both ends together: of the whole hosts where
//! both ends report it, because softirq is no thread's, else of the threads of the test.

use linerate_model::load::Turn;

/// Methods that reach this share of the best rate count as equally fast. What is chosen ends within 5 % of
/// the best: 3 % are for CPU, the rest is for what medians of three turns still differ by.
const ABOUT_AS_FAST: f64 = 0.97;

/// A method below this share of the best rate in its first turn gets no second one.
const WORTH_A_TURN: f64 = 0.7;

/// The turns of one pair of methods, combined.
struct Pair<'a> {
    turn: &'a Turn,
    bps: f64,
    /// Of the threads of both ends.
    s_per_gb: f64,
    /// Of the whole hosts; `None` where a turn lacks it.
    host_s_per_gb: Option<f64>,
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match (values.len() % 2, values.get(middle)) {
        (_, None) => 0.0,
        (1, Some(value)) => *value,
        (_, Some(value)) => f64::midpoint(values[middle - 1], *value),
    }
}

/// Candidates by their longest turns, medians.
fn pairs(turns: &[Turn]) -> Vec<Pair<'_>> {
    let counts = |turn: &&Turn| turn.failed.is_none() && turn.bps > 0.0 && !turn.copying;
    let longest = turns.iter().filter(counts).map(|turn| turn.turn_ms).max();
    let turns: Vec<&Turn> = turns.iter().filter(counts).filter(|t| Some(t.turn_ms) == longest).collect();
    let mut pairs: Vec<Pair<'_>> = Vec::new();
    for turn in &turns {
        let is_same = |other: &Turn| other.send == turn.send && other.receive == turn.receive;
        if pairs.iter().any(|pair| is_same(pair.turn)) {
            continue;
        }
        let own = || turns.iter().filter(|other| is_same(other));
        let host: Option<Vec<f64>> = own().map(|turn| turn.host_s_per_gb).collect();
        pairs.push(Pair {
            turn,
            bps: median(own().map(|turn| turn.bps).collect()),
            s_per_gb: median(own().map(|turn| turn.tx_s_per_gb + turn.rx_s_per_gb).collect()),
            host_s_per_gb: host.map(median),
        });
    }
    pairs
}

/// Send and receive methods, the fastest first.
pub(super) fn ranked(turns: &[Turn]) -> Vec<(&str, &str)> {
    let mut pairs = pairs(turns);
    pairs.sort_by(|a, b| b.bps.total_cmp(&a.bps));
    pairs.iter().map(|pair| (pair.turn.send.as_str(), pair.turn.receive.as_str())).collect()
}

/// The send and receive method to use; `None` when no turn moved anything.
pub(super) fn best(turns: &[Turn]) -> Option<(&str, &str)> {
    let pairs = pairs(turns);
    let most = pairs.iter().map(|pair| pair.bps).fold(0.0, f64::max);
    let by_host = pairs.iter().all(|pair| pair.host_s_per_gb.is_some());
    let cost = |pair: &Pair<'_>| pair.host_s_per_gb.filter(|_| by_host).unwrap_or(pair.s_per_gb);
    pairs
        .iter()
        .filter(|pair| pair.bps >= ABOUT_AS_FAST * most)
        .min_by(|a, b| cost(a).total_cmp(&cost(b)))
        .map(|pair| (pair.turn.send.as_str(), pair.turn.receive.as_str()))
}

/// Whether a pair of methods that had its first turn deserves another.
pub(super) fn is_worth_a_turn(turns: &[Turn], send: &str, receive: &str) -> bool {
    let most = turns.iter().map(|turn| turn.bps).fold(0.0, f64::max);
    turns
        .iter()
        .any(|t| t.send == send && t.receive == receive && t.failed.is_none() && t.bps >= WORTH_A_TURN * most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(send: &str, bps: f64, tx: f64) -> Turn {
        Turn {
            send: send.into(),
            receive: "truncate".into(),
            bps,
            tx_s_per_gb: tx,
            rx_s_per_gb: 0.02,
            ..Turn::default()
        }
    }

    #[test]
    fn the_fastest_wins_unless_another_is_as_fast_and_cheaper() {
        assert_eq!(best(&[turn("a", 10e9, 0.2), turn("b", 5e9, 0.01)]), Some(("a", "truncate")));
        assert_eq!(best(&[turn("a", 10e9, 0.2), turn("b", 9.8e9, 0.1)]), Some(("b", "truncate")));
        assert_eq!(best(&[turn("a", 10e9, 0.2), turn("b", 9.6e9, 0.1)]), Some(("a", "truncate")));
        assert_eq!(best(&[]), None);
        let failed = Turn { failed: Some("no".into()), ..turn("a", 9e9, 0.0) };
        assert_eq!(best(&[failed, turn("b", 0.0, 0.1)]), None);
    }

    #[test]
    fn turns_of_the_same_methods_are_combined() {
        let turns = [turn("a", 10e9, 0.1), turn("b", 9e9, 0.1), turn("a", 4e9, 0.1), turn("b", 9e9, 0.1)];
        assert_eq!(best(&turns), Some(("b", "truncate")));
        assert_eq!(ranked(&turns), [("b", "truncate"), ("a", "truncate")]);
        assert!(is_worth_a_turn(&turns, "b", "truncate") && !is_worth_a_turn(&turns, "c", "truncate"));
        assert!(!is_worth_a_turn(&[turn("a", 10e9, 0.1), turn("b", 6e9, 0.1)], "b", "truncate"));
        // One contended turn of three decides nothing.
        let contended =
            [turn("a", 10e9, 0.1), turn("a", 2e9, 0.1), turn("a", 10e9, 0.1), turn("b", 9e9, 0.1)];
        assert_eq!(best(&contended), Some(("a", "truncate")));
    }

    #[test]
    fn long_turns_decide() {
        let long = |send, bps| Turn { turn_ms: 300, ..turn(send, bps, 0.1) };
        let turns = [turn("a", 20e9, 0.1), turn("c", 30e9, 0.1), long("a", 9e9), long("b", 10e9)];
        assert_eq!(best(&turns), Some(("b", "truncate")));
    }

    #[test]
    fn the_whole_hosts_decide_where_both_report_them() {
        let host = |send, tx, host_s_per_gb| Turn { host_s_per_gb, ..turn(send, 10e9, tx) };
        let cheap_threads = host("a", 0.1, Some(0.9));
        assert_eq!(best(&[cheap_threads.clone(), host("b", 0.3, Some(0.5))]), Some(("b", "truncate")));
        assert_eq!(best(&[cheap_threads, host("b", 0.3, None)]), Some(("a", "truncate")));
    }

    #[test]
    fn a_receive_that_copies_is_never_chosen() {
        let copying = Turn { copying: true, receive: "read".into(), ..turn("a", 90e9, 0.0) };
        assert_eq!(best(&[copying, turn("a", 1e9, 0.1)]), Some(("a", "truncate")));
    }
}
