//! What was seen of pairs and hosts within a minute, as the values of series.
//!
//! In: counts of probes and RTTs, the time. Out: when a minute is over, what it showed.

use std::collections::BTreeMap;

use linerate_model::suspect::Direction;

/// Milliseconds of a minute.
pub(crate) const MINUTE_MS: u64 = 60_000;

/// What a value of a minute is of, by indices of hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SeenOf {
    /// A host with all its partners.
    Host(usize, Direction),
    /// From one host to another.
    Pair(usize, usize),
}

/// Which figure a value of a minute is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SeenFigure {
    /// Share that was lost, 0 to 1.
    Loss,
    /// Median RTT, microseconds.
    Rtt,
    /// 95th percentile of RTTs, microseconds.
    RttP95,
    /// Segments that TCP sent again, a second.
    Retransmits,
}

/// A minute that is over.
#[derive(Debug, Clone, PartialEq)]
pub struct SeenMinute {
    /// Start, Unix milliseconds.
    pub start_ms: u64,
    /// Hosts before pairs, which may be more than are kept.
    pub values: Vec<(SeenOf, SeenFigure, f64)>,
}

/// What came from one host to another.
#[derive(Debug, Default)]
struct Counts {
    sent: u64,
    lost: u64,
    rtts_us: Vec<u32>,
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.lost += other.lost;
        self.rtts_us.extend(&other.rtts_us);
    }

    fn loss(&self) -> Option<f64> {
        (self.sent > 0).then(|| self.lost as f64 / self.sent as f64)
    }
}

/// The minute that is not over.
#[derive(Debug, Default)]
pub struct MinuteCounts {
    minute: u64,
    pairs: BTreeMap<(usize, usize), Counts>,
    retransmits: BTreeMap<usize, f64>,
}

impl MinuteCounts {
    /// Learns of a pair: probes from one host to another, and RTTs of those that the receiver sent to it.
    /// Gives the minute before where this one is the first of the next.
    pub fn learn(
        &mut self,
        at_ms: u64,
        (from, to): (usize, usize),
        (sent, lost): (u64, u64),
        rtts_us: &[u32],
    ) -> Option<SeenMinute> {
        let over = self.turn(at_ms);
        let counts = self.pairs.entry((from, to)).or_default();
        counts.sent = counts.sent.saturating_add(sent);
        counts.lost = counts.lost.saturating_add(lost);
        self.pairs.entry((to, from)).or_default().rtts_us.extend(rtts_us);
        over
    }

    /// Learns of a host what TCP sent again, segments a second. Gives the minute before, as the other does.
    pub fn learn_retransmits(&mut self, at_ms: u64, host: usize, per_s: f64) -> Option<SeenMinute> {
        let over = self.turn(at_ms);
        self.retransmits.insert(host, per_s);
        over
    }

    /// Ends the minute when another has begun.
    fn turn(&mut self, at_ms: u64) -> Option<SeenMinute> {
        let over = (at_ms / MINUTE_MS != self.minute).then(|| self.end()).flatten();
        self.minute = at_ms / MINUTE_MS;
        over
    }

    /// What was seen so far of the minute, which ends with it; `None` where nothing was.
    pub fn end(&mut self) -> Option<SeenMinute> {
        let mut pairs = std::mem::take(&mut self.pairs);
        let mut hosts: BTreeMap<(usize, Direction), Counts> = BTreeMap::new();
        for ((from, to), counts) in &mut pairs {
            counts.rtts_us.sort_unstable();
            hosts.entry((*from, Direction::Tx)).or_default().add(counts);
            let received = hosts.entry((*to, Direction::Rx)).or_default();
            received.sent += counts.sent;
            received.lost += counts.lost;
        }
        let mut values = Vec::new();
        for ((host, direction), mut counts) in hosts {
            values.extend(counts.loss().map(|loss| (SeenOf::Host(host, direction), SeenFigure::Loss, loss)));
            counts.rtts_us.sort_unstable();
            // A probe and its answer pass both directions.
            push_rtts(&mut values, SeenOf::Host(host, Direction::Both), &counts.rtts_us);
        }
        let retransmits = std::mem::take(&mut self.retransmits).into_iter();
        values.extend(
            retransmits
                .map(|(host, per_s)| (SeenOf::Host(host, Direction::Tx), SeenFigure::Retransmits, per_s)),
        );
        for ((from, to), counts) in pairs {
            let of = SeenOf::Pair(from, to);
            values.extend(counts.loss().map(|loss| (of, SeenFigure::Loss, loss)));
            push_rtts(&mut values, of, &counts.rtts_us);
        }
        (!values.is_empty()).then_some(SeenMinute { start_ms: self.minute * MINUTE_MS, values })
    }
}

fn push_rtts(values: &mut Vec<(SeenOf, SeenFigure, f64)>, of: SeenOf, sorted: &[u32]) {
    let figures = [(SeenFigure::Rtt, 50), (SeenFigure::RttP95, 95)];
    values.extend(
        figures
            .into_iter()
            .filter_map(|(figure, percent)| Some((of, figure, f64::from(percentile(sorted, percent)?)))),
    );
}

/// The smallest value that so many percent of the sorted ones do not exceed.
fn percentile(sorted: &[u32], percent: usize) -> Option<u32> {
    sorted.get((sorted.len() * percent).div_ceil(100).checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(seen: &SeenMinute, of: SeenOf, figure: SeenFigure) -> Option<f64> {
        seen.values.iter().find(|one| (one.0, one.1) == (of, figure)).map(|one| one.2)
    }

    #[test]
    fn a_minute_has_its_hosts_and_pairs_and_what_was_not_seen_is_not_zero() {
        let mut counts = MinuteCounts::default();
        let start = 30_000_000 * MINUTE_MS;
        assert_eq!(counts.learn(start, (0, 1), (90, 9), &(1..=100).collect::<Vec<u32>>()), None);
        assert_eq!(counts.learn(start + 59_999, (2, 1), (10, 1), &[]), None);
        assert_eq!(counts.learn_retransmits(start + 30_000, 2, 1.5), None);
        let seen = counts.learn(start + MINUTE_MS, (0, 1), (1, 0), &[]).unwrap();
        assert_eq!(seen.start_ms, start);
        let found = |of, figure| value(&seen, of, figure);
        assert_eq!(found(SeenOf::Pair(0, 1), SeenFigure::Loss), Some(0.1));
        assert_eq!(found(SeenOf::Host(1, Direction::Rx), SeenFigure::Loss), Some(0.1));
        assert_eq!(found(SeenOf::Host(0, Direction::Tx), SeenFigure::Loss), Some(0.1));
        assert_eq!(found(SeenOf::Host(2, Direction::Tx), SeenFigure::Retransmits), Some(1.5));
        // The RTTs are of the probes that the receiver had sent.
        assert_eq!(found(SeenOf::Pair(1, 0), SeenFigure::Rtt), Some(50.0));
        assert_eq!(found(SeenOf::Pair(1, 0), SeenFigure::RttP95), Some(95.0));
        assert_eq!(found(SeenOf::Host(1, Direction::Both), SeenFigure::RttP95), Some(95.0));
        assert_eq!(found(SeenOf::Host(1, Direction::Tx), SeenFigure::Loss), None);
        assert_eq!(found(SeenOf::Pair(0, 1), SeenFigure::Rtt), None);
        let first_pair = seen.values.iter().position(|one| matches!(one.0, SeenOf::Pair(..))).unwrap();
        assert!(seen.values[first_pair..].iter().all(|one| matches!(one.0, SeenOf::Pair(..))));
        // What began after it is the next one's.
        assert_eq!(value(&counts.end().unwrap(), SeenOf::Pair(0, 1), SeenFigure::Loss), Some(0.0));
        assert_eq!(counts.end(), None);
    }
}
