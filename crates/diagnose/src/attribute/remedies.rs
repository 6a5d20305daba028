//! From a cause with its facts to a remedy that leaves no choice: which setting on which host from what to
//! what.

use std::collections::BTreeMap;

use linerate_knowledge::keys::{nic_of, pattern_fits};
use linerate_knowledge::placeholder::{self, Placeholder};
use linerate_knowledge::{FixTarget, SettingPlan};
use linerate_model::change::{Change, Remedy};
use linerate_model::fact::{FactValue, HostFacts};
use linerate_model::writable::writable;

use super::ends;
use super::facts::{beside, candidates, cpus};
use super::{Scored, SuspectContext};
use crate::evidence::Facts;

/// The remedy of a cause at a location.
pub(crate) fn remedy(
    facts: &Facts<'_>,
    location: &SuspectContext<'_>,
    scored: &Scored<'_>,
) -> Option<Remedy> {
    let plan = scored.cause.remedy.as_ref()?;
    let mut changes: Vec<Change> = Vec::new();
    for set in &plan.set {
        for change in planned(facts, location, scored, set) {
            if !changes.iter().any(|c| c.host == change.host && c.key == change.key) {
                changes.push(change);
            }
        }
    }
    let hit = scored.hits.first();
    let host = changes.first().map(|c| c.host.as_str()).or(hit.map(|h| h.host.as_str()));
    let named = host.or(location.subjects.suspects.first().copied());
    let host = named.unwrap_or("the host");
    let key = changes.first().map(|c| c.key.as_str()).or(hit.map(|h| h.key.as_str()));
    let layer = linerate_model::inventory::Layer::Underlay;
    let nic = key.and_then(nic_of).or_else(|| facts.nic(host, layer));
    let resource = key.and_then(resource_of);
    let hosts = hosts_of(facts, host, resource);
    let limited = scored.hits.iter().find_map(|hit| limited_unit(&hit.key, &hit.value));
    let known = |hole: Placeholder| match hole {
        Placeholder::Host => named.map(str::to_owned),
        Placeholder::Hosts => named.map(|_| hosts.clone()),
        Placeholder::Nic => nic.map(|nic| nic.replace('/', ".")),
        Placeholder::Disk => key.and_then(drive_of).map(|name| name.replace('/', ".")),
        // In keys a dot of the name is a slash; where only minors are known nothing can be typed.
        Placeholder::Resource => {
            resource.filter(|name| name.parse::<u32>().is_err()).map(|name| name.replace('/', "."))
        }
        Placeholder::Address => address_of_a_peer(facts, location, host),
        Placeholder::Folder => key.and_then(folder_of).map(str::to_owned),
        Placeholder::Table => scored.hits.iter().find_map(|hit| table_of(&hit.key)).map(str::to_owned),
        Placeholder::Unit => limited.map(|(unit, _)| unit.to_owned()),
        Placeholder::Limits => limited.and_then(|(_, limits)| lifted(limits)),
        Placeholder::Value => {
            let to = changes.first().map(|change| &change.to);
            to.or(hit.and_then(|hit| hit.peers.as_ref())).map(ToString::to_string)
        }
    };
    let (instruction, persistence) =
        (placeholder::prose(&plan.instruction, known), placeholder::prose(&plan.persistence, known));
    let (check, by_hand) =
        (placeholder::command(&plan.check, known), placeholder::command(&plan.by_hand, known));
    Some(Remedy {
        by_hand: by_hand.unwrap_or_default(),
        check: check.unwrap_or_default(),
        host: named.unwrap_or_default().to_owned(),
        id: scored.cause.id.clone(),
        title: plan.title.clone(),
        changes,
        instruction,
        persistence,
        risk: plan.risk,
        risk_text: plan.risk_text.clone(),
    })
}

/// The resource of DRBD that a key is about: `r0` of `drbd.r0.connection`.
fn resource_of(key: &str) -> Option<&str> {
    key.strip_prefix("drbd.")?.split_once('.').map(|(name, _)| name)
}

/// The block device that a key is about: `sda` of `disk_health.sda.state`.
fn drive_of(key: &str) -> Option<&str> {
    let rest = ["disk.", "disk_health.", "disk_limit."].iter().find_map(|head| key.strip_prefix(head))?;
    rest.split_once('.').map(|(name, _)| name)
}

/// The folder of a mounted file system that a key is about. In a key `_` may stand for another character:
/// such a folder cannot be typed.
fn folder_of(key: &str) -> Option<&str> {
    let folder = match key.strip_prefix("nfs.") {
        Some(rest) => rest.rsplit_once('.')?.0,
        None => key.strip_prefix("mount.")?,
    };
    Some(folder).filter(|folder| folder.starts_with('/') && !folder.contains('_'))
}

/// The number of the routing table that a key is about: `200` of `table.200.1`.
fn table_of(key: &str) -> Option<&str> {
    let (number, _) = key.strip_prefix("table.")?.split_once('.')?;
    Some(number).filter(|number| number.parse::<u32>().is_ok())
}

/// The unit of systemd that the first limited control group is, and its limits.
fn limited_unit<'v>(key: &str, value: &'v FactValue) -> Option<(&'v str, &'v str)> {
    let FactValue::List(groups) = value else { return None };
    let is_of_limits = key.starts_with("disk_limit.") && key.ends_with(".cgroups");
    let (group, limits) = groups.first().filter(|_| is_of_limits)?.split_once(' ')?;
    let unit = group.rsplit_once('/')?.1;
    let is_unit = [".service", ".scope", ".slice"].iter().any(|kind| unit.ends_with(kind));
    is_unit.then_some((unit, limits))
}

/// Properties of systemd that take limits off; `None` where one of them is unknown.
fn lifted(limits: &str) -> Option<String> {
    let property = |limit: &str| match limit.split('=').next()? {
        "rbps" => Some("IOReadBandwidthMax="),
        "wbps" => Some("IOWriteBandwidthMax="),
        "riops" => Some("IOReadIOPSMax="),
        "wiops" => Some("IOWriteIOPSMax="),
        _ => None,
    };
    limits.split_whitespace().map(property).collect::<Option<Vec<_>>>().map(|all| all.join(" "))
}

/// The address of a host at the other end of the bad cells.
fn address_of_a_peer(facts: &Facts<'_>, location: &SuspectContext<'_>, host: &str) -> Option<String> {
    let subjects = location.subjects;
    let ends = subjects.receivers.iter().chain(&subjects.senders).filter(|end| **end != host);
    let peers = ends.filter(|end| !subjects.suspects.contains(*end)).copied();
    let inventory = &facts.snapshot.inventory;
    let address = |peer: &str| {
        let endpoint = inventory.host(peer)?.endpoints.first()?;
        // Recorded evidence has addresses for documentation.
        let is_made_up = matches!(endpoint.address, std::net::IpAddr::V4(v4) if v4.is_documentation());
        (!endpoint.address.is_unspecified() && !is_made_up).then(|| endpoint.address.to_string())
    };
    // Where no address is known, the name of the peer serves a command as well.
    let mut peers = peers.peekable();
    let first = peers.peek().map(|peer| (*peer).to_owned());
    peers.find_map(address).or(first)
}

/// The hosts that a command about a location needs: all that have the resource, else the one.
fn hosts_of(facts: &Facts<'_>, host: &str, resource: Option<&str>) -> String {
    let Some(resource) = resource else { return host.to_owned() };
    let head = format!("drbd.{resource}.");
    let has = |facts: &HostFacts| facts.readings.keys().any(|key| key.starts_with(&head));
    let all = facts.snapshot.facts.iter().filter(|(_, facts)| has(facts));
    all.map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(" ")
}

/// The settings that indicated the cause where there are some, else all that the pattern names.
fn planned(
    facts: &Facts<'_>,
    location: &SuspectContext<'_>,
    scored: &Scored<'_>,
    set: &SettingPlan,
) -> Vec<Change> {
    let indicating: Vec<(&str, &str, &FactValue)> = scored
        .hits
        .iter()
        .filter(|h| set.keys.iter().any(|k| pattern_fits(k, &h.key)))
        .map(|h| (h.host.as_str(), h.key.as_str(), &h.value))
        .collect();
    let named: Vec<(&str, &str, &FactValue)> = if indicating.is_empty() {
        let mut named = Vec::new();
        for host in location.subjects.side(set.side) {
            for (key, value) in candidates(facts, host, &set.keys, set.nic, location) {
                named.push((host, key, value));
            }
        }
        named
    } else {
        indicating
    };
    // The numbers of queues and interrupts are in order, not their digits.
    let mut named = named;
    named.sort_by(|a, b| (a.0, order(a.1)).cmp(&(b.0, order(b.1))));
    let turns = turns(&named);
    named
        .into_iter()
        .zip(turns)
        .filter(|((_, _, from), _)| set.from.is_empty() || set.from.contains(&from.to_string()))
        // A pattern of a file may match more than it was checked for; the node would refuse the whole trial.
        .filter(|((_, key, _), _)| writable(key).is_some())
        .filter_map(|((host, key, from), turn)| {
            let other = |pattern: &str| facts.get(host, &beside(key, pattern));
            let usual = || location.subjects.peers_of(host).population(facts, host, key).usual().cloned();
            let to = match &set.to {
                FixTarget::Peers => usual().filter(|u| u != from)?,
                FixTarget::Value(value) => like(from, value),
                FixTarget::PeersOr(value) => {
                    usual().filter(|u| u != from).unwrap_or_else(|| like(from, value))
                }
                FixTarget::Fact(pattern) => like(from, other(pattern)?),
                FixTarget::Spread(pattern) => spread(&other(pattern)?.to_string(), turn)?,
                FixTarget::TunnelEnd => ends::tunnel_end(facts, host, key, from, usual())?,
                FixTarget::Without(words) => FactValue::Text(without(&from.to_string(), words)),
            };
            (to != *from).then(|| Change {
                host: host.to_owned(),
                key: key.to_owned(),
                from: from.clone(),
                to,
            })
        })
        .collect()
}

/// A key by its parts, numbers as numbers.
fn order(key: &str) -> Vec<(u64, &str)> {
    key.split(['.', '-']).map(|part| part.parse().map_or((u64::MAX, part), |number| (number, ""))).collect()
}

/// The how many-th of its device each setting is.
fn turns(named: &[(&str, &str, &FactValue)]) -> Vec<usize> {
    let mut seen: BTreeMap<(&str, Option<&str>), usize> = BTreeMap::new();
    let mut turn = |host, key| {
        let count = seen.entry((host, nic_of(key))).or_default();
        *count += 1;
        *count - 1
    };
    named.iter().map(|(host, key, _)| turn(*host, *key)).collect()
}

/// One CPU of a list; after the last one the first is next.
fn spread(list: &str, turn: usize) -> Option<FactValue> {
    let cpus = cpus(list);
    let cpu = cpus.iter().nth(turn % cpus.len().max(1))?;
    Some(FactValue::Text(cpu.to_string()))
}

/// A text without these words and the value behind each; `lock` belongs to the value.
fn without(text: &str, words: &[String]) -> String {
    let mut kept = Vec::new();
    let mut rest = text.split_ascii_whitespace().peekable();
    while let Some(word) = rest.next() {
        if words.iter().any(|w| w == word) {
            rest.next_if_eq(&"lock");
            rest.next();
        } else {
            kept.push(word);
        }
    }
    kept.join(" ")
}

/// The wanted value in the form of the old one: `on` for a flag is a flag.
fn like(old: &FactValue, wanted: &FactValue) -> FactValue {
    match (old, wanted) {
        (FactValue::Flag(_), FactValue::Text(text)) if text == "on" || text == "off" => {
            FactValue::Flag(text == "on")
        }
        (FactValue::Int(_), FactValue::Text(text)) => {
            text.parse().map_or_else(|_| wanted.clone(), FactValue::Int)
        }
        (FactValue::Text(_), FactValue::Flag(flag)) => {
            FactValue::Text(if *flag { "on" } else { "off" }.to_owned())
        }
        (FactValue::Text(_), FactValue::Int(number)) => FactValue::Text(number.to_string()),
        _ => wanted.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_take_turns_on_the_cpus_of_a_list() {
        let value = FactValue::Text("0-63".into());
        let keys = ["nic.em1.irq.9.affinity", "nic.em1.irq.100.affinity", "nic.em2.irq.8.affinity"];
        let mut named: Vec<_> = keys.iter().rev().map(|key| ("h", *key, &value)).collect();
        named.sort_by(|a, b| order(a.1).cmp(&order(b.1)));
        assert_eq!(named.iter().map(|n| n.1).collect::<Vec<_>>(), keys);
        assert_eq!(turns(&named), [0, 1, 0]);
        let cpu = |turn| spread("8-9,12", turn).map(|cpu| cpu.to_string());
        assert_eq!([0, 1, 2, 3].map(cpu), ["8", "9", "12", "8"].map(|c| Some(c.to_owned())));
        assert_eq!(spread("", 0), None);
    }

    #[test]
    fn what_a_key_is_about_can_be_typed_or_is_unknown() {
        assert_eq!(folder_of("nfs./home.v4.rsize"), Some("/home.v4"));
        assert_eq!(folder_of("mount./hdfs"), Some("/hdfs"));
        assert_eq!(folder_of("nfs./my_data.rsize"), None);
        assert_eq!(table_of("table.200.1"), Some("200"));
        assert_eq!((table_of("table.local.1"), table_of("route.default")), (None, None));
        let groups = FactValue::List(vec!["/system.slice/backup.service wbps=10485760 riops=100".into()]);
        let (unit, limits) = limited_unit("disk_limit.sdb.cgroups", &groups).unwrap();
        assert_eq!(unit, "backup.service");
        assert_eq!(lifted(limits).unwrap(), "IOWriteBandwidthMax= IOReadIOPSMax=");
        assert_eq!(lifted("weight=10"), None);
        assert_eq!(limited_unit("disk_limit.sdb.waiting_percent", &groups), None);
        let docker = FactValue::List(vec!["/docker/0123 wbps=1".into()]);
        assert_eq!(limited_unit("disk_limit.sdb.cgroups", &docker), None);
    }

    #[test]
    fn words_go_with_their_values() {
        let words = ["mtu".to_owned(), "advmss".to_owned()];
        let route = "10.9.0.0/25 dev left advmss 256 mtu lock 400 window 4096";
        assert_eq!(without(route, &words), "10.9.0.0/25 dev left window 4096");
        assert_eq!(without("default dev mtu", &["x".to_owned()]), "default dev mtu");
    }

    #[test]
    fn values_keep_the_form_that_was_read() {
        assert_eq!(like(&FactValue::Flag(true), &FactValue::Text("off".into())), FactValue::Flag(false));
        assert_eq!(
            like(&FactValue::Text("on".into()), &FactValue::Flag(false)),
            FactValue::Text("off".into())
        );
        assert_eq!(like(&FactValue::Int(0), &FactValue::Int(1)), FactValue::Int(1));
    }
}
