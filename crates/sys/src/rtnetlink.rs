//! Links, addresses and routes of the network namespace of the calling thread, by rtnetlink.
//!
//! In: nothing, or a device and a value to set. Out: plain types, which are also what a recorded tree keeps
//! (`links.json`, `addresses.json`, `routes.json`). Bounded in number; it never decides what a value means.
//!
//! The crate `netlink-packet-route` would save no line, as each field and counter is named all the same, and
//! it drops a whole message for one attribute that it cannot read; here the others are kept.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

use crate::netlink::{
    Attribute, Message, NetlinkError, Payload, Socket, attribute, attributes, i32_at, u16_at, u32_at,
};

const IFLA_XDP_ATTACHED: u16 = 2;
const IFLA_XDP_PROG_ID: u16 = 4;
const IFLA_VXLAN_ID: u16 = 1;
const IFLA_VXLAN_LINK: u16 = 3;
const IFLA_VXLAN_PORT: u16 = 15;
const IFLA_VLAN_ID: u16 = 1;
const IFLA_BOND_MODE: u16 = 1;
/// Leaves virtual functions and statistics of bridges out of the answer.
const RTEXT_FILTER_SKIP_STATS: u32 = libc::RTEXT_FILTER_SKIP_STATS as u32;

/// Most links, addresses and routes that are kept.
pub const LINKS_MAX: usize = 4096;
/// See [`LINKS_MAX`]; of the main table.
pub const ROUTES_MAX: usize = 1024;
/// Most routes of all other tables: routers of overlays have one table for each network.
pub const TABLE_ROUTES_MAX: usize = 512;
/// Number of the usual table.
pub const MAIN_TABLE: u32 = libc::RT_TABLE_MAIN as u32;
/// Most neighbours that are kept: nodes of large overlays have thousands that were written by hand.
pub const NEIGHBOURS_MAX: usize = 1024;

/// Names of the fields of `rtnl_link_stats64`, in its order.
const STATS: &str = "rx_packets tx_packets rx_bytes tx_bytes rx_errors tx_errors rx_dropped tx_dropped multicast \
    collisions rx_length_errors rx_over_errors rx_crc_errors rx_frame_errors rx_fifo_errors \
    rx_missed_errors tx_aborted_errors tx_carrier_errors tx_fifo_errors tx_heartbeat_errors \
    tx_window_errors rx_compressed tx_compressed rx_nohandler rx_otherhost_dropped";

/// Outer addressing of a vxlan device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vxlan {
    /// Network identifier.
    pub id: u32,
    /// UDP port.
    pub port: u16,
    /// Index of the device that it is bound to; `None` for an unbound one.
    #[serde(default)]
    pub lower: Option<u32>,
}

/// A program that sees what a device receives before the network stack does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Xdp {
    /// Where it runs, a number of `XDP_ATTACHED_*`: 1 driver, 2 generic, 3 hardware, 4 several of them.
    pub mode: u8,
    /// Its number in this kernel; absent with several.
    #[serde(default)]
    pub program: Option<u32>,
}

/// A network device. Absent values are `None`: the kernel did not say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetDevice {
    /// Index.
    pub index: u32,
    /// Name.
    pub name: String,
    /// Kind of a virtual device: `veth`, `vxlan`, `bridge`, `bond`, `vlan`.
    #[serde(default)]
    pub kind: Option<String>,
    /// Kind of its master.
    #[serde(default)]
    pub slave_kind: Option<String>,
    /// Index of the bridge or bond that it belongs to.
    #[serde(default)]
    pub master: Option<u32>,
    /// Index of the device below (vlan, macvlan) or of the other end (veth), in this namespace.
    #[serde(default)]
    pub lower: Option<u32>,
    /// Hardware address.
    #[serde(default)]
    pub address: Option<String>,
    /// Hardware address that the device was made with.
    #[serde(default)]
    pub permanent_address: Option<String>,
    /// MTU in bytes.
    #[serde(default)]
    pub mtu: Option<u32>,
    /// Largest MTU that the driver takes.
    #[serde(default)]
    pub max_mtu: Option<u32>,
    /// Length of the transmit queue in packets.
    #[serde(default)]
    pub txqueuelen: Option<u32>,
    /// Root qdisc.
    #[serde(default)]
    pub qdisc: Option<String>,
    /// Administratively up.
    #[serde(default)]
    pub up: bool,
    /// The loopback device.
    #[serde(default)]
    pub loopback: bool,
    /// Operational state as a number of `IF_OPER_*`.
    #[serde(default)]
    pub operstate: Option<u8>,
    /// How often the carrier came or went since boot.
    #[serde(default)]
    pub carrier_changes: Option<u32>,
    /// Queues.
    #[serde(default)]
    pub rx_queues: Option<u32>,
    /// Queues.
    #[serde(default)]
    pub tx_queues: Option<u32>,
    /// Largest aggregated packet sent.
    #[serde(default)]
    pub gso_max_size: Option<u32>,
    /// Most packets that one aggregated packet becomes.
    #[serde(default)]
    pub gso_max_segs: Option<u32>,
    /// Largest aggregated packet received.
    #[serde(default)]
    pub gro_max_size: Option<u32>,
    /// Of a vxlan device.
    #[serde(default)]
    pub vxlan: Option<Vxlan>,
    /// Of a vlan device.
    #[serde(default)]
    pub vlan_id: Option<u16>,
    /// Of a bond, as a number.
    #[serde(default)]
    pub bond_mode: Option<u8>,
    /// Its XDP program.
    #[serde(default)]
    pub xdp: Option<Xdp>,
    /// Counters.
    #[serde(default)]
    pub stats: BTreeMap<String, u64>,
}

/// An address of a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    /// Index of the device.
    pub link: u32,
    /// Address.
    pub address: IpAddr,
    /// Length of the prefix.
    pub prefix: u8,
}

/// A neighbour that somebody wrote down: the kernel never asks for it again, however wrong it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Neighbour {
    /// Index of the device.
    pub link: u32,
    /// Its address.
    pub address: IpAddr,
    /// Its hardware address.
    pub hardware: String,
}

/// A route of any table but that of the host's own addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// Its table; absent in trees that were recorded when only the main one was read.
    #[serde(default = "main_table")]
    pub table: u32,
    /// What it does instead of leading somewhere: `blackhole`, `unreachable`, `prohibit`, `throw`; `None` for
    /// one that leads.
    #[serde(default)]
    pub refuses: Option<String>,
    /// Destination; `None` for the default route.
    #[serde(default)]
    pub destination: Option<IpAddr>,
    /// Length of the prefix.
    #[serde(default)]
    pub prefix: u8,
    /// Whether it is an IPv6 route.
    #[serde(default)]
    pub ipv6: bool,
    /// Gateway.
    #[serde(default)]
    pub gateway: Option<IpAddr>,
    /// Index of the device.
    #[serde(default)]
    pub link: Option<u32>,
    /// Preferred own address.
    #[serde(default)]
    pub source: Option<IpAddr>,
    /// Priority.
    #[serde(default)]
    pub metric: Option<u32>,
    /// Limits of this route: `mtu`, `window`, `initcwnd`, `advmss` …
    #[serde(default)]
    pub limits: BTreeMap<String, u32>,
    /// Next hops of a multipath route: gateway and device index.
    #[serde(default)]
    pub next_hops: Vec<(Option<IpAddr>, u32)>,
}

fn main_table() -> u32 {
    MAIN_TABLE
}

/// All devices.
pub fn links() -> Result<Vec<NetDevice>, NetlinkError> {
    let mut found: BTreeMap<u32, NetDevice> = BTreeMap::new();
    let payload = Payload::new(&[0; 16]).u32(libc::IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
    Socket::open(libc::NETLINK_ROUTE)?.dump(libc::RTM_GETLINK, &payload, |message| {
        if let Some(link) = parse_link(message)
            && found.len() < LINKS_MAX
        {
            found.insert(link.index, link);
        }
    })?;
    Ok(found.into_values().collect())
}

/// Reads one device out of a message.
pub fn parse_link(message: &Message<'_>) -> Option<NetDevice> {
    let header = message.payload.get(..16).filter(|_| message.kind == libc::RTM_NEWLINK)?;
    let flags = u32_at(header, 8)?;
    let mut link = NetDevice {
        index: u32_at(header, 4)?,
        up: flags & libc::IFF_UP as u32 != 0,
        loopback: flags & libc::IFF_LOOPBACK as u32 != 0,
        ..NetDevice::default()
    };
    let mut lower_is_elsewhere = false;
    for a in attributes(&message.payload[16..]) {
        match a.kind {
            libc::IFLA_IFNAME => link.name = a.text(),
            libc::IFLA_ADDRESS => link.address = Some(hardware_address(a.data)),
            libc::IFLA_PERM_ADDRESS => link.permanent_address = Some(hardware_address(a.data)),
            libc::IFLA_MTU => link.mtu = a.u32(),
            libc::IFLA_MAX_MTU => link.max_mtu = a.u32().filter(|m| *m != 0),
            libc::IFLA_LINK => link.lower = a.u32().filter(|l| *l != 0 && *l != link.index),
            libc::IFLA_LINK_NETNSID => lower_is_elsewhere = true,
            libc::IFLA_QDISC => link.qdisc = Some(a.text()),
            libc::IFLA_MASTER => link.master = a.u32(),
            libc::IFLA_TXQLEN => link.txqueuelen = a.u32(),
            libc::IFLA_OPERSTATE => link.operstate = a.u8(),
            libc::IFLA_CARRIER_CHANGES => link.carrier_changes = a.u32(),
            libc::IFLA_NUM_RX_QUEUES => link.rx_queues = a.u32(),
            libc::IFLA_NUM_TX_QUEUES => link.tx_queues = a.u32(),
            libc::IFLA_GSO_MAX_SIZE => link.gso_max_size = a.u32(),
            libc::IFLA_GSO_MAX_SEGS => link.gso_max_segs = a.u32(),
            libc::IFLA_GRO_MAX_SIZE => link.gro_max_size = a.u32(),
            libc::IFLA_STATS64 => link.stats = parse_stats(a.data),
            libc::IFLA_XDP => {
                let field = |kind| attribute(a.data, kind);
                let mode = field(IFLA_XDP_ATTACHED).and_then(|a| a.u8()).filter(|mode| *mode != 0);
                let program = field(IFLA_XDP_PROG_ID).and_then(|a| a.u32());
                link.xdp = mode.map(|mode| Xdp { mode, program });
            }
            libc::IFLA_LINKINFO => parse_kind(&a, &mut link),
            _ => {}
        }
    }
    if lower_is_elsewhere {
        link.lower = None;
    }
    Some(link).filter(|l| !l.name.is_empty())
}

fn parse_kind(info: &Attribute<'_>, link: &mut NetDevice) {
    link.kind = attribute(info.data, libc::IFLA_INFO_KIND).map(|a| a.text());
    link.slave_kind = attribute(info.data, libc::IFLA_INFO_SLAVE_KIND).map(|a| a.text());
    let Some(data) = attribute(info.data, libc::IFLA_INFO_DATA) else { return };
    match link.kind.as_deref() {
        Some("vxlan") => {
            let field = |kind| attribute(data.data, kind);
            link.vxlan = Some(Vxlan {
                id: field(IFLA_VXLAN_ID).and_then(|a| a.u32()).unwrap_or(0),
                port: field(IFLA_VXLAN_PORT).and_then(|a| a.u16_network()).unwrap_or(0),
                lower: field(IFLA_VXLAN_LINK).and_then(|a| a.u32()).filter(|l| *l != 0),
            });
        }
        Some("vlan") => link.vlan_id = attribute(data.data, IFLA_VLAN_ID).and_then(|a| a.u16()),
        Some("bond") => link.bond_mode = attribute(data.data, IFLA_BOND_MODE).and_then(|a| a.u8()),
        _ => {}
    }
}

fn parse_stats(data: &[u8]) -> BTreeMap<String, u64> {
    let values = data.chunks_exact(8).filter_map(|c| Some(u64::from_ne_bytes(c.try_into().ok()?)));
    STATS.split_whitespace().map(str::to_owned).zip(values).collect()
}

pub(crate) fn hardware_address(bytes: &[u8]) -> String {
    bytes.iter().take(32).map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(":")
}

/// Addresses of all devices.
pub fn addresses() -> Result<Vec<Address>, NetlinkError> {
    let mut found = Vec::new();
    Socket::open(libc::NETLINK_ROUTE)?.dump(libc::RTM_GETADDR, &Payload::new(&[0; 8]), |message| {
        if let Some(address) = parse_address(message.payload)
            && found.len() < LINKS_MAX
            && !found.contains(&address)
        {
            found.push(address);
        }
    })?;
    Ok(found)
}

fn parse_address(payload: &[u8]) -> Option<Address> {
    let header = payload.get(..8)?;
    // IFA_LOCAL is the own address where IFA_ADDRESS is that of the other end.
    let own =
        attribute(&payload[8..], libc::IFA_LOCAL).or_else(|| attribute(&payload[8..], libc::IFA_ADDRESS))?;
    Some(Address { link: u32_at(header, 4)?, address: ip(own.data)?, prefix: header[1] })
}

pub(crate) fn ip(data: &[u8]) -> Option<IpAddr> {
    match data.len() {
        4 => Some(IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(data).ok()?))),
        16 => Some(IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(data).ok()?))),
        _ => None,
    }
}

/// Neighbours of all devices that are there for good, the first [`NEIGHBOURS_MAX`]; those that the kernel
/// learned come and go.
pub fn neighbours() -> Result<Vec<Neighbour>, NetlinkError> {
    let mut found = Vec::new();
    let mut socket = Socket::open(libc::NETLINK_ROUTE)?;
    for family in [libc::AF_INET, libc::AF_INET6] {
        let mut header = [0; 12];
        header[0] = family as u8;
        socket.dump(libc::RTM_GETNEIGH, &Payload::new(&header), |message| {
            if let Some(neighbour) = parse_neighbour(message.payload)
                && found.len() < NEIGHBOURS_MAX
                && !found.contains(&neighbour)
            {
                found.push(neighbour);
            }
        })?;
    }
    Ok(found)
}

fn parse_neighbour(payload: &[u8]) -> Option<Neighbour> {
    let header = payload.get(..12)?;
    let hardware = attribute(&payload[12..], libc::NDA_LLADDR)?.data;
    if u16_at(header, 8)? & libc::NUD_PERMANENT == 0 || hardware.is_empty() {
        return None;
    }
    Some(Neighbour {
        link: u32_at(header, 4)?,
        address: ip(attribute(&payload[12..], libc::NDA_DST)?.data)?,
        hardware: hardware_address(hardware),
    })
}

/// Routes that lead somewhere or refuse: the first [`ROUTES_MAX`] of the main table and the first
/// [`TABLE_ROUTES_MAX`] of the others but that of the host's own addresses.
pub fn routes() -> Result<Vec<Route>, NetlinkError> {
    let (mut found, mut others): (Vec<Route>, Vec<Route>) = (Vec::new(), Vec::new());
    let mut socket = Socket::open(libc::NETLINK_ROUTE)?;
    for family in [libc::AF_INET, libc::AF_INET6] {
        let mut header = [0; 12];
        header[0] = family as u8;
        socket.dump(libc::RTM_GETROUTE, &Payload::new(&header), |message| {
            if let Some(route) = parse_route(message.payload) {
                let (routes, most) = if route.table == MAIN_TABLE {
                    (&mut found, ROUTES_MAX)
                } else {
                    (&mut others, TABLE_ROUTES_MAX)
                };
                if routes.len() < most && !routes.contains(&route) {
                    routes.push(route);
                }
            }
        })?;
    }
    found.append(&mut others);
    Ok(found)
}

pub(crate) fn parse_route(payload: &[u8]) -> Option<Route> {
    let header = payload.get(..12)?;
    let body = &payload[12..];
    let table =
        attribute(body, libc::RTA_TABLE).and_then(|a| a.u32()).unwrap_or_else(|| u32::from(header[4]));
    let refuses = match header[7] {
        libc::RTN_UNICAST => None,
        libc::RTN_BLACKHOLE => Some("blackhole".to_string()),
        libc::RTN_UNREACHABLE => Some("unreachable".to_string()),
        libc::RTN_PROHIBIT => Some("prohibit".to_string()),
        libc::RTN_THROW => Some("throw".to_string()),
        _ => return None,
    };
    if table == u32::from(libc::RT_TABLE_LOCAL) || u32_at(header, 8)? & libc::RTM_F_CLONED != 0 {
        return None;
    }
    let ipv6 = header[0] == libc::AF_INET6 as u8;
    let mut route = Route { table, refuses, prefix: header[1], ipv6, ..Route::default() };
    for a in attributes(body) {
        match a.kind {
            libc::RTA_DST => route.destination = ip(a.data),
            libc::RTA_OIF => route.link = a.u32(),
            libc::RTA_GATEWAY => route.gateway = ip(a.data),
            libc::RTA_PRIORITY => route.metric = a.u32(),
            libc::RTA_PREFSRC => route.source = ip(a.data),
            libc::RTA_METRICS => {
                route.limits = a.nested().filter_map(|m| Some((limit_name(m.kind)?, m.u32()?))).collect();
            }
            libc::RTA_MULTIPATH => route.next_hops = parse_next_hops(a.data),
            _ => {}
        }
    }
    Some(route)
}

pub(crate) fn limit_name(kind: u16) -> Option<String> {
    let name = match kind {
        1 => "lock",
        2 => "mtu",
        3 => "window",
        4 => "rtt",
        7 => "cwnd",
        8 => "advmss",
        9 => "reordering",
        11 => "initcwnd",
        13 => "rto_min",
        14 => "initrwnd",
        15 => "quickack",
        _ => return None,
    };
    Some(name.to_string())
}

fn parse_next_hops(data: &[u8]) -> Vec<(Option<IpAddr>, u32)> {
    let mut rest = data;
    let mut hops = Vec::new();
    while let Some(length) = u16_at(rest, 0).map(usize::from)
        && (8..=rest.len()).contains(&length)
        && hops.len() < 64
    {
        let gateway = attribute(&rest[8..length], libc::RTA_GATEWAY).and_then(|a| ip(a.data));
        hops.push((gateway, i32_at(rest, 4).unwrap_or(0).max(0) as u32));
        rest = rest.get((length + 3) & !3..).unwrap_or_default();
    }
    hops
}

/// Sets the MTU of a device.
pub fn set_mtu(link: u32, mtu: u32) -> Result<(), NetlinkError> {
    set_link(link, libc::IFLA_MTU, mtu)
}

/// Sets into how many packets an aggregated one of a device may be cut.
pub fn set_gso_max_segs(link: u32, packets: u32) -> Result<(), NetlinkError> {
    set_link(link, libc::IFLA_GSO_MAX_SEGS, packets)
}

/// Sets the length of the transmit queue of a device.
pub fn set_txqueuelen(link: u32, packets: u32) -> Result<(), NetlinkError> {
    set_link(link, libc::IFLA_TXQLEN, packets)
}

fn set_link(link: u32, kind: u16, value: u32) -> Result<(), NetlinkError> {
    let mut header = [0; 16];
    header[4..8].copy_from_slice(&link.to_ne_bytes());
    let payload = Payload::new(&header).u32(kind, value);
    Socket::open(libc::NETLINK_ROUTE)?.request(libc::RTM_NEWLINK, 0, &payload, |_| {})
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..400), kind in 0_u16..40) {
            let _ = parse_link(&Message { kind, flags: 0, sequence: 0, port: 0, payload: &bytes });
            let _ = parse_link(&Message { kind: libc::RTM_NEWLINK, flags: 0, sequence: 0, port: 0, payload: &bytes });
            let _ = parse_address(&bytes);
            let _ = parse_route(&bytes);
            let _ = parse_neighbour(&bytes);
            let _ = parse_next_hops(&bytes);
        }
    }

    #[test]
    fn the_loopback_is_there() {
        let links = links().unwrap();
        let loopback = links.iter().find(|l| l.loopback).expect("every namespace has one");
        assert_eq!(loopback.name, "lo");
        assert!(loopback.stats.contains_key("rx_bytes"), "{loopback:?}");
        assert!(addresses().unwrap().iter().all(|a| links.iter().any(|l| l.index == a.link)));
        assert!(routes().unwrap().len() <= ROUTES_MAX + TABLE_ROUTES_MAX);
    }
}
