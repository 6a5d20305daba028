//! Whether the hosts have the addresses that the inventory gives them. Pure.
//!
//! What comes in: the inventory and the facts, before anything is measured. What goes out: one sentence where
//! they disagree. A test between swapped addresses measures another path than it names, and one to an address
//! that no host has measures nothing. A host that reported no address at all is never judged.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use linerate_model::fact::{FactValue, HostFacts};
use linerate_model::inventory::{Endpoint, HostName, Inventory, Layer};

use super::nic::Facts;

/// Most disagreements and most addresses of a host that are listed.
const LISTED_MAX: usize = 4;

/// Endpoints that do not match what the hosts reported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the addresses in the inventory do not match the hosts: {}; nothing was measured\n\
     hint: correct the inventory or the hosts; `linerate facts HOST nic.` prints what a host has",
    sentences(.0)
)]
pub struct WrongAddresses(Vec<Stray>);

/// An address that its host does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stray {
    host: HostName,
    layer: Layer,
    address: IpAddr,
    /// Hosts of the inventory that have it instead.
    holders: Vec<HostName>,
    /// What the host has instead.
    has: Vec<IpAddr>,
}

/// Compares every endpoint with the addresses of its host, in the namespace of the endpoint.
pub(crate) fn check(inventory: &Inventory, facts: &Facts) -> Result<(), WrongAddresses> {
    let mut holders: BTreeMap<IpAddr, BTreeSet<&HostName>> = BTreeMap::new();
    for (host, facts) in facts {
        for (key, value) in facts.readings.iter().filter(|(key, _)| key.ends_with(".addresses")) {
            // An address on a loopback belongs to every host or, in a routed fabric, to this one.
            let own = listed(value).filter(|a| !a.is_loopback());
            for address in own.filter(|_| key.contains("nic.")) {
                holders.entry(address).or_default().insert(host);
            }
        }
    }
    let mut strays = Vec::new();
    for host in &inventory.hosts {
        let Some(facts) = facts.get(&host.name) else { continue };
        for endpoint in &host.endpoints {
            let has = addresses(facts, endpoint);
            if !can_be_seen(endpoint.address) || has.is_empty() || has.contains(&endpoint.address) {
                continue;
            }
            let others = holders.get(&endpoint.address).into_iter().flatten();
            strays.push(Stray {
                host: host.name.clone(),
                layer: endpoint.layer,
                address: endpoint.address,
                holders: others.filter(|h| **h != &host.name).map(|h| (*h).clone()).collect(),
                has: has.into_iter().filter(|a| !a.is_loopback()).collect(),
            });
        }
    }
    if strays.is_empty() { Ok(()) } else { Err(WrongAddresses(strays)) }
}

/// Nodes do not report link-local addresses, and each host has its loopback.
fn can_be_seen(address: IpAddr) -> bool {
    !address.is_loopback() && !matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local())
}

fn listed(value: &FactValue) -> impl Iterator<Item = IpAddr> + '_ {
    let list: &[String] = if let FactValue::List(list) = value { list } else { &[] };
    list.iter().filter_map(|text| text.split('/').next()?.parse().ok())
}

/// Addresses of a host in the namespace of an endpoint.
fn addresses(facts: &HostFacts, endpoint: &Endpoint) -> Vec<IpAddr> {
    let namespace = endpoint.netns.as_ref().map_or(String::new(), |p| format!("netns.{}|", p.display()));
    let head = format!("{namespace}nic.");
    let readings = facts.readings.beginning_with(&head);
    readings.filter(|(key, _)| key.ends_with(".addresses")).flat_map(|(_, value)| listed(value)).collect()
}

fn sentences(strays: &[Stray]) -> String {
    let mut texts = Vec::new();
    let mut done: BTreeSet<(&HostName, IpAddr)> = BTreeSet::new();
    for stray in strays {
        if !done.insert((&stray.host, stray.address)) {
            continue;
        }
        let swapped = strays.iter().find(|other| {
            stray.layer == other.layer
                && stray.holders.contains(&other.host)
                && other.holders.contains(&stray.host)
        });
        let (host, address) = (&stray.host, stray.address);
        texts.push(match (swapped, &stray.holders[..]) {
            (Some(other), _) => {
                done.insert((&other.host, other.address));
                format!(
                    "{host} and {} are swapped ({address} is on {}, {} is on {host})",
                    other.host, other.host, other.address
                )
            }
            (None, []) => {
                format!("{host} lacks its {} address {address}{}", stray.layer, instead(&stray.has))
            }
            (None, holders) => format!("{address} of {host} is on {}", holders.join(" and ")),
        });
    }
    let more = texts.len().saturating_sub(LISTED_MAX);
    texts.truncate(LISTED_MAX);
    texts.join("; ") + &if more > 0 { format!("; and {more} more") } else { String::new() }
}

fn instead(has: &[IpAddr]) -> String {
    let shown: Vec<String> = has.iter().take(LISTED_MAX).map(ToString::to_string).collect();
    let more = if has.len() > LISTED_MAX { ", …" } else { "" };
    if shown.is_empty() { String::new() } else { format!(" (it has {}{more})", shown.join(", ")) }
}

#[cfg(test)]
mod tests {
    use linerate_model::inventory::{Host, TransportSpec};

    use super::*;

    /// Hosts as `name inventory-address addresses-it-has…`.
    fn cluster(hosts: &[&str]) -> (Inventory, Facts) {
        let (mut inventory, mut facts) = (Inventory::default(), Facts::new());
        for line in hosts {
            let words: Vec<&str> = line.split(' ').collect();
            inventory.hosts.push(Host {
                name: words[0].to_owned(),
                transport: TransportSpec::Local,
                groups: Vec::new(),
                endpoints: vec![Endpoint {
                    address: words[1].parse().unwrap(),
                    layer: Layer::Underlay,
                    netns: None,
                    link_bps: None,
                }],
                state_dir: None,
                etc_dir: None,
                cache_dir: None,
            });
            let mut known = HostFacts::default();
            let list = |list: &[&str]| FactValue::List(list.iter().map(|w| format!("{w}/24")).collect());
            if words.len() > 2 {
                known.readings.insert("nic.eth0.addresses".to_owned(), list(&words[2..]));
                known.readings.insert("nic.lo.addresses".to_owned(), list(&["127.0.0.1"]));
            }
            facts.insert(words[0].to_owned(), known);
        }
        (inventory, facts)
    }

    fn sentence(hosts: &[&str]) -> Option<String> {
        let (inventory, facts) = cluster(hosts);
        let text = check(&inventory, &facts).err()?.to_string();
        Some(text.lines().next().unwrap_or_default().to_owned())
    }

    #[test]
    fn swapped_missing_and_misplaced_addresses_are_one_sentence_each() {
        let of = |what: &str| {
            Some(format!(
                "the addresses in the inventory do not match the hosts: {what}; nothing was measured"
            ))
        };
        assert_eq!(
            sentence(&["a 10.0.0.2 10.0.0.1", "b 10.0.0.1 10.0.0.2", "c 10.0.0.3 10.0.0.3"]),
            of("a and b are swapped (10.0.0.2 is on b, 10.0.0.1 is on a)")
        );
        assert_eq!(
            sentence(&["a 10.0.0.9 10.0.0.1 10.1.0.1", "b 10.0.0.2 10.0.0.2"]),
            of("a lacks its underlay address 10.0.0.9 (it has 10.0.0.1, 10.1.0.1)")
        );
        assert_eq!(sentence(&["a 10.0.0.2 10.0.0.1", "b 10.0.0.2 10.0.0.2"]), of("10.0.0.2 of a is on b"));
        let many: Vec<String> = (1..8).map(|n| format!("h{n} 10.0.1.{n} 10.0.0.{n}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(
            sentence(&many).unwrap().contains("h4 lacks") && sentence(&many).unwrap().contains("and 3 more")
        );
    }

    #[test]
    fn what_matches_or_cannot_be_seen_is_no_disagreement() {
        assert_eq!(sentence(&["a 10.0.0.1 10.0.0.1", "b 10.0.0.2 10.0.0.2"]), None);
        assert_eq!(sentence(&["a 10.0.0.1", "b 10.0.0.2 10.0.0.2"]), None, "nothing is known of a");
        assert_eq!(sentence(&["a 127.0.0.1 10.0.0.1", "b fe80::1 10.0.0.2"]), None);
        let twice = ["a 10.0.0.1 10.0.0.1", "b 10.0.0.2 10.0.0.2 10.0.0.1"];
        assert_eq!(sentence(&twice), None, "an address that two have is a finding of the survey");
    }
}
