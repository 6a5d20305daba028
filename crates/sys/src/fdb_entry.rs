//! Permanent forwarding entries of one hardware address as the kernel dumps and takes them: changed, removed
//! and put back exactly as they were.
//!
//! In: messages that were read, or an entry to make one of. Out: the kernel's answer. What is put back is
//! what was read, but for what only the kernel reports; it never decides which entry is wrong.

use std::net::IpAddr;

use crate::fdb::{ForwardingEntry, parse_entry};
use crate::netlink::{
    NLM_F_APPEND, NLM_F_CREATE, NLM_F_REPLACE, NetlinkError, Payload, Socket, attribute, attributes, u32_at,
};

/// Bytes of `struct ndmsg`.
const HEADER_BYTES: usize = 12;
/// Bridge of an entry of a port, `linux/neighbour.h`.
const NDA_MASTER: u16 = 9;
/// Network of a tunnel that a frame came from.
const NDA_SRC_VNI: u16 = 11;
/// Next hop of routes, instead of an address.
const NDA_NH_ID: u16 = 13;
/// `NTF_EXT_LEARNED`: written by a control plane.
const BY_CONTROL_PLANE: u8 = 0x10;
/// `NTF_STICKY`: the address does not move to another port.
const STICKY: u8 = 0x40;

/// Attributes that the kernel takes; the others it only reports.
const TAKEN: [u16; 8] = [
    libc::NDA_DST,
    libc::NDA_LLADDR,
    libc::NDA_VLAN,
    libc::NDA_PORT,
    libc::NDA_VNI,
    libc::NDA_IFINDEX,
    NDA_SRC_VNI,
    NDA_NH_ID,
];

/// Entries of a device for a hardware address with their messages, in the order of the kernel.
pub fn entries_of(link: u32, hardware: &str) -> Result<Vec<(ForwardingEntry, Vec<u8>)>, NetlinkError> {
    let mut found: Vec<(ForwardingEntry, Vec<u8>)> = Vec::new();
    each(|entry, _, taken| {
        if entry.link == link && entry.hardware == hardware && !found.iter().any(|(_, known)| *known == taken)
        {
            found.push((entry, taken));
        }
    })?;
    Ok(found)
}

/// Indices of the ports of a bridge that have an entry for a hardware address in the same VLAN.
pub fn ports_with(bridge: u32, hardware: &str, vlan: Option<u16>) -> Result<Vec<u32>, NetlinkError> {
    let mut found = Vec::new();
    each(|entry, master, _| {
        if master == Some(bridge) && entry.hardware == hardware && entry.vlan == vlan {
            found.push(entry.link);
        }
    })?;
    Ok(found)
}

/// All permanent entries, each with its bridge and the message to put it back.
fn each(mut take: impl FnMut(ForwardingEntry, Option<u32>, Vec<u8>)) -> Result<(), NetlinkError> {
    let mut header = [0; HEADER_BYTES];
    header[0] = libc::AF_BRIDGE as u8;
    Socket::open(libc::NETLINK_ROUTE)?.dump(libc::RTM_GETNEIGH, &Payload::new(&header), |message| {
        if let Some(entry) = parse_entry(message.payload)
            && let Some(taken) = takeable(message.payload)
        {
            take(entry, bridge_of(message.payload), taken);
        }
    })
}

fn bridge_of(payload: &[u8]) -> Option<u32> {
    attribute(payload.get(HEADER_BYTES..)?, NDA_MASTER)?.u32()
}

/// A dumped message without what the kernel does not take, addressed to the bridge of a port or to the device
/// itself.
fn takeable(payload: &[u8]) -> Option<Vec<u8>> {
    let mut header = payload.get(..HEADER_BYTES)?.to_vec();
    let is_of_port = bridge_of(payload).is_some_and(|bridge| Some(bridge) != u32_at(payload, 4));
    let taker = if is_of_port { libc::NTF_MASTER } else { libc::NTF_SELF };
    header[10] = header[10] & (BY_CONTROL_PLANE | STICKY | libc::NTF_ROUTER) | taker;
    let kept = attributes(&payload[HEADER_BYTES..]).filter(|a| TAKEN.contains(&a.kind));
    Some(kept.fold(Payload::new(&header), |p, a| p.bytes(a.kind, a.data)).into_bytes())
}

/// The entry of a message.
#[must_use]
pub fn entry_of(message: &[u8]) -> Option<ForwardingEntry> {
    parse_entry(message)
}

/// Whether frames to a hardware address may go to several ends of a tunnel: to those of a group, and all
/// zeros for what has no entry.
#[must_use]
pub fn has_many_ends(hardware: &[u8]) -> bool {
    hardware.first().is_some_and(|first| first & 1 == 1) || hardware.iter().all(|byte| *byte == 0)
}

/// Puts an entry in force. The end of a tunnel replaces the former one, but where there may be several.
pub fn put(message: &[u8]) -> Result<(), NetlinkError> {
    let body = message.get(HEADER_BYTES..).unwrap_or_default();
    let many = attribute(body, libc::NDA_LLADDR).is_some_and(|a| has_many_ends(a.data));
    let flags = NLM_F_CREATE | if many { NLM_F_APPEND } else { NLM_F_REPLACE };
    Socket::open(libc::NETLINK_ROUTE)?.request(libc::RTM_NEWNEIGH, flags, &Payload::new(message), |_| {})
}

/// Removes an entry; one that is not there is no error. Without a VLAN those of all VLANs go.
pub fn delete(message: &[u8]) -> Result<(), NetlinkError> {
    let payload = Payload::new(message);
    match Socket::open(libc::NETLINK_ROUTE)?.request(libc::RTM_DELNEIGH, 0, &payload, |_| {}) {
        Err(NetlinkError::Refused { errno: libc::ENOENT, .. }) => Ok(()),
        other => other,
    }
}

/// A message with another end of the tunnel.
#[must_use]
pub fn with_remote(message: &[u8], remote: IpAddr) -> Option<Vec<u8>> {
    let header = message.get(..HEADER_BYTES)?;
    // A next hop stands for the address.
    let old = [libc::NDA_DST, NDA_NH_ID];
    let kept = attributes(&message[HEADER_BYTES..]).filter(|a| !old.contains(&a.kind));
    let payload = kept.fold(Payload::new(header), |p, a| p.bytes(a.kind, a.data));
    Some(to(payload, remote).into_bytes())
}

fn to(payload: Payload, remote: IpAddr) -> Payload {
    match remote {
        IpAddr::V4(v4) => payload.bytes(libc::NDA_DST, &v4.octets()),
        IpAddr::V6(v6) => payload.bytes(libc::NDA_DST, &v6.octets()),
    }
}

/// The message of an entry that is not there yet: of a tunnel where it has a remote end, else of the bridge
/// of a port.
#[must_use]
pub fn message_of(entry: &ForwardingEntry, hardware: &[u8]) -> Vec<u8> {
    // `struct ndmsg`: family, padding, device, state, flags, type.
    let mut header = [0; HEADER_BYTES];
    header[0] = libc::AF_BRIDGE as u8;
    header[4..8].copy_from_slice(&entry.link.to_ne_bytes());
    let (state, taker) = match entry.remote {
        Some(_) => (libc::NUD_PERMANENT, libc::NTF_SELF),
        None => (libc::NUD_NOARP, libc::NTF_MASTER),
    };
    header[8..10].copy_from_slice(&state.to_ne_bytes());
    header[10] = taker;
    let mut payload = Payload::new(&header).bytes(libc::NDA_LLADDR, hardware);
    if let Some(vlan) = entry.vlan {
        payload = payload.bytes(libc::NDA_VLAN, &vlan.to_ne_bytes());
    }
    entry.remote.map_or(payload.clone(), |remote| to(payload, remote)).into_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = takeable(&bytes);
            let _ = with_remote(&bytes, IpAddr::from([10, 0, 0, 1]));
        }
    }

    #[test]
    fn an_entry_is_made_and_its_end_exchanged() {
        let hardware = [2, 0, 0, 0, 0, 7];
        let entry = ForwardingEntry {
            link: 9,
            hardware: "02:00:00:00:00:07".to_owned(),
            remote: Some([10, 0, 0, 1].into()),
            vlan: None,
        };
        let message = message_of(&entry, &hardware);
        assert_eq!(entry_of(&message), Some(entry.clone()));
        let moved = IpAddr::from([10, 0, 0, 2]);
        let expected = ForwardingEntry { remote: Some(moved), ..entry.clone() };
        assert_eq!(entry_of(&with_remote(&message, moved).unwrap()), Some(expected));
        let of_port = ForwardingEntry { remote: None, vlan: Some(5), ..entry };
        assert_eq!(entry_of(&message_of(&of_port, &hardware)), Some(of_port));
    }

    #[test]
    fn a_group_and_all_zeros_have_many_ends() {
        assert!(has_many_ends(&[0; 6]) && has_many_ends(&[1, 0, 0x5e, 0, 0, 1]));
        assert!(!has_many_ends(&[2, 0, 0, 0, 0, 7]) && !has_many_ends(&[0, 0, 0, 0, 0, 7]));
    }
}
