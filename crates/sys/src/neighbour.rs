//! Permanent neighbour entries: written and removed.
//!
//! In: a device, an address, a hardware address. Out: the kernel's answer. It never decides which entry is
//! wrong; they are read in `rtnetlink`.

use std::net::IpAddr;

use crate::netlink::{NLM_F_CREATE, NLM_F_REPLACE, NetlinkError, Payload, Socket};

/// Writes an entry for good; one that is there is replaced.
pub fn set(link: u32, address: IpAddr, hardware: &[u8]) -> Result<(), NetlinkError> {
    let payload = named(link, address).bytes(libc::NDA_LLADDR, hardware);
    let flags = NLM_F_CREATE | NLM_F_REPLACE;
    Socket::open(libc::NETLINK_ROUTE)?.request(libc::RTM_NEWNEIGH, flags, &payload, |_| {})
}

/// Removes an entry, so that the kernel asks for the neighbour; one that is not there is no error.
pub fn delete(link: u32, address: IpAddr) -> Result<(), NetlinkError> {
    let payload = named(link, address);
    match Socket::open(libc::NETLINK_ROUTE)?.request(libc::RTM_DELNEIGH, 0, &payload, |_| {}) {
        Err(NetlinkError::Refused { errno: libc::ENOENT, .. }) => Ok(()),
        other => other,
    }
}

fn named(link: u32, address: IpAddr) -> Payload {
    // `struct ndmsg`: family, padding, device, state, flags, type.
    let mut header = [0; 12];
    header[0] = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 } as u8;
    header[4..8].copy_from_slice(&link.to_ne_bytes());
    header[8..10].copy_from_slice(&libc::NUD_PERMANENT.to_ne_bytes());
    match address {
        IpAddr::V4(v4) => Payload::new(&header).bytes(libc::NDA_DST, &v4.octets()),
        IpAddr::V6(v6) => Payload::new(&header).bytes(libc::NDA_DST, &v6.octets()),
    }
}
