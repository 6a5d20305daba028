//! What peers have: the same key on hosts of the same role that are fine.

use linerate_model::fact::FactValue;
use linerate_model::inventory::Layer;

use crate::host_facts::{Facts, nic_of, pattern_fits};

/// Peers of a suspect for one key.
#[derive(Debug, Clone, Default)]
pub(crate) struct Population {
    /// Value on each peer that has one.
    pub values: Vec<FactValue>,
    /// Peers that were asked.
    pub asked: usize,
    /// The values are those of all NICs of the peers: different things, of which none need be usual.
    pub mixed: bool,
}

impl Population {
    /// Values of the key on the peers. A NIC is compared with the NIC of the same role there, then with the one of the
    /// same name, then with all NICs of the peers.
    pub(crate) fn of(facts: &Facts<'_>, host: &str, key: &str, peers: &[&str]) -> Self {
        let values = peers.iter().filter_map(|peer| same_role(facts, host, key, peer)).collect::<Vec<_>>();
        if !values.is_empty() || nic_of(key).is_none() {
            return Self { values, asked: peers.len(), mixed: false };
        }
        let pattern = nic_of(key)
            .map_or_else(|| key.to_owned(), |nic| key.replacen(&format!("nic.{nic}."), "nic.*.", 1));
        let all = peers
            .iter()
            .flat_map(|peer| facts.matching(peer, &pattern))
            .map(|(_, value)| value.clone())
            .collect::<Vec<_>>();
        Self { asked: peers.len().max(all.len()), values: all, mixed: true }
    }

    /// What most peers have, when at least 60 % of those that have the key agree.
    pub(crate) fn usual(&self) -> Option<&FactValue> {
        // Whatever 60 % agree on outlives every pairing off with something else, so one candidate is enough.
        let mut best = self.values.first()?;
        let mut lead = 0_usize;
        for value in &self.values {
            match (value == best, lead) {
                (true, _) => lead += 1,
                (false, 0) => (best, lead) = (value, 1),
                (false, _) => lead -= 1,
            }
        }
        let same = self.same(best);
        (same * 5 >= self.values.len() * 3).then_some(best)
    }

    /// Whether the value is not what peers have. Without peers nothing differs.
    pub(crate) fn differs(&self, value: &FactValue) -> bool {
        match self.usual() {
            Some(usual) => usual != value && !close(usual, value),
            None => self.mixed && !self.values.is_empty() && self.same(value) == 0,
        }
    }

    /// How many peers have the value.
    pub(crate) fn same(&self, value: &FactValue) -> usize {
        self.values.iter().filter(|v| *v == value).count()
    }

    /// Log odds from the contrast: a peer that is fine with the same value speaks against, peers without it speak for.
    pub(crate) fn contrast(&self, value: &FactValue) -> f64 {
        let same = self.same(value) as f64;
        let others = self.asked.max(self.values.len()) as f64 - same;
        ((others + 1.0) / (1.0 + 3.0 * same)).ln().clamp(-2.5, 2.0)
    }
}

/// Numbers that are the same but for noise.
fn close(a: &FactValue, b: &FactValue) -> bool {
    match (a, b) {
        (FactValue::Float(a), FactValue::Float(b)) => (a - b).abs() <= 1e-6 * a.abs().max(b.abs()),
        _ => false,
    }
}

fn same_role(facts: &Facts<'_>, host: &str, key: &str, peer: &str) -> Option<FactValue> {
    if let Some(nic) = nic_of(key) {
        for layer in [Layer::Underlay, Layer::Overlay] {
            if facts.nic(host, layer) == Some(nic)
                && let Some(other) = facts.nic(peer, layer)
            {
                let there = key.replacen(&format!("nic.{nic}."), &format!("nic.{other}."), 1);
                let bare = crate::host_facts::bare(&there).to_owned();
                return facts
                    .get(peer, &there)
                    .cloned()
                    .or_else(|| facts.matching(peer, &bare).first().map(|(_, v)| (*v).clone()));
            }
        }
    }
    facts.get(peer, key).cloned().or_else(|| {
        let bare = crate::host_facts::bare(key);
        (bare != key).then(|| facts.matching(peer, bare).first().map(|(_, v)| (*v).clone())).flatten()
    })
}

/// Whether a key fits one of the patterns.
pub(crate) fn any_fits(patterns: &[String], key: &str) -> bool {
    patterns.iter().any(|p| pattern_fits(p, key))
}
