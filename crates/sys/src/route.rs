//! Routes of the main table as the kernel dumps and takes them: changed, removed and put back exactly as they
//! were.
//!
//! In: a message that was read, or a route to make one of. Out: the kernel's answer. What is put back is what
//! was read, byte for byte, but for what only the kernel reports; it never decides which route is wrong.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::netlink::{
    NLM_F_CREATE, NLM_F_REPLACE, NetlinkError, Payload, Socket, attribute, attributes, u32_at,
};
use crate::rtnetlink::{MAIN_TABLE, ROUTES_MAX, Route, limit_name, parse_route};

/// Bytes of `struct rtmsg`.
const HEADER_BYTES: usize = 12;
/// When the kernel used it: reported, never taken.
const RTA_CACHEINFO: u16 = 12;
/// A gateway that need not lie in a network of the device: the one flag of a route that people set.
const RTNH_F_ONLINK: u32 = 4;
/// Numbers of metrics in `RTA_METRICS`.
const METRICS_MAX: u16 = 32;

/// Routes of the main table, each with its message.
pub fn routes_with_messages() -> Result<Vec<(Route, Vec<u8>)>, NetlinkError> {
    let mut found: Vec<(Route, Vec<u8>)> = Vec::new();
    let mut socket = Socket::open(libc::NETLINK_ROUTE)?;
    for family in [libc::AF_INET, libc::AF_INET6] {
        let mut header = [0; HEADER_BYTES];
        header[0] = family as u8;
        socket.dump(libc::RTM_GETROUTE, &Payload::new(&header), |message| {
            if let Some(route) = parse_route(message.payload)
                && let Some(taken) = takeable(message.payload)
                && route.table == MAIN_TABLE
                && found.len() < ROUTES_MAX
                && !found.iter().any(|(known, _)| *known == route)
            {
                found.push((route, taken));
            }
        })?;
    }
    Ok(found)
}

/// A dumped message without what the kernel does not take.
fn takeable(payload: &[u8]) -> Option<Vec<u8>> {
    let mut header = payload.get(..HEADER_BYTES)?.to_vec();
    let flags = u32_at(&header, 8)? & RTNH_F_ONLINK;
    header[8..12].copy_from_slice(&flags.to_ne_bytes());
    let kept = attributes(&payload[HEADER_BYTES..]).filter(|a| a.kind != RTA_CACHEINFO);
    Some(kept.fold(Payload::new(&header), |p, a| p.bytes(a.kind, a.data)).into_bytes())
}

/// Puts a route in force; one with the same destination and metric goes.
pub fn put(message: &[u8]) -> Result<(), NetlinkError> {
    let flags = NLM_F_CREATE | NLM_F_REPLACE;
    Socket::open(libc::NETLINK_ROUTE)?.request(libc::RTM_NEWROUTE, flags, &Payload::new(message), |_| {})
}

/// Removes a route.
pub fn delete(message: &[u8]) -> Result<(), NetlinkError> {
    Socket::open(libc::NETLINK_ROUTE)?.request(libc::RTM_DELROUTE, 0, &Payload::new(message), |_| {})
}

/// A message with other limits; those that have no name here stay as they are.
#[must_use]
pub fn with_limits(message: &[u8], limits: &BTreeMap<String, u32>) -> Option<Vec<u8>> {
    let body = message.get(HEADER_BYTES..)?;
    let old = attribute(body, libc::RTA_METRICS);
    let unnamed = old.iter().flat_map(crate::netlink::Attribute::nested);
    let unnamed = unnamed.filter(|m| limit_name(m.kind).is_none());
    let mut metrics = unnamed.fold(Payload::default(), |p, m| p.bytes(m.kind, m.data));
    for kind in 1..METRICS_MAX {
        if let Some(value) = limit_name(kind).and_then(|name| limits.get(&name)) {
            metrics = metrics.u32(kind, *value);
        }
    }
    let mut payload = Payload::new(&message[..HEADER_BYTES]);
    for a in attributes(body).filter(|a| a.kind != libc::RTA_METRICS) {
        payload = payload.bytes(a.kind, a.data);
    }
    Some(payload.nest(libc::RTA_METRICS, &metrics).into_bytes())
}

/// The message of a route that is not there yet; `None` for one over several next hops.
#[must_use]
pub fn message_of(route: &Route) -> Option<Vec<u8>> {
    if !route.next_hops.is_empty() {
        return None;
    }
    let mut header = [0; HEADER_BYTES];
    header[0] = if route.ipv6 { libc::AF_INET6 } else { libc::AF_INET } as u8;
    header[1] = route.prefix;
    header[4] = libc::RT_TABLE_MAIN;
    header[5] = libc::RTPROT_STATIC;
    let leads = route.refuses.is_none();
    let is_direct = leads && route.gateway.is_none() && !route.ipv6;
    header[6] = if is_direct { libc::RT_SCOPE_LINK } else { libc::RT_SCOPE_UNIVERSE };
    header[7] = match route.refuses.as_deref() {
        None => libc::RTN_UNICAST,
        Some("blackhole") => libc::RTN_BLACKHOLE,
        Some("unreachable") => libc::RTN_UNREACHABLE,
        Some("prohibit") => libc::RTN_PROHIBIT,
        Some(_) => return None,
    };
    let mut payload = Payload::new(&header);
    let addresses = [
        (libc::RTA_DST, route.destination),
        (libc::RTA_GATEWAY, route.gateway),
        (libc::RTA_PREFSRC, route.source),
    ];
    for (kind, address) in addresses {
        payload = match address {
            Some(IpAddr::V4(v4)) => payload.bytes(kind, &v4.octets()),
            Some(IpAddr::V6(v6)) => payload.bytes(kind, &v6.octets()),
            None => payload,
        };
    }
    for (kind, number) in [(libc::RTA_OIF, route.link), (libc::RTA_PRIORITY, route.metric)] {
        payload = number.map_or(payload.clone(), |number| payload.u32(kind, number));
    }
    with_limits(&payload.into_bytes(), &route.limits)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = takeable(&bytes);
            let _ = with_limits(&bytes, &BTreeMap::from([("mtu".to_owned(), 400)]));
        }
    }

    #[test]
    fn limits_are_exchanged_and_the_rest_stays() {
        let route = Route {
            table: MAIN_TABLE,
            destination: Some([10, 9, 0, 0].into()),
            prefix: 24,
            link: Some(7),
            metric: Some(50),
            limits: BTreeMap::from([("mtu".to_owned(), 400), ("window".to_owned(), 4096)]),
            ..Route::default()
        };
        let message = message_of(&route).unwrap();
        assert_eq!(parse_route(&message), Some(route.clone()));
        let only = BTreeMap::from([("window".to_owned(), 4096)]);
        let changed = with_limits(&message, &only).unwrap();
        assert_eq!(parse_route(&changed), Some(Route { limits: only, ..route }));
    }
}
