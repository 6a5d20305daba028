//! Policy rules of the network namespace of the calling thread (`ip rule`), by rtnetlink.
//!
//! In: nothing. Out: plain types, which are also what a recorded tree keeps (`rules.json`). Bounded in
//! number; it never decides which rule a packet meets.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::netlink::{NetlinkError, Payload, Socket, attributes, u32_at};
use crate::rtnetlink::ip;

/// Most rules that are kept.
pub const RULES_MAX: usize = 256;

/// `FR_ACT_TO_TBL` of `linux/fib_rules.h`: the destination is sought in a table.
pub(crate) const ACTION_LOOKUP: u8 = 1;
/// `FR_ACT_GOTO`.
pub(crate) const ACTION_GOTO: u8 = 2;
/// Other actions with their words.
pub(crate) const REFUSALS: [(u8, &str); 4] =
    [(3, "nop"), (6, "blackhole"), (7, "unreachable"), (8, "prohibit")];
/// `FIB_RULE_INVERT`: the rule holds for what its selectors do not fit.
pub(crate) const INVERTED: u32 = 2;

/// Kinds of attributes, `linux/fib_rules.h`.
pub(crate) mod kind {
    pub(crate) const DESTINATION: u16 = 1;
    pub(crate) const SOURCE: u16 = 2;
    pub(crate) const INCOMING: u16 = 3;
    pub(crate) const GOTO: u16 = 4;
    pub(crate) const PRIORITY: u16 = 6;
    pub(crate) const MARK: u16 = 10;
    pub(crate) const SUPPRESS_PREFIX: u16 = 14;
    pub(crate) const TABLE: u16 = 15;
    pub(crate) const MARK_MASK: u16 = 16;
    pub(crate) const OUTGOING: u16 = 17;
    pub(crate) const L3MDEV: u16 = 19;
    pub(crate) const USERS: u16 = 20;
    /// The program that made the rule, as of a route.
    pub(crate) const MADE_BY: u16 = 21;
    pub(crate) const PROTOCOL: u16 = 22;
    pub(crate) const SOURCE_PORTS: u16 = 23;
    pub(crate) const DESTINATION_PORTS: u16 = 24;
}

/// A policy rule.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyRule {
    /// Rules are tried in this order, the smallest first.
    pub priority: u32,
    /// Whether it is a rule for IPv6.
    #[serde(default)]
    pub ipv6: bool,
    /// Whether it holds for what its selectors do not fit.
    #[serde(default)]
    pub inverted: bool,
    /// Network of the source.
    #[serde(default)]
    pub from: Option<(IpAddr, u8)>,
    /// Network of the destination.
    #[serde(default)]
    pub to: Option<(IpAddr, u8)>,
    /// Device at which the packet arrived; `lo` for what the host itself sends.
    #[serde(default)]
    pub incoming: Option<String>,
    /// Device to which a socket is bound.
    #[serde(default)]
    pub outgoing: Option<String>,
    /// Mark of the packet and the bits of it that count.
    #[serde(default)]
    pub mark: Option<(u32, u32)>,
    /// Type of service.
    #[serde(default)]
    pub tos: u8,
    /// Other selectors, by name only: `uidrange`, `ipproto`, `sport`, `dport`, `l3mdev`.
    #[serde(default)]
    pub selects: Vec<String>,
    /// Table in which the destination is sought.
    #[serde(default)]
    pub table: Option<u32>,
    /// Routes with a prefix of this length or a shorter one do not count.
    #[serde(default)]
    pub suppresses: Option<u32>,
    /// Priority of the rule with which it goes on.
    #[serde(default)]
    pub goes_to: Option<u32>,
    /// What else it does: `blackhole`, `unreachable`, `prohibit`, `nop`.
    #[serde(default)]
    pub action: Option<String>,
}

/// The rules in the order in which they are tried, the first [`RULES_MAX`].
pub fn rules() -> Result<Vec<PolicyRule>, NetlinkError> {
    let mut found = Vec::new();
    let mut socket = Socket::open(libc::NETLINK_ROUTE)?;
    for family in [libc::AF_INET, libc::AF_INET6] {
        let mut header = [0; 12];
        header[0] = family as u8;
        socket.dump(libc::RTM_GETRULE, &Payload::new(&header), |message| {
            if let Some(rule) = parse_rule(message.payload)
                && found.len() < RULES_MAX
                && !found.contains(&rule)
            {
                found.push(rule);
            }
        })?;
    }
    Ok(found)
}

pub(crate) fn parse_rule(payload: &[u8]) -> Option<PolicyRule> {
    let header = payload.get(..12)?;
    let mut rule = PolicyRule {
        ipv6: header[0] == libc::AF_INET6 as u8,
        inverted: u32_at(header, 8)? & INVERTED != 0,
        tos: header[3],
        ..PolicyRule::default()
    };
    let mut table = u32::from(header[4]);
    let (mut mark, mut mask) = (None, u32::MAX);
    for a in attributes(&payload[12..]) {
        match a.kind {
            kind::DESTINATION => rule.to = ip(a.data).map(|address| (address, header[1])),
            kind::SOURCE => rule.from = ip(a.data).map(|address| (address, header[2])),
            kind::INCOMING => rule.incoming = Some(a.text()),
            kind::OUTGOING => rule.outgoing = Some(a.text()),
            kind::GOTO => rule.goes_to = a.u32(),
            kind::PRIORITY => rule.priority = a.u32()?,
            kind::MARK => mark = a.u32(),
            kind::MARK_MASK => mask = a.u32()?,
            // All ones: none.
            kind::SUPPRESS_PREFIX => rule.suppresses = a.u32().filter(|length| *length != u32::MAX),
            kind::TABLE => table = a.u32()?,
            kind::L3MDEV if a.u8() == Some(1) => rule.selects.push("l3mdev".to_owned()),
            kind::USERS => rule.selects.push("uidrange".to_owned()),
            kind::PROTOCOL => rule.selects.push("ipproto".to_owned()),
            kind::SOURCE_PORTS => rule.selects.push("sport".to_owned()),
            kind::DESTINATION_PORTS => rule.selects.push("dport".to_owned()),
            _ => {}
        }
    }
    // Kernels differ in the order of their attributes.
    rule.selects.sort_unstable();
    rule.mark = mark.map(|mark| (mark, mask)).filter(|(_, mask)| *mask != 0);
    match header[7] {
        ACTION_LOOKUP => rule.table = Some(table),
        ACTION_GOTO => {}
        other => {
            let (_, word) = REFUSALS.iter().find(|(action, _)| *action == other)?;
            rule.action = Some((*word).to_owned());
        }
    }
    Some(rule)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = parse_rule(&bytes);
        }
    }

    #[test]
    fn a_new_namespace_asks_the_main_table() {
        let test = "a_new_namespace_asks_the_main_table";
        let namespace = match crate::netns::create() {
            Ok(namespace) => namespace,
            Err(error) => return println!("SKIPPED {test}: no network namespace can be made: {error}"),
        };
        let rules = crate::netns::run_in(&namespace, || rules().unwrap()).unwrap();
        let main = rules.iter().find(|r| r.table == Some(crate::rtnetlink::MAIN_TABLE) && !r.ipv6);
        assert_eq!(main.map(|r| (r.priority, r.from)), Some((32_766, None)), "{rules:?}");
    }
}
