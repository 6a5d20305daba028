//! What one direction of a host has lost: a sequential test of "more than normal".
//!
//! Each datagram that arrived makes loss a little less likely, each that was lost much more. The sum of both,
//! never below zero, is Page's cumulative sum; it answers as soon as the evidence is strong enough, after
//! three losses within half a minute or eight within an hour.

use std::collections::{BTreeSet, VecDeque};

use crate::rules::{
    APART_MS, HEAVY, HOST_PARTNERS, NORMAL_FACTOR, PAIR_CHANCE, PAIR_EVENTS, SCORE, TestRules, WANTED_FACTOR,
};

/// What is normal, and what is to be found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Weights {
    /// What each datagram that arrived takes away.
    arrived: f64,
    /// What a loss adds.
    lost: f64,
}

impl Weights {
    /// For a fleet in which half of the hosts lose no more than this, 0 to 1.
    pub(crate) fn of(median: f64, rules: &TestRules) -> Self {
        let normal = (NORMAL_FACTOR * median).clamp(rules.normal.0, rules.normal.1);
        let wanted = rules.wanted.max(WANTED_FACTOR * normal);
        Self { arrived: ((1.0 - normal) / (1.0 - wanted)).ln(), lost: (wanted / normal).ln() }
    }
}

/// A loss: when, and with which partner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Loss {
    pub(crate) at_ms: u64,
    pub(crate) partner: usize,
}

/// Of whom the losses are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Belongs {
    /// Of the host: with several partners.
    ToHost,
    /// Of the path to this partner.
    ToPair(usize),
}

/// One direction of a host.
#[derive(Debug, Clone, Default)]
pub(crate) struct Evidence {
    score: f64,
    losses: VecDeque<Loss>,
    /// All partners that were seen of.
    known: BTreeSet<usize>,
    /// When a loss counted last.
    counted_ms: Option<u64>,
    /// Since the score left zero.
    pub(crate) sent: u64,
    pub(crate) lost: u64,
    /// For what is normal: of the last hours.
    recent: (f64, f64),
}

impl Evidence {
    /// Learns of datagrams sent and lost. Whether a loss counted.
    pub(crate) fn learn(
        &mut self,
        at_ms: u64,
        partner: usize,
        (sent, lost): (u64, u64),
        weights: Weights,
        memory_ms: u64,
    ) -> bool {
        self.known.insert(partner);
        self.recent.0 += sent as f64;
        self.recent.1 += lost as f64;
        self.score -= sent.saturating_sub(lost) as f64 * weights.arrived;
        if self.score <= 0.0 {
            self.forget();
        }
        if lost == 0 {
            if self.score > 0.0 {
                self.sent = self.sent.saturating_add(sent);
            }
            return false;
        }
        // How much of it was sent before the first loss is not known.
        self.sent = self.sent.saturating_add(if self.lost == 0 { lost } else { sent });
        self.lost = self.lost.saturating_add(lost);
        self.losses.push_back(Loss { at_ms, partner });
        while self.losses.front().is_some_and(|first| first.at_ms + memory_ms < at_ms) {
            self.losses.pop_front();
        }
        let counts = self.counted_ms.is_none_or(|counted| at_ms >= counted + APART_MS);
        if counts {
            self.counted_ms = Some(at_ms);
            // What takes long to be reported apart must not take long to be forgotten.
            self.score = (self.score + weights.lost).min(4.0 * SCORE);
        }
        counts
    }

    /// Nothing is suspected any more.
    pub(crate) fn forget(&mut self) {
        self.score = 0.0;
        self.losses.clear();
        (self.sent, self.lost) = (0, 0);
    }

    pub(crate) fn score(&self) -> f64 {
        self.score
    }

    /// Whether it is beyond chance, and no short interruption.
    pub(crate) fn is_enough(&self, at_ms: u64, heavy_ms: u64) -> bool {
        let is_heavy = self.lost as f64 > HEAVY * self.sent as f64;
        let lasts = self.since_ms().is_some_and(|since| at_ms >= since + heavy_ms);
        self.score >= SCORE && (lasts || !is_heavy)
    }

    /// When the first of the losses was.
    pub(crate) fn since_ms(&self) -> Option<u64> {
        self.losses.front().map(|loss| loss.at_ms)
    }

    /// Partners of the losses, each once.
    pub(crate) fn partners(&self) -> Vec<usize> {
        let mut partners: Vec<usize> = self.losses.iter().map(|loss| loss.partner).collect();
        partners.sort_unstable();
        partners.dedup();
        partners
    }

    /// The partner of each loss.
    pub(crate) fn lost_with(&self) -> impl Iterator<Item = usize> + '_ {
        self.losses.iter().map(|loss| loss.partner)
    }

    /// Of whom the losses are, without those with partners that have more evidence against them; `None` until
    /// it can be reported.
    pub(crate) fn belongs(&self, is_explained: impl Fn(usize) -> bool) -> Option<Belongs> {
        let mut counts: Vec<(usize, usize)> = self
            .partners()
            .into_iter()
            .filter(|partner| !is_explained(*partner))
            .map(|partner| (self.losses.iter().filter(|loss| loss.partner == partner).count(), partner))
            .collect();
        counts.sort_unstable();
        let all: usize = counts.iter().map(|(count, _)| count).sum();
        let (most, partner) = *counts.last()?;
        if most >= PAIR_EVENTS && chance(most, all, self.known.len()) < PAIR_CHANCE {
            return Some(Belongs::ToPair(partner));
        }
        (counts.len() >= HOST_PARTNERS).then_some(Belongs::ToHost)
    }

    /// The share that was lost within the last hours, and less weight to it from now on.
    pub(crate) fn share(&mut self, keep: f64) -> Option<f64> {
        let (sent, lost) = self.recent;
        self.recent = (sent * keep, lost * keep);
        (sent >= 1.0).then(|| lost / sent)
    }
}

/// How often at least so many of all losses fall to one of the partners, when each is as likely as any other,
/// 0 to 1; of a single partner never by chance.
fn chance(most: usize, all: usize, partners: usize) -> f64 {
    if partners < 2 {
        return 0.0;
    }
    (at_least(most, all, 1.0 / partners as f64) * partners as f64).min(1.0)
}

/// How often at least so many of all happen, when each does with this probability, 0 to 1.
pub(crate) fn at_least(count: usize, all: usize, one: f64) -> f64 {
    // Binomial terms, each from the one before; as logarithms, for the first may be smaller than any number.
    let mut term = all as f64 * (1.0 - one).ln();
    let mut above = 0.0;
    for at in 0..=all {
        if at >= count {
            above += term.exp();
        }
        term += ((all - at) as f64 / (at + 1) as f64 * one / (1.0 - one)).ln();
    }
    above.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_of_one_partner_are_chance_until_they_are_too_many() {
        assert!(chance(4, 4, 8) < PAIR_CHANCE && chance(3, 3, 8) > PAIR_CHANCE);
        assert!(chance(8, 8, 2) < PAIR_CHANCE && chance(7, 7, 2) > PAIR_CHANCE);
        assert!((chance(1, 4, 2) - 1.0).abs() < 1e-9);
        assert!(chance(4, 4, 1) < 1e-9);
        // A binomial by hand: twice (5 + 1) of 32.
        assert!((chance(4, 5, 2) - 12.0 / 32.0).abs() < 1e-9);
        // Half of many, although no number is as small as the first term.
        assert!((at_least(5_001, 10_001, 0.5) - 0.5).abs() < 1e-6);
    }
}
