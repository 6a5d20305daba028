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

    /// The value that was read last.
    pub(super) fn value(&self, key: &str) -> Option<&FactValue> {
        self.0.get(key)
    }

    /// Whether a write to a key may leave the host: only one to a fact that is read here. Anything else may
    /// be a secret. In another namespace, or of a new device, the device `default` stands for each.
    pub(super) fn may_report(&self, key: &str) -> bool {
        let key = key.rsplit_once('|').map_or(key, |(_, key)| key);
        self.0.contains_key(key) || of_default_device(key).is_some_and(|key| self.0.contains_key(&key))
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

/// The same setting of the device `default`, of settings that each device has.
fn of_default_device(key: &str) -> Option<FactKey> {
    let mut parts: Vec<&str> = key.split('.').collect();
    let ["sysctl", "net", _, "conf" | "neigh", device, _, ..] = parts.as_mut_slice() else { return None };
    *device = "default";
    Some(parts.join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_writes_to_facts_of_this_host_leave_it() {
        let mut facts = HostFacts::default();
        for key in ["sysctl.net.ipv4.tcp_sack", "sysctl.net.ipv6.conf.default.mtu"] {
            facts.readings.insert(key.to_owned(), FactValue::Int(1));
        }
        let known = Known::new(&facts);
        for key in ["net.ipv4.tcp_sack", "net.ipv6.conf.default.mtu", "net.ipv6.conf.eth0/5.mtu"] {
            assert!(known.may_report(&format!("sysctl.{key}")), "{key}");
            assert!(known.may_report(&format!("netns./run/netns/a|sysctl.{key}")), "{key}");
        }
        let others = ["net.ipv4.tcp_fastopen_key", "net.ipv6.conf.eth0.stable_secret", "fs.file-max", "vm.x"];
        for key in others {
            assert!(!known.may_report(&format!("sysctl.{key}")), "{key}");
            assert!(!known.may_report(&format!("netns.net:[5]|sysctl.{key}")), "{key}");
        }
    }
}
