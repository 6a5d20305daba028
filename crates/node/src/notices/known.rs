//! The facts of a host as they were read last, and what a new reading of some of them changes.

use std::collections::BTreeMap;

use linerate_model::fact::{FactKey, FactValue, HostFacts, changes_by_itself, pattern_fits};
use linerate_model::notice::ValueChange;

/// What is known.
pub(super) struct Known(BTreeMap<FactKey, FactValue>);

impl Known {
    pub(super) fn new(facts: &HostFacts) -> Self {
        Self(facts.readings.iter().map(|(key, value)| (key.clone(), value.clone())).collect())
    }

    /// Takes over a reading of all keys with one of these prefixes; all without prefixes. What could not be
    /// read is no change.
    pub(super) fn learn(&mut self, new: &HostFacts, starts: &[FactKey]) -> Vec<ValueChange> {
        let is_read =
            |key: &str| starts.is_empty() || starts.iter().any(|start| key.starts_with(start.as_str()));
        let is_unseen = |key: &str| new.gaps.iter().any(|gap| pattern_fits(&gap.what.to_string(), key));
        let gone: Vec<FactKey> = self
            .0
            .keys()
            .filter(|key| is_read(key) && !new.readings.contains_key(key.as_str()) && !is_unseen(key))
            .cloned()
            .collect();
        let mut changes = Vec::new();
        for key in gone {
            let from = self.0.remove(&key);
            changes.push(ValueChange { key, from, to: None });
        }
        for (key, value) in &new.readings {
            let from = self.0.insert(key.clone(), value.clone());
            if from.as_ref() != Some(value) {
                changes.push(ValueChange { key: key.clone(), from, to: Some(value.clone()) });
            }
        }
        changes.retain(|change| !changes_by_itself(&change.key));
        changes.sort_by(|a, b| a.key.cmp(&b.key));
        changes
    }
}
