//! Between which addresses is measured, where the inventory does not say. Pure but for [`fill`].
//!
//! What comes in: what the hosts say about their own addresses, and the address at which each was reached.
//! What goes out: one endpoint for each host, and in words how it was chosen. Never a loopback or link-local
//! address, and never one that several hosts have (a container bridge).

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use linerate_model::fact::{FactValue, Gap, HostFacts};
use linerate_model::inventory::{Endpoint, HostName, Inventory, Layer};

use super::join;
use super::run::read_facts;
use super::same_machine;
use linerate_fleet::Fleet;

/// What a host says about itself.
#[derive(Debug)]
pub struct HostIdentity {
    /// Name in the inventory.
    pub host: HostName,
    /// At least its NICs and routes.
    pub facts: HostFacts,
    /// Its address at which it was reached.
    pub reached: Option<IpAddr>,
}

/// Addresses and how they were chosen.
#[derive(Debug, Default, PartialEq)]
pub struct Chosen {
    /// One address for each host that has one.
    pub addresses: BTreeMap<HostName, IpAddr>,
    /// For people.
    pub how: Vec<String>,
    /// Hosts that are another name of one before, with the name of that one.
    pub twice: Vec<(HostName, HostName)>,
    /// Hosts without an address to measure from.
    pub gaps: Vec<Gap>,
}

/// A network in the way it is written: `10.0.0.0/24`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Net {
    base: IpAddr,
    prefix: u8,
}

impl std::fmt::Display for Net {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.base, self.prefix)
    }
}

impl std::str::FromStr for Net {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = || {
            let (address, prefix) = text.split_once('/')?;
            Self::around(address.parse().ok()?, prefix.parse().ok()?)
        };
        read().ok_or_else(|| format!("`{text}` is not a network\nhint: such as 10.0.0.0/24"))
    }
}

impl Net {
    /// The network of this length that holds an address.
    fn around(address: IpAddr, prefix: u8) -> Option<Self> {
        let base = match address {
            IpAddr::V4(v4) if prefix <= 32 => {
                let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
                IpAddr::from((v4.to_bits() & mask).to_be_bytes())
            }
            IpAddr::V6(v6) if prefix <= 128 => {
                let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
                IpAddr::from((v6.to_bits() & mask).to_be_bytes())
            }
            _ => return None,
        };
        Some(Self { base, prefix })
    }

    fn holds(&self, address: IpAddr) -> bool {
        Self::around(address, self.prefix).is_some_and(|net| net.base == self.base)
    }
}

/// An address that a host has.
#[derive(Debug, Clone, PartialEq)]
struct Own {
    address: IpAddr,
    prefix: u8,
    nic: String,
    speed_mbit: f64,
}

/// Addresses of the NICs of a host that are up, without loopback and link-local ones.
fn own(facts: &HostFacts) -> Vec<Own> {
    let mut found = Vec::new();
    for (key, value) in facts.readings.beginning_with("nic.") {
        let (Some(prefix), FactValue::List(list)) = (key.strip_suffix("addresses"), value) else { continue };
        let reading = |name: &str| facts.readings.get(&format!("{prefix}{name}"));
        let down =
            matches!(reading("state"), Some(FactValue::Text(state)) if state == "off" || state == "down");
        if down {
            continue;
        }
        let speed_mbit = reading("speed_mbit").and_then(|v| v.number(0)).unwrap_or(0.0);
        let nic = prefix.trim_start_matches("nic.").trim_end_matches('.').to_owned();
        for text in list {
            let Some((address, prefix)) = text.split_once('/') else { continue };
            let (Ok(address), Ok(prefix)) = (address.parse::<IpAddr>(), prefix.parse()) else { continue };
            let local = match address {
                IpAddr::V4(v4) => v4.is_loopback() || v4.is_link_local(),
                IpAddr::V6(v6) => v6.is_loopback() || v6.is_unicast_link_local(),
            };
            if !local {
                found.push(Own { address, prefix, nic: nic.clone(), speed_mbit });
            }
        }
    }
    found
}

/// The source address of the default route, where it names one.
fn by_default_route(facts: &HostFacts) -> Option<IpAddr> {
    let routes = facts.readings.iter().filter(|(key, _)| key.starts_with("route."));
    routes
        .filter_map(|(_, value)| if let FactValue::Text(text) = value { Some(text) } else { None })
        .filter(|text| text.starts_with("default"))
        .find_map(|text| text.split(" src ").nth(1)?.split(' ').next()?.parse().ok())
}

/// Chooses an address for each host; `wanted` is the network that a person named.
pub fn choose(seen: &[HostIdentity], wanted: Option<Net>) -> Chosen {
    let mut chosen = Chosen::default();
    let same_machine::Apart { machines: mut hosts, twice } =
        same_machine::apart(seen.iter().map(|host| (host, own(&host.facts))));
    chosen.twice = twice.iter().map(|(host, first)| (host.host.clone(), first.host.clone())).collect();
    // What several hosts have leads to nobody in particular.
    let mut count: BTreeMap<IpAddr, usize> = BTreeMap::new();
    hosts.iter().flat_map(|(_, own)| own).for_each(|o| *count.entry(o.address).or_default() += 1);
    for (_, own) in &mut hosts {
        own.retain(|o| count.get(&o.address) == Some(&1));
    }
    keep_a_common_family(&mut hosts);
    let net = wanted.or_else(|| {
        let ranked = ranked(&hosts);
        if let Some((best, others)) = ranked.split_first() {
            chosen.how.push(how(&hosts, best, others));
        }
        ranked.first().map(|r| r.net)
    });
    for (host, own) in &hosts {
        let inside = net.and_then(|net| own.iter().find(|o| net.holds(o.address)));
        let (found, why) = match inside {
            Some(found) => (Some(found), None),
            None if wanted.is_some() => (None, None),
            None => fallback(host, own),
        };
        if let Some(found) = found {
            chosen.addresses.insert(host.host.clone(), found.address);
            chosen
                .how
                .extend(why.map(|why| format!("{}: {} ({}), {why}", host.host, found.address, found.nic)));
        } else {
            let reason = match wanted {
                Some(net) => format!("it has no address in {net}"),
                None => "it has no address that other hosts can reach".to_owned(),
            };
            chosen.gaps.push(Gap { what: format!("tests with {}", host.host).into(), reason });
        }
    }
    chosen
}

/// Where some hosts have only IPv6 (or only IPv4) and all have it, the other family is of no use.
fn keep_a_common_family(hosts: &mut [(&HostIdentity, Vec<Own>)]) {
    let all_have = |v6: bool| hosts.iter().all(|(_, own)| own.iter().any(|o| o.address.is_ipv6() == v6));
    let (v4, v6) = (all_have(false), all_have(true));
    if v4 != v6 {
        for (_, own) in hosts.iter_mut() {
            own.retain(|o| o.address.is_ipv6() == v6);
        }
    }
}

/// A network that at least two hosts are in.
#[derive(Debug, PartialEq)]
struct Ranked {
    net: Net,
    hosts: usize,
    speed_mbit: f64,
    reached: usize,
    nics: BTreeSet<String>,
}

/// Networks of several hosts, the best first: most hosts, then the fastest slowest NIC, then where the hosts
/// were reached, then IPv4.
fn ranked(hosts: &[(&HostIdentity, Vec<Own>)]) -> Vec<Ranked> {
    let mut nets: BTreeMap<Net, Ranked> = BTreeMap::new();
    for (host, own) in hosts {
        let mut counted = BTreeSet::new();
        for o in own {
            let Some(net) = Net::around(o.address, o.prefix) else { continue };
            let entry = nets.entry(net).or_insert_with(|| Ranked {
                net,
                hosts: 0,
                speed_mbit: f64::INFINITY,
                reached: 0,
                nics: BTreeSet::new(),
            });
            entry.hosts += usize::from(counted.insert(net));
            entry.speed_mbit = entry.speed_mbit.min(o.speed_mbit);
            entry.reached += usize::from(host.reached == Some(o.address));
            entry.nics.insert(o.nic.clone());
        }
    }
    let mut ranked: Vec<Ranked> = nets.into_values().filter(|r| r.hosts > 1).collect();
    ranked.sort_by(|a, b| {
        (b.hosts.cmp(&a.hosts))
            .then(b.speed_mbit.total_cmp(&a.speed_mbit))
            .then(b.reached.cmp(&a.reached))
            .then(a.net.cmp(&b.net))
    });
    ranked
}

fn how(hosts: &[(&HostIdentity, Vec<Own>)], best: &Ranked, others: &[Ranked]) -> String {
    let nics: Vec<&str> = best.nics.iter().map(String::as_str).take(4).collect();
    let who = if best.hosts == hosts.len() {
        format!("all {} hosts are in it", best.hosts)
    } else {
        format!("{} of {} hosts are in it", best.hosts, hosts.len())
    };
    let rivals: Vec<&Ranked> = others.iter().filter(|o| o.hosts == best.hosts).collect();
    let why = match rivals.first() {
        None => String::new(),
        Some(next) if next.speed_mbit < best.speed_mbit => ", the fastest".to_owned(),
        Some(next) if next.reached < best.reached => ", and ssh arrived there".to_owned(),
        Some(_) => ", the first".to_owned(),
    };
    let also: Vec<String> = rivals.iter().take(3).map(|r| r.net.to_string()).collect();
    let also = if also.is_empty() {
        String::new()
    } else {
        format!("; also possible: {} (--net chooses)", also.join(", "))
    };
    format!("measuring in {} on {}: {who}{why}{also}", best.net, nics.join(", "))
}

fn fallback<'a>(host: &HostIdentity, own: &'a [Own]) -> (Option<&'a Own>, Option<&'static str>) {
    let of = |address: Option<IpAddr>| own.iter().find(|o| Some(o.address) == address);
    if let Some(found) = of(host.reached) {
        return (Some(found), Some("at which ssh arrived"));
    }
    match of(by_default_route(&host.facts)) {
        Some(found) => (Some(found), Some("from which its default route starts")),
        None => (own.first(), Some("its first")),
    }
}

/// Whether nothing can be measured because no host has an endpoint.
pub fn is_needed(inventory: &Inventory) -> bool {
    inventory.hosts.iter().all(|h| h.endpoints.is_empty())
}

/// Asks the hosts for their addresses and writes the choice into the inventory. A host that is another name
/// of one before leaves fleet and inventory as a gap. Gives the words for people.
pub async fn fill(fleet: &mut Fleet, inventory: &mut Inventory, wanted: Option<Net>) -> Vec<String> {
    let prefixes = ["nic.".to_owned(), "route.".to_owned()];
    let names: Vec<HostName> =
        inventory.hosts.iter().map(|h| h.name.clone()).filter(|n| fleet.link(n).is_ok()).collect();
    let (asked, known): (&Fleet, &Inventory) = (fleet, inventory);
    let reads: Vec<std::pin::Pin<Box<dyn Future<Output = _> + '_>>> =
        names.iter().map(|n| Box::pin(read_facts(asked, known, n, &prefixes)) as _).collect();
    let mut seen = Vec::new();
    let mut gaps = Vec::new();
    for (host, read) in names.iter().zip(join::all(reads).await) {
        match read {
            Ok(facts) => {
                let reached = asked.link(host).ok().and_then(|link| link.reached().address);
                seen.push(HostIdentity { host: host.clone(), facts, reached });
            }
            Err(reason) => gaps.push(Gap { what: format!("addresses of {host}").into(), reason }),
        }
    }
    let chosen = choose(&seen, wanted);
    for (name, first) in &chosen.twice {
        fleet.leave(name).await;
        inventory.hosts.retain(|h| h.name != *name);
        gaps.push(same_machine::gap(name, first));
    }
    for host in &mut inventory.hosts {
        host.endpoints.extend(chosen.addresses.get(&host.name).map(|address| Endpoint {
            address: *address,
            layer: Layer::Underlay,
            netns: None,
            link_bps: None,
        }));
    }
    gaps.extend(chosen.gaps);
    fleet.gaps.extend(gaps);
    chosen.how
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NICs as `name speed address/prefix ...`.
    fn seen(host: &str, nics: &[&str], reached: Option<&str>) -> HostIdentity {
        let mut facts = HostFacts::default();
        for nic in nics {
            let words: Vec<&str> = nic.split(' ').collect();
            let key = |name: &str| format!("nic.{}.{name}", words[0]);
            facts.readings.insert(key("speed_mbit"), FactValue::Int(words[1].parse().unwrap()));
            let list = words[2..].iter().map(|w| (*w).to_owned()).collect();
            facts.readings.insert(key("addresses"), FactValue::List(list));
        }
        HostIdentity { host: host.into(), facts, reached: reached.map(|r| r.parse().unwrap()) }
    }

    fn addresses(chosen: &Chosen) -> Vec<String> {
        chosen.addresses.iter().map(|(host, address)| format!("{host} {address}")).collect()
    }

    #[test]
    fn the_fastest_network_of_all_hosts_is_taken() {
        let hosts = [
            seen(
                "a",
                &["eth0 1000 192.168.0.1/24", "eth1 25000 10.0.0.1/24", "docker0 10000 172.17.0.1/16"],
                None,
            ),
            seen(
                "b",
                &["eth0 1000 192.168.0.2/24", "eth1 25000 10.0.0.2/24", "docker0 10000 172.17.0.1/16"],
                None,
            ),
        ];
        let chosen = choose(&hosts, None);
        assert_eq!(addresses(&chosen), ["a 10.0.0.1", "b 10.0.0.2"]);
        assert_eq!(
            chosen.how,
            [
                "measuring in 10.0.0.0/24 on eth1: all 2 hosts are in it, the fastest; also possible: 192.168.0.0/24 \
              (--net chooses)"
            ]
        );
        let named = choose(&hosts, Some("192.168.0.0/16".parse().unwrap()));
        assert_eq!(addresses(&named), ["a 192.168.0.1", "b 192.168.0.2"]);
    }

    #[test]
    fn a_host_elsewhere_is_measured_at_the_address_where_ssh_arrived() {
        let hosts = [
            seen("a", &["eth0 1000 10.0.0.1/24"], None),
            seen("b", &["eth0 1000 10.0.0.2/24"], None),
            seen("c", &["eth0 1000 10.9.0.3/24 10.8.0.3/24"], Some("10.8.0.3")),
        ];
        let chosen = choose(&hosts, None);
        assert_eq!(addresses(&chosen), ["a 10.0.0.1", "b 10.0.0.2", "c 10.8.0.3"]);
        assert_eq!(chosen.how[1], "c: 10.8.0.3 (eth0), at which ssh arrived");
    }

    #[test]
    fn an_ipv6_only_host_moves_all_to_ipv6() {
        let hosts = [
            seen("a", &["eth0 1000 10.0.0.1/24 2001:db8::1/64"], None),
            seen("b", &["eth0 1000 10.0.0.2/24 2001:db8::2/64"], None),
            seen("c", &["eth0 1000 2001:db8::3/64"], None),
        ];
        let chosen = choose(&hosts, None);
        assert_eq!(addresses(&chosen), ["a 2001:db8::1", "b 2001:db8::2", "c 2001:db8::3"]);
    }

    #[test]
    fn a_host_under_two_names_takes_part_once() {
        let nic = ["eth0 1000 10.0.0.1/24"];
        let hosts =
            [seen("a", &nic, None), seen("alias", &nic, None), seen("b", &["eth0 1000 10.0.0.2/24"], None)];
        let chosen = choose(&hosts, None);
        assert_eq!(chosen.twice, [("alias".to_owned(), "a".to_owned())]);
        assert_eq!(addresses(&chosen), ["a 10.0.0.1", "b 10.0.0.2"]);
    }

    #[test]
    fn a_host_without_an_address_is_a_gap() {
        let hosts = [seen("a", &["lo 0 127.0.0.1/8"], None), seen("b", &["eth0 1000 10.0.0.2/24"], None)];
        let chosen = choose(&hosts, None);
        assert_eq!(chosen.gaps[0].what, "tests with a".into());
        assert!("10.0.0.0/33".parse::<Net>().is_err() && "::/129".parse::<Net>().is_err());
        assert_eq!("0.0.0.0/0".parse::<Net>().unwrap().to_string(), "0.0.0.0/0");
    }
}
