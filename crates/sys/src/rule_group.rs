//! Policy rules of one priority as the kernel dumps and takes them: changed, removed and put back exactly as
//! they were, in their order.
//!
//! In: messages that were read, or a rule to make one of. Out: the kernel's answer. What is put back is what
//! was read, but for what only the kernel reports; it never decides which rule is wrong.

use std::net::IpAddr;

use crate::netlink::{NLM_F_CREATE, NetlinkError, Payload, Socket, attributes, u32_at};
use crate::rule::{ACTION_GOTO, ACTION_LOOKUP, INVERTED, PolicyRule, REFUSALS, RULES_MAX, kind, parse_rule};

/// Bytes of `struct fib_rule_hdr`.
const HEADER_BYTES: usize = 12;
/// Table in a header of a byte where its number needs more.
const TABLE_ELSEWHERE: u8 = 252;

/// Rules of a priority with their messages, in the order in which they are tried.
pub fn rules_of(priority: u32) -> Result<Vec<(PolicyRule, Vec<u8>)>, NetlinkError> {
    let mut found: Vec<(PolicyRule, Vec<u8>)> = Vec::new();
    let mut socket = Socket::open(libc::NETLINK_ROUTE)?;
    for family in [libc::AF_INET, libc::AF_INET6] {
        let mut header = [0; HEADER_BYTES];
        header[0] = family as u8;
        socket.dump(libc::RTM_GETRULE, &Payload::new(&header), |message| {
            if let Some(rule) = parse_rule(message.payload)
                && let Some(taken) = takeable(message.payload)
                && rule.priority == priority
                && !found.iter().any(|(_, known)| *known == taken)
            {
                found.push((rule, taken));
            }
        })?;
    }
    // Part of them could not be put back in order.
    if found.len() > RULES_MAX { Err(NetlinkError::TooLarge { limit: RULES_MAX }) } else { Ok(found) }
}

/// A dumped message without what the kernel does not take.
fn takeable(payload: &[u8]) -> Option<Vec<u8>> {
    let mut header = payload.get(..HEADER_BYTES)?.to_vec();
    let flags = u32_at(&header, 8)? & INVERTED;
    header[8..12].copy_from_slice(&flags.to_ne_bytes());
    let kept = attributes(&payload[HEADER_BYTES..]);
    Some(kept.fold(Payload::new(&header), |p, a| p.bytes(a.kind, a.data)).into_bytes())
}

/// The rule of a message.
#[must_use]
pub fn rule_of(message: &[u8]) -> Option<PolicyRule> {
    parse_rule(message)
}

/// Puts exactly these rules in force at a priority, in this order. A new rule goes behind the others of its
/// priority, and the kernel removes the first that fits a request: so all are added behind, then the old ones
/// removed from the front. At no moment one of them is missing that was there and shall be.
pub fn replace(priority: u32, wanted: &[Vec<u8>]) -> Result<(), NetlinkError> {
    let now: Vec<Vec<u8>> = rules_of(priority)?.into_iter().map(|(_, message)| message).collect();
    let mut socket = Socket::open(libc::NETLINK_ROUTE)?;
    for family in [libc::AF_INET, libc::AF_INET6] {
        let of_family = |messages: &[Vec<u8>]| -> Vec<Payload> {
            let fits = messages.iter().filter(|m| m.first() == Some(&(family as u8)));
            fits.map(|message| Payload::new(message)).collect()
        };
        let (old, new) = (of_family(&now), of_family(wanted));
        if old == new {
            continue;
        }
        for rule in &new {
            socket.request(libc::RTM_NEWRULE, NLM_F_CREATE, rule, |_| {})?;
        }
        for rule in &old {
            socket.request(libc::RTM_DELRULE, 0, rule, |_| {})?;
        }
    }
    Ok(())
}

/// A message with another action; whom it selects stays, also what has no name here.
#[must_use]
pub fn with_action(message: &[u8], rule: &PolicyRule) -> Option<Vec<u8>> {
    let mut header = message.get(..HEADER_BYTES)?.to_vec();
    let table = rule.table.unwrap_or(0);
    header[4] = u8::try_from(table).unwrap_or(TABLE_ELSEWHERE);
    header[7] = match (&rule.action, rule.table, rule.goes_to) {
        (Some(word), None, None) => REFUSALS.iter().find(|(_, name)| name == word)?.0,
        (None, Some(_), None) => ACTION_LOOKUP,
        (None, None, Some(_)) => ACTION_GOTO,
        _ => return None,
    };
    let own = [kind::TABLE, kind::SUPPRESS_PREFIX, kind::GOTO];
    let kept = attributes(&message[HEADER_BYTES..]).filter(|a| !own.contains(&a.kind));
    let mut payload = kept.fold(Payload::new(&header), |p, a| p.bytes(a.kind, a.data));
    payload = payload.u32(kind::TABLE, table);
    for (kind, number) in [(kind::SUPPRESS_PREFIX, rule.suppresses), (kind::GOTO, rule.goes_to)] {
        payload = number.map_or(payload.clone(), |number| payload.u32(kind, number));
    }
    Some(payload.into_bytes())
}

/// The message of a rule that is not there yet; `None` for one with selectors whose values are not known.
#[must_use]
pub fn message_of(rule: &PolicyRule) -> Option<Vec<u8>> {
    if !rule.selects.is_empty() {
        return None;
    }
    let mut header = [0; HEADER_BYTES];
    header[0] = if rule.ipv6 { libc::AF_INET6 } else { libc::AF_INET } as u8;
    header[1] = rule.to.map_or(0, |(_, prefix)| prefix);
    header[2] = rule.from.map_or(0, |(_, prefix)| prefix);
    header[3] = rule.tos;
    let flags = if rule.inverted { INVERTED } else { 0 };
    header[8..12].copy_from_slice(&flags.to_ne_bytes());
    let mut payload = Payload::new(&header);
    payload = payload.u32(kind::PRIORITY, rule.priority).bytes(kind::MADE_BY, &[libc::RTPROT_STATIC]);
    for (kind, network) in [(kind::DESTINATION, rule.to), (kind::SOURCE, rule.from)] {
        payload = match network {
            Some((IpAddr::V4(v4), _)) => payload.bytes(kind, &v4.octets()),
            Some((IpAddr::V6(v6), _)) => payload.bytes(kind, &v6.octets()),
            None => payload,
        };
    }
    for (kind, device) in [(kind::INCOMING, &rule.incoming), (kind::OUTGOING, &rule.outgoing)] {
        payload = device.iter().fold(payload, |payload, name| payload.text(kind, name));
    }
    if let Some((mark, mask)) = rule.mark {
        payload = payload.u32(kind::MARK, mark).u32(kind::MARK_MASK, mask);
    }
    with_action(&payload.into_bytes(), rule)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = takeable(&bytes);
            let _ = with_action(&bytes, &PolicyRule { table: Some(7), ..PolicyRule::default() });
        }
    }

    #[test]
    fn the_action_is_exchanged_and_the_rest_stays() {
        let rule = PolicyRule {
            priority: 100,
            from: Some(("10.0.0.0".parse().unwrap(), 24)),
            to: Some(("10.9.0.1".parse().unwrap(), 32)),
            inverted: true,
            incoming: Some("lo".to_owned()),
            mark: Some((16, 255)),
            tos: 16,
            table: Some(7000),
            suppresses: Some(0),
            ..PolicyRule::default()
        };
        let message = message_of(&rule).unwrap();
        assert_eq!(rule_of(&message), Some(rule.clone()));
        for changed in [
            PolicyRule { table: Some(254), suppresses: None, ..rule.clone() },
            PolicyRule { table: None, suppresses: None, action: Some("prohibit".to_owned()), ..rule.clone() },
            PolicyRule { table: None, suppresses: None, goes_to: Some(200), ..rule.clone() },
        ] {
            assert_eq!(rule_of(&with_action(&message, &changed).unwrap()), Some(changed));
        }
        assert_eq!(message_of(&PolicyRule { selects: vec!["sport".to_owned()], ..rule.clone() }), None);
        assert_eq!(message_of(&PolicyRule { table: None, suppresses: None, ..rule }), None, "no action");
    }
}
