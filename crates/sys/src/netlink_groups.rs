//! What the kernel tells without being asked: links, addresses, routes, rules, qdiscs, neighbours, drivers'
//! settings, firewalls.
//!
//! In: groups of a netlink protocol. Out: their messages as they come, of the network namespace of the thread
//! that opened the socket.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use crate::netlink::{Message, NetlinkError, Socket, messages};

/// Groups of `NETLINK_ROUTE` (`linux/rtnetlink.h`), by number.
pub mod route {
    /// Links.
    pub const LINK: u32 = 1;
    /// Neighbours.
    pub const NEIGHBOUR: u32 = 3;
    /// Queueing disciplines, classes, filters.
    pub const TRAFFIC_CONTROL: u32 = 4;
    /// IPv4 addresses.
    pub const ADDRESS_V4: u32 = 5;
    /// IPv4 routes.
    pub const ROUTE_V4: u32 = 7;
    /// IPv4 rules.
    pub const RULE_V4: u32 = 8;
    /// IPv6 addresses.
    pub const ADDRESS_V6: u32 = 9;
    /// IPv6 routes.
    pub const ROUTE_V6: u32 = 11;
    /// IPv6 rules.
    pub const RULE_V6: u32 = 19;
}

/// The group of `NETLINK_NETFILTER` that has changes of nftables.
pub const NFTABLES: u32 = 7;

/// A socket that listens to groups.
#[derive(Debug)]
pub struct NetlinkGroups {
    socket: Socket,
}

impl NetlinkGroups {
    /// Listens to groups of a protocol, such as `libc::NETLINK_ROUTE`.
    pub fn on(protocol: libc::c_int, groups: &[u32]) -> Result<Self, NetlinkError> {
        let socket = Socket::open(protocol)?;
        for group in groups {
            socket.join(*group)?;
        }
        Ok(Self { socket })
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
