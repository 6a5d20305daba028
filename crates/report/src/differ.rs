//! Facts that are not the same everywhere: a snapshot in, a table out. Only what can be compared is compared:
//! machines that carry endpoints with each other, machines that do not (hypervisors) with each other. Never
//! says which one is wrong.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::difference::Difference;
use linerate_model::fact::{FactKey, FactValue};
use linerate_model::fact_change::FactChange;
use linerate_model::finding::Diagnosis;
use linerate_model::inventory::HostName;
use linerate_model::snapshot::Snapshot;
use linerate_model::writable::writable;

use super::{names, words};

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
/// Hosts that one host is compared with.
const PEERS_MAX: usize = 40;

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

/// Keys that differ between any two hosts of one configuration: who they are and whom they know.
const IDENTITY: &[&str] = &[
    ".addresses",
    ".mac",
    ".neighbour.",
    ".fdb.",
    "kernel.random",
    "kernel.hostname",
    "boot_id",
    "machine.",
];

/// Facts of a device that one of two hosts lacks, from which on the device is one line.
const DEVICE_FACTS_MIN: usize = 4;

/// Differences of two hosts for a person.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct HostDifferences {
    /// A line for each; a device that one host lacks is one line.
    pub lines: Vec<String>,
    /// Those that any two hosts have: addresses, MACs, neighbours, the source address of a route.
    pub identity: usize,
}

/// Of two hosts, with what made a value of one of them.
pub fn of_hosts(differences: &[Difference], hosts: [&str; 2], changes: &[FactChange]) -> HostDifferences {
    let mut found = HostDifferences::default();
    let mut alone: BTreeMap<(&str, usize), usize> = BTreeMap::new();
    for difference in differences {
        *alone.entry(device_of(difference).unwrap_or_default()).or_default() += 1;
    }
    for difference in differences {
        let device = device_of(difference).filter(|device| alone[device] >= DEVICE_FACTS_MIN);
        match device {
            _ if is_identity(difference) => found.identity += 1,
            Some((nic, on)) => {
                let facts = alone[&(nic, on)];
                let line = format!("{nic}: only on {} ({facts} facts)", hosts[on]);
                if !found.lines.contains(&line) {
                    found.lines.push(line);
                }
            }
            None => found.lines.push(words::quoted(difference, Some(hosts), changes).sentence),
        }
    }
    found
}

/// The device of a fact that one of two hosts lacks, and which of them has it.
fn device_of(difference: &Difference) -> Option<(&str, usize)> {
    let Difference::Fact { key, before, after, .. } = difference else { return None };
    let device = key.strip_prefix("nic.")?.split('.').next()?;
    match (before, after) {
        (Some(_), None) => Some((&key[.."nic.".len() + device.len()], 0)),
        (None, Some(_)) => Some((&key[.."nic.".len() + device.len()], 1)),
        _ => None,
    }
}

fn is_identity(difference: &Difference) -> bool {
    let Difference::Fact { key, before, after, .. } = difference else { return false };
    let without_source = |value: &Option<FactValue>| {
        let text = value.as_ref()?.to_string();
        Some(text.split(" src ").next().unwrap_or_default().to_owned())
    };
    let is_own_route = key.starts_with("route.") && without_source(before) == without_source(after);
    is_own_route || IDENTITY.iter().any(|part| key.contains(part))
}

/// Facts that differ: what findings rest on, then settings that can be written, then the rest. Facts of a
/// device that some hosts lack are one row, and so are those of numbered things with the same hosts. At most
/// `max` rows, and how many there were.
pub fn differences(snapshot: &Snapshot, diagnosis: &Diagnosis, max: usize) -> (Vec<FactDifference>, usize) {
    let measured = |host: &str| snapshot.inventory.host(host).is_some_and(|h| !h.endpoints.is_empty());
    let said = evidence(diagnosis);
    let mut rows: Vec<FactDifference> = Vec::new();
    for class in [true, false] {
        let hosts: Vec<&HostName> = snapshot.facts.keys().filter(|h| measured(h) == class).collect();
        if hosts.len() > 1 {
            rows.extend(compare(snapshot, &some_of(hosts, &said, HOSTS_MAX), &said));
        }
    }
    most_telling(rows, max)
}

/// In which settings a host differs from most of its kind, suspects first; at most `max` rows, and how many
/// there were.
pub fn of_host(
    snapshot: &Snapshot,
    diagnosis: &Diagnosis,
    host: &str,
    max: usize,
) -> (Vec<FactDifference>, usize) {
    let measured = |host: &str| snapshot.inventory.host(host).is_some_and(|h| !h.endpoints.is_empty());
    let class = measured(host);
    let hosts: Vec<&HostName> = snapshot.facts.keys().filter(|h| measured(h) == class).collect();
    let mut peers = some_of(hosts, host, PEERS_MAX);
    // Its name may have spaces.
    peers.extend(snapshot.facts.keys().find(|of| *of == host).filter(|of| !peers.contains(of)));
    let mut rows = compare(snapshot, &peers, &evidence(diagnosis));
    let is_other = |(_, hosts): &(String, Vec<HostName>)| hosts.iter().any(|of| of == host);
    rows.retain(|row| row.others.iter().any(is_other));
    most_telling(rows, max)
}

/// The first rows, the most telling first, and how many there are.
fn most_telling(rows: Vec<FactDifference>, max: usize) -> (Vec<FactDifference>, usize) {
    // Whom a host knows follows from where it is.
    let is_identity =
        |row: &FactDifference| [".neighbour.", ".fdb."].iter().any(|part| row.key.contains(part));
    let rows = rows.into_iter().filter(|row| row.suspect || !is_identity(row)).collect();
    let mut rows = collapsed(rows);
    let rank = |row: &FactDifference| (!row.suspect, writable(&row.key).is_none(), row.others.len());
    rows.sort_by(|a, b| (rank(a), &a.key).cmp(&(rank(b), &b.key)));
    let all = rows.len();
    rows.truncate(max);
    (rows, all)
}

/// The hosts of each value of a row, without the values.
type Parts = Vec<Vec<HostName>>;

/// Rows that are one: facts of a device that the same hosts lack, and facts of numbered things (interrupts,
/// queues, CPUs) whose values part the hosts alike.
fn collapsed(rows: Vec<FactDifference>) -> Vec<FactDifference> {
    let parted = |row: &FactDifference| -> Parts {
        let mut sets: Parts = row.others.iter().map(|(_, hosts)| hosts.clone()).collect();
        sets.sort();
        sets
    };
    let mut whole: Vec<FactDifference> = Vec::new();
    let mut families: BTreeMap<(String, bool, Parts), Vec<FactDifference>> = BTreeMap::new();
    for row in rows {
        match family(&row).filter(|_| !row.suspect) {
            Some((name, is_device)) => {
                families.entry((name, is_device, parted(&row))).or_default().push(row);
            }
            None => whole.push(row),
        }
    }
    for ((name, is_device, _), mut of) in families {
        let least = if is_device { DEVICE_FACTS_MIN } else { 2 };
        if of.len() < least {
            whole.append(&mut of);
            continue;
        }
        whole.push(one_of(name, &of));
    }
    whole
}

/// What a row is one of many of: the device of a fact that some hosts lack, or the key with its numbers as
/// `*`; and whether it is a device.
fn family(row: &FactDifference) -> Option<(String, bool)> {
    let is_lacking = row.most.is_empty() || row.others.iter().any(|(value, _)| value.is_empty());
    let parts: Vec<&str> = row.key.split('.').collect();
    if let (true, [area @ ("nic" | "disk" | "disk_health"), device, _, ..]) = (is_lacking, &parts[..]) {
        return Some((format!("{area}.{device}"), true));
    }
    let is_number = |part: &&str| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit());
    let parts = parts.iter().map(|part| if is_number(part) { "*" } else { *part });
    let pattern = parts.collect::<Vec<&str>>().join(".");
    (pattern != row.key).then_some((pattern, false))
}

/// Rows with the same hosts as one: the values where they are the same in all, else how many there are.
fn one_of(key: FactKey, rows: &[FactDifference]) -> FactDifference {
    let count = format!("{} facts", rows.len());
    let value = |values: Vec<&str>| match &values[..] {
        [first, rest @ ..] if rest.iter().all(|value| value == first) => (*first).to_owned(),
        // Some lack some of them: what they have is their number too.
        _ => count.clone(),
    };
    let first = &rows[0];
    let others = first.others.iter().map(|(_, hosts)| {
        let of = |row: &'_ FactDifference| {
            row.others.iter().find(|(_, of)| of == hosts).map_or(String::new(), |(value, _)| value.clone())
        };
        let all: Vec<String> = rows.iter().map(of).collect();
        (value(all.iter().map(String::as_str).collect()), hosts.clone())
    });
    FactDifference {
        key,
        most: value(rows.iter().map(|row| row.most.as_str()).collect()),
        others: others.collect(),
        suspect: false,
    }
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
fn some_of<'a>(hosts: Vec<&'a HostName>, said: &str, most: usize) -> Vec<&'a HostName> {
    let step = hosts.len().div_ceil(most).max(1);
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

#[cfg(test)]
mod tests {
    use linerate_model::fact_change::SeenBy;

    use super::*;

    fn row(key: &str, most: &str, other: &str, hosts: &[&str]) -> FactDifference {
        let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        FactDifference {
            key: key.into(),
            most: most.into(),
            others: vec![(other.into(), hosts)],
            suspect: false,
        }
    }

    #[test]
    fn many_facts_of_one_thing_are_one_row_and_settings_come_first() {
        let mut rows = vec![
            row("machine.cores", "8", "4", &["b"]),
            row("sysctl.net.ipv4.tcp_sack", "1", "0", &["b"]),
            row("nic.eth0.neighbour.10/0/0/1", "x", "y", &["b"]),
            row("nic.p1.mtu", "1500", "9000", &["b"]),
            FactDifference { suspect: true, ..row("nic.v7.mtu", "", "1500", &["c"]) },
        ];
        rows.extend((0..30).map(|n| row(&format!("nic.v7.x{n}"), "", &n.to_string(), &["c"])));
        rows.extend((0..30).map(|n| row(&format!("nic.eth0.irq.{n}.affinity"), "0-7", "0", &["b"])));
        rows.extend((0..2).map(|n| row(&format!("nic.eth0.irq.{n}.affinity"), "0-7", "1", &["c"])));
        let (shown, all) = most_telling(rows, 60);
        let keys: Vec<&str> = shown.iter().map(|row| row.key.as_str()).collect();
        assert_eq!(
            keys,
            [
                "nic.v7.mtu",
                "nic.eth0.irq.*.affinity",
                "nic.eth0.irq.*.affinity",
                "nic.p1.mtu",
                "sysctl.net.ipv4.tcp_sack",
                "machine.cores",
                "nic.v7"
            ]
        );
        assert_eq!(all, 7);
        assert_eq!((shown[1].most.as_str(), shown[1].others[0].0.as_str()), ("0-7", "0"));
        let device = &shown[6];
        assert_eq!((device.most.as_str(), device.others[0].0.as_str()), ("", "30 facts"));
    }

    #[test]
    fn what_any_two_hosts_differ_in_is_counted_and_a_device_of_one_is_a_line() {
        let text = |text: &str| Some(FactValue::Text(text.to_owned()));
        let fact = |key: &str, before, after| Difference::Fact { host: None, key: key.into(), before, after };
        let mut all = vec![
            fact("nic.eth0.mac", text("a"), text("b")),
            fact("nic.eth0.neighbour.10/0/0/1", None, text("b")),
            fact("route.10", text("10/8 dev eth0 src 10.0.0.1"), text("10/8 dev eth0 src 10.0.0.2")),
            fact("route.11", text("11/8 dev eth0 src 10.0.0.1"), text("11/8 dev eth1 src 10.0.0.2")),
            fact("nic.eth0.mtu", text("1500"), text("9000")),
        ];
        all.extend((0..5).map(|n| fact(&format!("nic.p1.x{n}"), text("on"), None)));
        let change = FactChange {
            host: "b".into(),
            key: "nic.eth0.mtu".into(),
            from: text("1500"),
            to: text("9000"),
            after_ms: 1_795_573_200_000,
            seen_ms: 1_795_573_200_000,
            seen_by: SeenBy::Facts,
            who: Some("tuned.service".into()),
        };
        // One that was changed again since, and one of the other host to this value.
        let (old, other) = (
            FactChange { to: text("1400"), ..change.clone() },
            FactChange { host: "a".into(), ..change.clone() },
        );
        let found = of_hosts(&all, ["a", "b"], &[old, change, other]);
        assert_eq!(found.identity, 3);
        assert_eq!(found.lines.len(), 3, "{:?}", found.lines);
        assert!(found.lines[0].starts_with("route.11") && found.lines[1].starts_with("nic.eth0.mtu"));
        assert!(
            found.lines[1].ends_with("; b changed 25 Nov 02:20 UTC by tuned.service"),
            "{:?}",
            found.lines
        );
        assert_eq!(found.lines[2], "nic.p1: only on a (5 facts)");
    }
}
