//! Which methods won the calibration. Pure.
//!
//! What comes in: the turns. What goes out: the index of a pair of methods. Speed comes first; among those
//! that are about as fast, the one with the least CPU time on both ends together.

use linerate_model::load::Turn;

/// Methods that reach this share of the best rate count as equally fast: turns of one method differ by as
/// much.
const ABOUT_AS_FAST: f64 = 0.92;

/// A method below this share of the best rate in its first turn gets no second one.
const WORTH_A_TURN: f64 = 0.7;

/// The turns of one pair of methods, combined.
struct Pair<'a> {
    turn: &'a Turn,
    bps: f64,
    s_per_gb: f64,
}

fn pairs(turns: &[Turn]) -> Vec<Pair<'_>> {
    let mut pairs: Vec<(Pair<'_>, f64)> = Vec::new();
    for turn in turns.iter().filter(|turn| turn.failed.is_none() && turn.bps > 0.0) {
        let cost = turn.tx_s_per_gb + turn.rx_s_per_gb;
        let known = pairs
            .iter_mut()
            .find(|(pair, _)| pair.turn.send == turn.send && pair.turn.receive == turn.receive);
        if let Some((pair, count)) = known {
            *count += 1.0;
            pair.bps += (turn.bps - pair.bps) / *count;
            pair.s_per_gb += (cost - pair.s_per_gb) / *count;
        } else {
            pairs.push((Pair { turn, bps: turn.bps, s_per_gb: cost }, 1.0));
        }
    }
    pairs.into_iter().map(|(pair, _)| pair).collect()
}

/// The send and receive method to use; `None` when no turn moved anything.
pub(super) fn best(turns: &[Turn]) -> Option<(&str, &str)> {
    let pairs = pairs(turns);
    let most = pairs.iter().map(|pair| pair.bps).fold(0.0, f64::max);
    pairs
        .iter()
        .filter(|pair| pair.bps >= ABOUT_AS_FAST * most)
        .min_by(|a, b| a.s_per_gb.total_cmp(&b.s_per_gb))
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
        assert_eq!(best(&[turn("a", 10e9, 0.2), turn("b", 9.5e9, 0.1)]), Some(("b", "truncate")));
        assert_eq!(best(&[]), None);
        let failed = Turn { failed: Some("no".into()), ..turn("a", 9e9, 0.0) };
        assert_eq!(best(&[failed, turn("b", 0.0, 0.1)]), None);
    }

    #[test]
    fn turns_of_the_same_methods_are_averaged() {
        let turns = [turn("a", 10e9, 0.1), turn("b", 9e9, 0.1), turn("a", 4e9, 0.1), turn("b", 9e9, 0.1)];
        assert_eq!(best(&turns), Some(("b", "truncate")));
        assert!(is_worth_a_turn(&turns, "b", "truncate") && !is_worth_a_turn(&turns, "c", "truncate"));
        assert!(!is_worth_a_turn(&[turn("a", 10e9, 0.1), turn("b", 6e9, 0.1)], "b", "truncate"));
    }
}
