//! What the kernel reports without being asked: links, addresses, routes, rules, qdiscs, neighbours, drivers'
//! settings, firewalls.
//!
//! In: groups of a netlink protocol. Out: their messages as they come, of the network namespace of the thread
//! that opened the socket.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use crate::netlink::{Message, NetlinkError, Socket, attribute, messages, u32_at};
use crate::nftables;

/// Groups of `NETLINK_ROUTE` that have settings (`linux/rtnetlink.h`): links 1, queueing disciplines, classes
/// and filters 4, IPv4 addresses 5, routes 7, rules 8, IPv6 addresses 9, routes 11, rules 19. Neighbours (3)
/// are left out: the kernel learns and forgets them all the time.
const ROUTE_GROUPS: [u32; 8] = [1, 4, 5, 7, 8, 9, 11, 19];
/// The group of `NETLINK_NETFILTER` that has changes of nftables (`NFNLGRP_NFTABLES`).
const NFTABLES_GROUP: u32 = 7;

/// What a message of rtnetlink is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteMessage {
    /// A device by its number.
    Device(u32, DevicePart),
    /// The routing tables.
    Routes,
    /// The rules that choose among them.
    Rules,
}

/// What of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DevicePart {
    /// Itself: its state and its own settings.
    Link,
    /// Its addresses.
    Addresses,
    /// Its queueing disciplines and their classes.
    Queues,
    /// Its filters.
    Filters,
}

impl RouteMessage {
    /// Reads it.
    #[must_use]
    pub fn of(message: &Message<'_>) -> Option<Self> {
        // The number stands at the same offset in all of them.
        let device = |part| u32_at(message.payload, 4).map(|number| Self::Device(number, part));
        match message.kind {
            libc::RTM_NEWLINK | libc::RTM_DELLINK => device(DevicePart::Link),
            libc::RTM_NEWADDR | libc::RTM_DELADDR => device(DevicePart::Addresses),
            libc::RTM_NEWQDISC | libc::RTM_DELQDISC | libc::RTM_NEWTCLASS | libc::RTM_DELTCLASS => {
                device(DevicePart::Queues)
            }
            libc::RTM_NEWTFILTER | libc::RTM_DELTFILTER => device(DevicePart::Filters),
            libc::RTM_NEWROUTE | libc::RTM_DELROUTE => Some(Self::Routes),
            libc::RTM_NEWRULE | libc::RTM_DELRULE => Some(Self::Rules),
            _ => None,
        }
    }
}

/// The process that changed nftables, by the message that ends each change (`NFT_MSG_NEWGEN`): its number and
/// its name (`NFTA_GEN_PROC_PID`, `NFTA_GEN_PROC_NAME`).
#[must_use]
pub fn process_of_ruleset(message: &Message<'_>) -> Option<(i32, String)> {
    const CHANGED: u16 = nftables::SUBSYSTEM | 15;
    // `struct nfgenmsg` comes first.
    let attributes = message.payload.get(4..).filter(|_| message.kind == CHANGED)?;
    let number = <[u8; 4]>::try_from(attribute(attributes, 2)?.data).ok()?;
    let name = attribute(attributes, 3)?.data;
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    Some((i32::from_be_bytes(number), String::from_utf8_lossy(name).into_owned()))
}

/// A socket that listens to groups.
#[derive(Debug)]
pub struct NetlinkGroups {
    socket: Socket,
}

impl NetlinkGroups {
    /// Listens to groups of a protocol, such as `libc::NETLINK_ROUTE`.
    pub(crate) fn on(protocol: libc::c_int, groups: &[u32]) -> Result<Self, NetlinkError> {
        let socket = Socket::open(protocol)?;
        socket.bind()?;
        for group in groups {
            socket.join(*group)?;
        }
        Ok(Self { socket })
    }

    /// Links, addresses, queueing disciplines, routes, rules.
    pub fn routing() -> Result<Self, NetlinkError> {
        Self::on(libc::NETLINK_ROUTE, &ROUTE_GROUPS)
    }

    /// Tables and rules of nftables. Needs root of the network namespace.
    pub fn nftables() -> Result<Self, NetlinkError> {
        Self::on(libc::NETLINK_NETFILTER, &[NFTABLES_GROUP])
    }

    /// Messages since the last call. `false`: there were more than the socket holds.
    pub fn drain(&mut self, mut each: impl FnMut(&Message<'_>)) -> io::Result<bool> {
        let mut is_whole = true;
        loop {
            match self.socket.next_datagram() {
                Ok(datagram) => messages(datagram).for_each(|message| each(&message)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(is_whole),
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => is_whole = false,
                Err(error) => return Err(error),
            }
        }
    }
}

impl AsFd for NetlinkGroups {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_message_may_have_its_process() {
        let of = |port| Message { kind: 0, flags: 0, sequence: 0, port, payload: &[] }.process();
        assert_eq!((of(0x1267), of(0x1267 | 3 << 22)), (Some(0x1267), Some(0x1267)));
        assert_eq!((of(0), of(1 << 31 | 5), of(1 << 22)), (None, None, None));
        let mut payload = vec![0, 0, 0, 1, 8, 0, 2, 0, 0, 0, 0x12, 0x67, 8, 0, 3, 0];
        payload.extend(b"nft\0");
        let ruleset = |kind, payload| Message { kind, flags: 0, sequence: 0, port: 0, payload };
        let kind = nftables::SUBSYSTEM | 15;
        assert_eq!(process_of_ruleset(&ruleset(kind, &payload)), Some((4711, "nft".to_owned())));
        assert_eq!(process_of_ruleset(&ruleset(kind + 1, &payload)), None);
        for end in 0..payload.len() {
            assert_eq!(process_of_ruleset(&ruleset(kind, &payload[..end])), None);
        }
    }

    #[test]
    fn a_message_is_about_a_device_routes_or_rules() {
        let payload = [0, 0, 0, 0, 7, 0, 0, 0];
        let of =
            |kind| RouteMessage::of(&Message { kind, flags: 0, sequence: 0, port: 0, payload: &payload });
        assert_eq!(
            of(libc::RTM_NEWQDISC),
            Some(RouteMessage::Device(u32::from_ne_bytes([7, 0, 0, 0]), DevicePart::Queues))
        );
        assert_eq!(
            (of(libc::RTM_DELROUTE), of(libc::RTM_NEWRULE)),
            (Some(RouteMessage::Routes), Some(RouteMessage::Rules))
        );
        assert_eq!(of(libc::RTM_NEWNEIGH), None);
        assert_eq!(
            RouteMessage::of(&Message {
                kind: libc::RTM_NEWLINK,
                flags: 0,
                sequence: 0,
                port: 0,
                payload: &[]
            }),
            None
        );
    }
}
