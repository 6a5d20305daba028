//! Facts that are not the same everywhere: a snapshot in, a table out. Only what can be compared is compared:
//! machines that carry endpoints with each other, machines that do not (hypervisors) with each other. Never
//! says which one is wrong.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::fact::FactKey;
use linerate_model::finding::Diagnosis;
use linerate_model::inventory::HostName;
use linerate_model::snapshot::Snapshot;

use super::names;

/// One fact that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactDifference {
    /// Key.
    pub key: FactKey,
    /// What most hosts have; empty when most lack it.
    pub most: String,
    /// What the others have, and who they are.
    pub others: Vec<(String, Vec<HostName>)>,
    /// A cause of a finding rests on it.
    pub suspect: bool,
}

/// Hosts that are compared with each other.
const HOSTS_MAX: usize = 500;

/// Keys that differ by nature and say nothing.
const BY_NATURE: &[&str] = &[
    ".addresses",
    ".carrier_changes",
    "route.",
    "rule.",
    "table.",
    ".name",
    ".mac",
    "kernel.random",
    "kernel.hostname",
    "fs.",
    "boot_id",
    "machine.uuid",
    "machine.host",
    "machine.guests",
];

/// Facts that differ, suspects first; at most `max` rows, and how many there were.
pub fn differences(snapshot: &Snapshot, diagnosis: &Diagnosis, max: usize) -> (Vec<FactDifference>, usize) {
    let measured = |host: &str| snapshot.inventory.host(host).is_some_and(|h| !h.endpoints.is_empty());
    let said = evidence(diagnosis);
    let mut rows: Vec<FactDifference> = Vec::new();
    for class in [true, false] {
        let hosts: Vec<&HostName> = snapshot.facts.keys().filter(|h| measured(h) == class).collect();
        if hosts.len() > 1 {
            rows.extend(compare(snapshot, &some_of(hosts, &said), &said));
        }
    }
    rows.sort_by(|a, b| (!a.suspect, a.others.len(), &a.key).cmp(&(!b.suspect, b.others.len(), &b.key)));
    let all = rows.len();
    rows.truncate(max);
    (rows, all)
}

/// Everything that findings say in evidence and changes, to mark what they rest on.
fn evidence(diagnosis: &Diagnosis) -> String {
    let mut text = String::new();
    for cause in diagnosis.findings.iter().flat_map(|f| &f.causes) {
        for line in &cause.evidence {
            text += line;
            text.push('\n');
        }
        for change in cause.remedy.iter().flat_map(|r| &r.changes) {
            text += &change.key;
            text.push('\n');
        }
    }
    text
}

/// Of thousands of hosts some, spread over all, and those that findings speak of.
fn some_of<'a>(hosts: Vec<&'a HostName>, said: &str) -> Vec<&'a HostName> {
    let step = hosts.len().div_ceil(HOSTS_MAX).max(1);
    let named: BTreeSet<&str> = said.split([' ', ':', '\n']).collect();
    hosts
        .into_iter()
        .enumerate()
        .filter(|(i, h)| i % step == 0 || named.contains(h.as_str()))
        .map(|(_, h)| h)
        .collect()
}

fn compare(snapshot: &Snapshot, hosts: &[&HostName], said: &str) -> Vec<FactDifference> {
    let mut by_key: BTreeMap<&FactKey, BTreeMap<String, Vec<HostName>>> = BTreeMap::new();
    for host in hosts {
        for (key, value) in &snapshot.facts[*host].readings {
            if !BY_NATURE.iter().any(|n| key.contains(n)) {
                by_key.entry(key).or_default().entry(names::fact(value)).or_default().push((*host).clone());
            }
        }
    }
    by_key
        .into_iter()
        .filter_map(|(key, mut values)| {
            let having: BTreeSet<&HostName> = values.values().flatten().collect();
            let lacking: Vec<HostName> =
                hosts.iter().filter(|h| !having.contains(**h)).map(|h| (*h).clone()).collect();
            if !lacking.is_empty() {
                values.insert(String::new(), lacking);
            }
            // All the same says nothing, and all different (identifiers, sizes of memory) says nothing
            // either.
            let alone = values.len() > 2 && values.len() * 3 > hosts.len() * 2;
            if values.len() < 2 || alone {
                return None;
            }
            let most = values.iter().max_by_key(|(value, who)| (who.len(), !value.is_empty()))?.0.clone();
            let others = values.into_iter().filter(|(value, _)| *value != most).collect();
            Some(FactDifference { suspect: said.contains(key.as_str()), key: key.clone(), most, others })
        })
        .collect()
}
