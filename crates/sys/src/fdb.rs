//! Permanent forwarding entries of bridges and tunnels in the network namespace of the calling thread
//! (`bridge fdb`), by rtnetlink. What a bridge learned changes by itself and is left out.
//!
//! In: nothing. Out: plain types, which are also what a recorded tree keeps (`forwarding.json`). Bounded in
//! number; it never decides whether an entry is right.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::netlink::{NetlinkError, Payload, Socket, attribute, u16_at, u32_at};
use crate::rtnetlink::{hardware_address, ip};

/// Most entries that are kept: large overlays have one for each remote host.
pub const ENTRIES_MAX: usize = 2048;

/// A forwarding entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForwardingEntry {
    /// Index of the device: a tunnel, or a port of a bridge.
    pub link: u32,
    /// Hardware address that is forwarded; all zeros for what has no entry of its own.
    pub hardware: String,
    /// Address of the tunnel's other end.
    #[serde(default)]
    pub remote: Option<IpAddr>,
    /// Tag of the VLAN in which it holds.
    #[serde(default)]
    pub vlan: Option<u16>,
}

/// All permanent entries, the first [`ENTRIES_MAX`].
pub fn entries() -> Result<Vec<ForwardingEntry>, NetlinkError> {
    let mut found = Vec::new();
    let mut header = [0; 12];
    header[0] = libc::AF_BRIDGE as u8;
    Socket::open(libc::NETLINK_ROUTE)?.dump(libc::RTM_GETNEIGH, &Payload::new(&header), |message| {
        if let Some(entry) = parse_entry(message.payload)
            && found.len() < ENTRIES_MAX
            && !found.contains(&entry)
        {
            found.push(entry);
        }
    })?;
    Ok(found)
}

pub(crate) fn parse_entry(payload: &[u8]) -> Option<ForwardingEntry> {
    let header = payload.get(..12).filter(|header| header[0] == libc::AF_BRIDGE as u8)?;
    let body = &payload[12..];
    let state = u16_at(header, 8)?;
    let remote = attribute(body, libc::NDA_DST).and_then(|a| ip(a.data));
    // A permanent entry without a remote end is an own address of the device.
    let is_written = state & libc::NUD_NOARP != 0 || (state & libc::NUD_PERMANENT != 0 && remote.is_some());
    let hardware = attribute(body, libc::NDA_LLADDR)?.data;
    if !is_written || hardware.is_empty() {
        return None;
    }
    Some(ForwardingEntry {
        link: u32_at(header, 4)?,
        hardware: hardware_address(hardware),
        remote,
        vlan: attribute(body, libc::NDA_VLAN).and_then(|a| a.u16()),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = parse_entry(&bytes);
        }
    }
}
