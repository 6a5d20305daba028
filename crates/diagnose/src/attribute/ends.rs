//! What hosts say about each other: routes and neighbour entries towards the endpoints of other hosts, and
//! addresses that two of them have. A value of one host and the facts of the others come in, yes or no goes
//! out.

use std::collections::BTreeMap;
use std::net::IpAddr;

use linerate_knowledge::keys::{bare, nic_of};
use linerate_model::fact::FactValue;
use linerate_model::inventory::Layer;

use super::policy::{self, Rule, covers, network};
use crate::evidence::{Facts, addresses};

/// Whether another host has one of the addresses too. Two entries of the inventory for one and the same NIC
/// are one host.
pub(crate) fn shared(facts: &Facts<'_>, host: &str, key: &str, value: &FactValue) -> bool {
    let nic = nic_of(key);
    let whole = |host: &str, nic: &str| {
        ["mac", "addresses"].map(|what| facts.get(host, &format!("nic.{nic}.{what}")).cloned())
    };
    let same_nic = |other: &str| {
        let mine = nic.map(|nic| whole(host, nic));
        let layers = [Layer::Underlay, Layer::Overlay];
        layers.iter().filter_map(|l| facts.nic(other, *l)).any(|nic| Some(whole(other, nic)) == mine)
    };
    let owners = addresses(value).into_iter().filter_map(|address| facts.endpoints().owners.get(&address));
    owners.flatten().any(|other| *other != host && !same_nic(other))
}

/// Whether an entry for a neighbour that is the endpoint of another host has a hardware address that no
/// device of that host has.
pub(crate) fn wrong_neighbour(facts: &Facts<'_>, host: &str, key: &str, value: &FactValue) -> bool {
    let address = bare(key).split_once(".neighbour.").map(|(_, address)| address.replace('/', "."));
    let address: Option<IpAddr> = address.and_then(|a| a.parse().ok());
    let Some((owner, _)) = address.and_then(|a| facts.endpoints().of.get(&a)) else { return false };
    let said = value.to_string().to_ascii_lowercase();
    let real = facts.matching(owner, "nic.*.mac");
    *owner != host
        && !real.is_empty()
        && !real.iter().any(|(_, mac)| mac.to_string().to_ascii_lowercase() == said)
}

/// The measured host that has the hardware address of a forwarding entry.
fn owner_of_entry<'f>(facts: &'f Facts<'_>, key: &str) -> Option<&'f str> {
    let (_, hardware) = bare(key).split_once(".fdb.")?;
    let hardware = hardware.split('@').next().unwrap_or_default();
    match facts.endpoints().owners.get(hardware)?.as_slice() {
        [owner] => Some(*owner),
        _ => None,
    }
}

/// Whether an entry of a tunnel sends frames for a device of another measured host to an address that is not
/// one of that host, where the host has its end of the tunnel itself.
pub(crate) fn wrong_forwarding(facts: &Facts<'_>, host: &str, key: &str, value: &FactValue) -> bool {
    let remotes: Vec<IpAddr> = addresses(value).iter().filter_map(|a| a.parse().ok()).collect();
    let Some(owner) = owner_of_entry(facts, key) else { return false };
    let ends_there = !facts.matching(owner, "nic.*.vxlan.id").is_empty();
    let own = facts.matching(owner, "nic.*.addresses");
    let has = |remote: &IpAddr| {
        own.iter().any(|(_, value)| addresses(value).iter().any(|a| a.parse() == Ok(*remote)))
    };
    owner != host && ends_there && !remotes.is_empty() && !own.is_empty() && !remotes.iter().any(has)
}

/// Where an entry of a tunnel should send frames for a device of another measured host: where the peers do,
/// if that is an address of that host, else to its only endpoint in the network of the machines.
pub(crate) fn tunnel_end(
    facts: &Facts<'_>,
    host: &str,
    key: &str,
    from: &FactValue,
    usual: Option<FactValue>,
) -> Option<FactValue> {
    let is_address = |value: &FactValue| value.to_string().parse::<IpAddr>().is_ok();
    let is_right = |value: &FactValue| is_address(value) && !wrong_forwarding(facts, host, key, value);
    if let Some(usual) = usual.filter(is_right) {
        return Some(usual);
    }
    let owner = owner_of_entry(facts, key)?;
    let old: IpAddr = from.to_string().parse().ok()?;
    let endpoints = facts.endpoints().of.iter();
    let mut ends = endpoints.filter(|(address, (host, layer))| {
        *host == owner && *layer == Layer::Underlay && address.is_ipv4() == old.is_ipv4()
    });
    let (end, _) = ends.next().filter(|_| ends.next().is_none())?;
    Some(FactValue::Text(end.to_string()))
}

/// A route in the words of `ip route`.
struct Route<'t> {
    network: IpAddr,
    prefix: u8,
    device: Option<&'t str>,
    metric: u32,
}

impl<'t> Route<'t> {
    fn parse(text: &'t str) -> Option<Self> {
        let mut words = text.split_ascii_whitespace().peekable();
        words.next_if(|w| ["blackhole", "unreachable", "prohibit"].contains(w));
        let (network, prefix) = network(words.next()?)?;
        let metric = words.clone().skip_while(|w| *w != "metric").nth(1).and_then(|m| m.parse().ok());
        let device = words.skip_while(|w| *w != "dev").nth(1);
        Some(Self { network, prefix, device, metric: metric.unwrap_or(0) })
    }

    fn covers(&self, address: IpAddr) -> bool {
        covers(self.network, self.prefix, address)
    }
}

/// An endpoint of another host to which a host takes a route.
struct Led {
    address: IpAddr,
    layer: Layer,
    /// By which policy rule.
    rule: Rule,
}

/// Endpoints of other hosts to which this host would take the route: the table of the route is the first in
/// the order of the policy rules that has one, and there is no more exact one in it.
fn led(facts: &Facts<'_>, host: &str, key: &str, route: &Route<'_>) -> Vec<Led> {
    let space = &key[..key.len() - bare(key).len()];
    let Some(table) = policy::table_of(bare(key)) else { return Vec::new() };
    let mut tables: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for pattern in ["route.*", "table.*"] {
        for (other, value) in facts.matching(host, pattern) {
            if let (true, Some(table)) = (other.starts_with(space), policy::table_of(bare(other)))
                && other.len() - bare(other).len() == space.len()
            {
                tables.entry(table).or_default().push(value.to_string());
            }
        }
    }
    let tables: BTreeMap<&str, Vec<Route<'_>>> = tables
        .iter()
        .map(|(table, texts)| (*table, texts.iter().filter_map(|t| Route::parse(t)).collect()))
        .collect();
    // The most exact route of a table to an address: the longest prefix, then the least metric.
    let best = |table: &str, address: IpAddr| {
        let fits = tables.get(table).into_iter().flatten().filter(|r| r.covers(address));
        fits.map(|r| (r.prefix, std::cmp::Reverse(r.metric))).max()
    };
    let rules = policy::rules(facts, host, space);
    let endpoints = &facts.endpoints().of;
    let own = |layer: Layer, peer: IpAddr| {
        let mine = endpoints
            .iter()
            .find(|(a, (owner, l))| *owner == host && *l == layer && a.is_ipv4() == peer.is_ipv4());
        mine.map(|(address, _)| *address)
    };
    let is_best =
        |address: IpAddr| best(table, address) == Some((route.prefix, std::cmp::Reverse(route.metric)));
    let peers = endpoints.iter().filter(|(_, (owner, _))| *owner != host);
    peers
        .filter(|(address, _)| route.covers(**address) && is_best(**address))
        .filter_map(|(address, (_, layer))| {
            let rule = policy::taken(&rules, own(*layer, *address), *address, |table| {
                best(table, *address).map(|(prefix, _)| prefix)
            });
            let rule = rule.filter(|rule| rule.table() == Some(table))?.clone();
            Some(Led { address: *address, layer: *layer, rule })
        })
        .collect()
}

/// Whether the host takes this route to another measured host, and the route says one of the words.
pub(crate) fn route_to_peers(
    facts: &Facts<'_>,
    host: &str,
    key: &str,
    value: &FactValue,
    words: &[String],
) -> bool {
    let text = value.to_string();
    words.iter().any(|w| text.contains(w.as_str()))
        && Route::parse(&text).is_some_and(|route| !led(facts, host, key, &route).is_empty())
}

/// Whether the host takes this route to another measured host, and the route makes packets smaller than its
/// device would by more than the room that tunnels need. Ethernet's usual size on a device for larger ones
/// has its reasons.
pub(crate) fn small_packets(facts: &Facts<'_>, host: &str, key: &str, value: &FactValue) -> bool {
    let text = value.to_string();
    let number = |name: &str| {
        let mut words =
            text.split_ascii_whitespace().skip_while(|w| *w != name).skip(1).skip_while(|w| *w == "lock");
        words.next()?.parse::<f64>().ok()
    };
    let Some(bytes) = number("mtu").into_iter().chain(number("advmss")).reduce(f64::min) else {
        return false;
    };
    let Some(route) = Route::parse(&text) else { return false };
    let device = route.device.and_then(|d| facts.number(host, &format!("nic.{}.mtu", d.replace('.', "/"))));
    device.is_some_and(|mtu| {
        bytes + facts.rules.attribute.tunnel_bytes < mtu.min(facts.rules.ceilings.mtu_usual)
    }) && !led(facts, host, key, &route).is_empty()
}

/// Whether the host takes this route, through another device, to another host that lies in the network of its
/// own NIC; of a policy rule, whether it is why the host takes such a route.
pub(crate) fn detour(facts: &Facts<'_>, host: &str, key: &str, value: &FactValue) -> bool {
    let plain = bare(key);
    if !plain.starts_with("rule.") {
        return !detours(facts, host, key, value).is_empty();
    }
    let Some(rule) = Rule::parse(&value.to_string()) else { return false };
    let space = &key[..key.len() - plain.len()];
    let is_asked = |other: &str| {
        other.strip_prefix(space) == Some(bare(other)) && policy::table_of(bare(other)) == rule.table()
    };
    let routes = facts.matching(host, "table.*").into_iter().filter(|(other, _)| is_asked(other));
    routes.into_iter().any(|(other, value)| detours(facts, host, other, value).contains(&rule))
}

/// The policy rules by which the host takes this route, through another device, to another host that lies in
/// the network of its own NIC.
fn detours(facts: &Facts<'_>, host: &str, key: &str, value: &FactValue) -> Vec<Rule> {
    let text = value.to_string();
    let Some(route) = Route::parse(&text) else { return Vec::new() };
    let Some(device) = route.device.map(|d| d.replace('.', "/")) else { return Vec::new() };
    let nics = [Layer::Underlay, Layer::Overlay].map(|layer| facts.nic(host, layer));
    // Nearly every route of nearly every host leads through the NIC with the endpoint.
    if nics.contains(&Some(device.as_str())) || nics == [None, None] {
        return Vec::new();
    }
    let mut found = led(facts, host, key, &route);
    found.retain(|Led { address, layer, .. }| {
        let Some(nic) = facts.nic(host, *layer) else { return false };
        let own = facts.get(host, &format!("nic.{nic}.addresses")).map(ToString::to_string);
        own.unwrap_or_default().split([' ', ',']).filter_map(|part| part.split_once('/')).any(|(ip, prefix)| {
            matches!((ip.parse(), prefix.parse()), (Ok(ip), Ok(prefix)) if covers(ip, prefix, *address))
        })
    });
    found.into_iter().map(|led| led.rule).collect()
}

#[cfg(test)]
mod tests {
    use linerate_model::snapshot::Snapshot;

    use super::*;

    /// Hosts a, b, c with 10.0.0.1 to 3; facts of `a` are those given, `b` and `c` have `eth0`.
    fn snapshot(of_a: &[(&str, FactValue)]) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for (number, name) in ["a", "b", "c"].iter().enumerate() {
            let address = format!("10.0.0.{}", number + 1);
            let host = serde_json::json!({"name": name, "transport": "local", "endpoints": [{"address": address, "layer": "underlay"}]});
            snapshot.inventory.hosts.push(serde_json::from_value(host).unwrap());
            let mut readings: std::collections::BTreeMap<String, FactValue> = [
                ("nic.eth0.addresses".to_owned(), FactValue::List(vec![format!("{address}/24")])),
                ("nic.eth0.mtu".to_owned(), FactValue::Int(1500)),
                ("nic.eth0.mac".to_owned(), FactValue::Text(format!("02:00:00:00:00:0{}", number + 1))),
                ("route.0".to_owned(), FactValue::Text("10.0.0.0/24 dev eth0".to_owned())),
            ]
            .into();
            if *name == "a" {
                readings.extend(of_a.iter().map(|(k, v)| ((*k).to_owned(), v.clone())));
            }
            snapshot.facts.entry((*name).to_owned()).or_default().readings = readings.into();
        }
        snapshot
    }

    fn text(text: &str) -> FactValue {
        FactValue::Text(text.to_owned())
    }

    #[test]
    fn a_route_counts_where_the_host_would_take_it() {
        let refusing = text("blackhole 10.0.0.2/32");
        let wide = text("blackhole 10.0.0.0/8");
        let snapshot = snapshot(&[("route.1", refusing.clone()), ("route.2", wide.clone())]);
        let facts = Facts::new(&snapshot, &crate::rules::Rules::DEFAULT);
        let words = ["blackhole".to_owned()];
        assert!(route_to_peers(&facts, "a", "route.1", &refusing, &words));
        assert!(!route_to_peers(&facts, "a", "route.2", &wide, &words), "the network of eth0 is more exact");
        assert!(!route_to_peers(&facts, "a", "route.1", &refusing, &["prohibit".to_owned()]));
        assert!(!route_to_peers(&facts, "a", "route.9", &text("no route at all"), &words));
    }

    #[test]
    fn a_detour_leads_through_another_device_to_the_own_network() {
        let slow = text("10.0.0.0/25 dev eth1 src 10.0.0.1");
        let snapshot = snapshot(&[("route.1", slow.clone())]);
        let facts = Facts::new(&snapshot, &crate::rules::Rules::DEFAULT);
        assert!(detour(&facts, "a", "route.1", &slow));
        assert!(!detour(&facts, "a", "route.0", &text("10.0.0.0/24 dev eth0")));
        assert!(!detour(&facts, "a", "route.1", &text("192.168.0.0/16 dev eth1")));
    }

    #[test]
    fn a_policy_rule_detours_where_its_table_does_and_it_is_asked() {
        let (own, late) = (text("100: from 10.0.0.1/32 lookup 100"), text("32767: from all lookup 100"));
        let main = text("32766: from all lookup main");
        let slow = text("default dev eth1");
        let rule = "rule.100.from-10/0/0/1-32";
        let snapshot = snapshot(&[
            (rule, own.clone()),
            ("rule.32766.from-all", main.clone()),
            ("rule.32767.from-all", late.clone()),
            ("table.100.0", slow.clone()),
        ]);
        let facts = Facts::new(&snapshot, &crate::rules::Rules::DEFAULT);
        assert!(detour(&facts, "a", "table.100.0", &slow));
        assert!(detour(&facts, "a", rule, &own));
        assert!(!detour(&facts, "a", "rule.32766.from-all", &main), "its table leads through eth0");
        assert!(!detour(&facts, "a", "rule.32767.from-all", &late), "the main table is asked before");
    }

    #[test]
    fn a_route_that_cuts_packets_is_told_from_one_that_leaves_room_for_a_tunnel() {
        let snapshot = snapshot(&[]);
        let facts = Facts::new(&snapshot, &crate::rules::Rules::DEFAULT);
        let small = |words: &str| {
            let route = text(&format!("10.0.0.0/24 dev eth0 src 10.0.0.1 {words}"));
            small_packets(&facts, "a", "route.0", &route)
        };
        assert!(small("mtu lock 400") && small("mtu 1300") && small("advmss 256"));
        assert!(!small("mtu 1450") && !small("advmss 1460") && !small("") && !small("mtu"));
    }

    #[test]
    fn an_entry_for_a_host_must_be_one_of_its_devices() {
        let snapshot = snapshot(&[]);
        let facts = Facts::new(&snapshot, &crate::rules::Rules::DEFAULT);
        let entry = |mac: &str| wrong_neighbour(&facts, "a", "nic.eth0.neighbour.10/0/0/2", &text(mac));
        assert!(entry("02:00:00:00:00:03"));
        assert!(!entry("02:00:00:00:00:02"));
        assert!(!wrong_neighbour(&facts, "a", "nic.eth0.neighbour.10/0/0/9", &text("02:00:00:00:00:03")));
    }

    #[test]
    fn an_entry_of_a_tunnel_must_lead_to_its_host() {
        let mut snapshot = snapshot(&[]);
        let of_b = snapshot.facts.get_mut("b").unwrap();
        of_b.readings.insert("nic.vx0.vxlan.id".to_owned(), FactValue::Int(42));
        let facts = Facts::new(&snapshot, &crate::rules::Rules::DEFAULT);
        let wrong =
            |mac: &str, to: &str| wrong_forwarding(&facts, "a", &format!("nic.vx0.fdb.{mac}"), &text(to));
        assert!(wrong("02:00:00:00:00:02", "10.0.0.9"));
        assert!(wrong("02:00:00:00:00:02", "10.0.0.3"), "that is c");
        assert!(!wrong("02:00:00:00:00:02", "10.0.0.2"));
        assert!(!wrong("02:00:00:00:00:02", "port"), "a port of a bridge");
        assert!(!wrong("02:00:00:00:00:03", "10.0.0.9"), "its tunnel may end on its machine");
        assert!(!wrong("00:00:00:00:00:00", "10.0.0.9"));
        let right = |mac: &str, usual: &str| {
            let usual = Some(text(usual)).filter(|usual| *usual != text(""));
            tunnel_end(&facts, "a", &format!("nic.vx0.fdb.{mac}"), &text("10.0.0.9"), usual)
        };
        assert_eq!(right("02:00:00:00:00:02", ""), Some(text("10.0.0.2")));
        assert_eq!(right("02:00:00:00:00:02", "10.0.0.8"), Some(text("10.0.0.2")), "the peers are wrong too");
        assert_eq!(right("02:00:00:00:00:09", ""), None, "whose it is, is not known");
    }

    #[test]
    fn an_address_of_two_hosts_is_shared() {
        let both = FactValue::List(vec!["10.0.0.1/24".to_owned(), "10.0.0.3/32".to_owned()]);
        let snapshot = snapshot(&[("nic.eth0.addresses", both.clone())]);
        let facts = Facts::new(&snapshot, &crate::rules::Rules::DEFAULT);
        assert!(shared(&facts, "a", "nic.eth0.addresses", &both));
        let of_c = FactValue::List(vec!["10.0.0.3/24".to_owned()]);
        assert!(shared(&facts, "c", "nic.eth0.addresses", &of_c));
        let of_b = FactValue::List(vec!["10.0.0.2/24".to_owned()]);
        assert!(!shared(&facts, "b", "nic.eth0.addresses", &of_b));
    }
}
