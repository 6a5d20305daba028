//! Policy rules: which routing table a host asks for a packet of its own.
//!
//! In: the facts `rule.*` of a host, an address of its own and one of another host. Out: the name of a table.
//! A host without a rule that was read asks the main table alone. Rules for marked packets, other users,
//! other ports or other devices are passed over: a test has none of them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::evidence::Facts;

/// Name of the usual table.
pub(super) const MAIN: &str = "main";
/// The table of the own addresses: it leads to no other host.
const LOCAL: &str = "local";

/// Table of a route by its key: `route.3`, `table.100.3`.
pub(super) fn table_of(key: &str) -> Option<&str> {
    match key.strip_prefix("table.") {
        Some(rest) => rest.split_once('.').map(|(table, _)| table),
        None => key.starts_with("route.").then_some(MAIN),
    }
}

/// A network as routes and rules write it.
pub(super) fn network(word: &str) -> Option<(IpAddr, u8)> {
    match word {
        "default" | "all" => Some((IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0)),
        "default6" | "all6" => Some((IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0)),
        _ => {
            let (network, prefix) = word.split_once('/')?;
            Some((network.parse().ok()?, prefix.parse().ok()?))
        }
    }
}

/// Whether an address lies in a network.
pub(super) fn covers(network: IpAddr, prefix: u8, address: IpAddr) -> bool {
    let bits = |ip: IpAddr| match ip {
        IpAddr::V4(v4) => (u128::from(u32::from(v4)) << 96, 32),
        IpAddr::V6(v6) => (u128::from(v6), 128),
    };
    let ((a, of), (b, other)) = (bits(network), bits(address));
    let shift = 128_u32.saturating_sub(u32::from(prefix.min(of)));
    of == other && (shift >= 128 || a >> shift == b >> shift)
}

/// Name of a table as in the keys of its routes.
fn named(word: &str) -> String {
    // The table that is asked last has a name in rules only.
    (if word == "default" { "253" } else { word }).to_owned()
}

/// A rule for packets that the host sends itself.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rule {
    priority: u32,
    from: (IpAddr, u8),
    to: Option<(IpAddr, u8)>,
    inverted: bool,
    table: Option<String>,
    /// Shorter prefixes and those of this length do not count.
    suppresses: Option<u8>,
}

impl Rule {
    /// The table that it names.
    pub(super) fn table(&self) -> Option<&str> {
        self.table.as_deref()
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let (priority, rest) = text.split_once(':')?;
        let mut rule = Self {
            priority: priority.parse().ok()?,
            from: network("all")?,
            to: None,
            inverted: false,
            table: None,
            suppresses: None,
        };
        let mut words = rest.split_ascii_whitespace();
        while let Some(word) = words.next() {
            match word {
                "not" => rule.inverted = true,
                "from" => rule.from = network(words.next()?)?,
                "to" => rule.to = Some(network(words.next()?)?),
                "iif" => drop(words.next().filter(|device| *device == "lo")?),
                "lookup" => rule.table = Some(named(words.next()?)),
                "suppress_prefixlength" => rule.suppresses = words.next()?.parse().ok(),
                "blackhole" | "unreachable" | "prohibit" => {}
                // Marks, users, ports: no test fits them.
                _ => return None,
            }
        }
        Some(rule)
    }

    fn fits(&self, from: Option<IpAddr>, to: IpAddr) -> bool {
        let (network, prefix) = self.from;
        let same_family = network.is_ipv4() == to.is_ipv4();
        let source = prefix == 0 || from.is_some_and(|from| covers(network, prefix, from));
        let destination = self.to.is_none_or(|(network, prefix)| covers(network, prefix, to));
        same_family && (source && destination) != self.inverted
    }
}

/// Rules of a host in a namespace, in the order in which they are tried.
pub(super) fn rules(facts: &Facts<'_>, host: &str, space: &str) -> Vec<Rule> {
    let mut rules: Vec<Rule> = facts
        .matching(host, "rule.*")
        .into_iter()
        .filter(|(key, _)| key.strip_prefix(space).is_some_and(|rest| rest.starts_with("rule.")))
        .filter_map(|(_, value)| Rule::parse(&value.to_string()))
        .collect();
    // What the kernel has done before there were rules.
    if rules.is_empty() {
        let all =
            |word| Some(Rule { table: Some(MAIN.to_owned()), ..Rule::parse(&format!("0: from {word}"))? });
        rules.extend([all("all"), all("all6")].into_iter().flatten());
    }
    rules.sort_by_key(|rule| rule.priority);
    rules
}

/// The rule that decides on a packet: the first fitting one whose table has a route. `prefix` is the length
/// of the most exact one in a table.
pub(super) fn taken(
    rules: &[Rule],
    from: Option<IpAddr>,
    to: IpAddr,
    prefix: impl Fn(&str) -> Option<u8>,
) -> Option<&Rule> {
    for rule in rules.iter().filter(|rule| rule.fits(from, to)) {
        // One without a table refuses.
        let table = rule.table.as_deref()?;
        let found = prefix(table).filter(|length| rule.suppresses.is_none_or(|most| *length > most));
        if table != LOCAL && found.is_some() {
            return Some(rule);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn taken_of(rules: &[&str], has: &[(&str, u8)]) -> Option<String> {
        let rules: Vec<Rule> = rules.iter().filter_map(|r| Rule::parse(r)).collect();
        let prefix = |table: &str| has.iter().find(|(name, _)| *name == table).map(|(_, length)| *length);
        let rule = taken(&rules, Some(ip("10.0.0.1")), ip("10.0.0.2"), prefix)?;
        rule.table().map(str::to_owned)
    }

    #[test]
    fn the_first_fitting_rule_whose_table_has_a_route_decides() {
        let usual = ["0: from all lookup local", "32766: from all lookup main"];
        let with = |rule| [usual[0], rule, usual[1]];
        let (main, both) = ([("main", 24)], [("main", 24), ("100", 0)]);
        let main_table = || Some(MAIN.to_owned());
        assert_eq!(taken_of(&usual, &main), main_table());
        let own = with("100: from 10.0.0.1/32 lookup 100");
        assert_eq!(taken_of(&own, &both), Some("100".to_owned()));
        assert_eq!(taken_of(&own, &main), main_table(), "the table is empty");
        assert_eq!(taken_of(&with("100: from 10.0.0.7/32 lookup 100"), &both), main_table());
        assert_eq!(taken_of(&with("100: from all to 10.0.9.0/24 lookup 100"), &both), main_table());
        assert_eq!(taken_of(&with("100: from all fwmark 0x1/0xff lookup 100"), &both), main_table());
        assert_eq!(taken_of(&with("100: from all iif eth7 lookup 100"), &both), main_table());
        assert_eq!(taken_of(&with("100: from all6 lookup 100"), &both), main_table());
        assert_eq!(taken_of(&with("100: not from 10.0.0.7/32 lookup 100"), &both), Some("100".to_owned()));
        assert_eq!(taken_of(&with("100: from all lookup 100 suppress_prefixlength 0"), &both), main_table());
        assert_eq!(taken_of(&with("100: from all to 10.0.0.2/32 prohibit"), &both), None);
    }

    #[test]
    fn garbage_is_no_rule() {
        assert!(
            ["", "x", "5:", "5: from", "5: from x lookup 1", "5: from all l3mdev lookup 9"]
                .iter()
                .all(|text| Rule::parse(text).is_none_or(|rule| rule.table.is_none()))
        );
    }
}
