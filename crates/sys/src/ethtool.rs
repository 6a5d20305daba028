//! Settings and statistics of network drivers: ethtool by generic netlink, by the older ioctls for the rest.
//!
//! In: device names. Out: one [`Nic`] each, with the reason for every family that is missing; this is also
//! what a recorded tree keeps (`ethtool.json`). One request per family covers all devices. It never
//! interprets a value.

use std::collections::BTreeMap;
use std::io;

use serde::{Deserialize, Serialize};

pub use crate::ethtool_family::{EthtoolFamily, FAMILIES, is_flag, label};
use crate::ethtool_ioctl::EthtoolSocket;
pub use crate::ethtool_ioctl::{Driver, Feature};
use crate::netlink::{Attribute, Message, NetlinkError, Payload, Socket, attribute, attributes};
use crate::netlink_groups::NetlinkGroups;

const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const CTRL_ATTR_MCAST_GROUPS: u16 = 7;
const CTRL_ATTR_MCAST_GRP_NAME: u16 = 1;
const CTRL_ATTR_MCAST_GRP_ID: u16 = 2;
const GENL_HEADER_BYTES: usize = 4;

const HEADER: u16 = 1;
const HEADER_DEV_NAME: u16 = 2;
const LINKMODES_GET: u8 = 4;
const LINKMODES_OURS: u16 = 3;
const LINKMODES_PEER: u16 = 4;
const FEATURES_GET: u8 = 11;
const FEATURES_SET: u8 = 12;
const FEATURES_HW: u16 = 2;
const FEATURES_WANTED: u16 = 3;
const FEATURES_ACTIVE: u16 = 4;
const FEATURES_NOCHANGE: u16 = 5;
const PRIVFLAGS_GET: u8 = 13;
const PRIVFLAGS_SET: u8 = 14;
const PRIVFLAGS_FLAGS: u16 = 2;
const BITSET_BITS: u16 = 3;
const BIT_NAME: u16 = 2;
const BIT_VALUE: u16 = 3;

/// Flow types whose hash fields are read, with the name that ethtool(8) gives them.
pub const FLOWS: [(u32, &str); 6] =
    [(0x01, "tcp4"), (0x02, "udp4"), (0x03, "sctp4"), (0x05, "tcp6"), (0x06, "udp6"), (0x07, "sctp6")];

/// Everything about one device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nic {
    /// Driver.
    #[serde(default)]
    pub driver: Option<Driver>,
    /// By the kernel's name.
    #[serde(default)]
    pub features: BTreeMap<String, Feature>,
    /// By family and name.
    #[serde(default)]
    pub numbers: BTreeMap<EthtoolFamily, BTreeMap<String, u64>>,
    /// Private flags of the driver.
    #[serde(default)]
    pub private: BTreeMap<String, bool>,
    /// Hash fields by flow type, as letters of ethtool(8): `sdfn`.
    #[serde(default)]
    pub rss: BTreeMap<String, String>,
    /// What could not be read, with the reason.
    #[serde(default)]
    pub missing: BTreeMap<String, String>,
}

/// Why a driver's settings cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum EthtoolError {
    /// No interface at all.
    #[error("no socket for ethtool: {0}")]
    NoSocket(io::Error),
    /// The older interface does not have it.
    #[error("this kernel has no ethtool netlink")]
    NoNetlink,
    /// The family has no field of this name.
    #[error("the driver has no such number")]
    NoNumber,
    /// The older interface refused.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The kernel refused.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
}

/// Reads all devices of these names. Only a machine without any ethtool interface is an error.
pub fn read(names: &[String]) -> Result<BTreeMap<String, Nic>, EthtoolError> {
    let control = EthtoolSocket::open().map_err(EthtoolError::NoSocket)?;
    let mut netlink = Ethtool::open().ok();
    let mut nics: BTreeMap<String, Nic> = names.iter().map(|n| (n.clone(), Nic::default())).collect();
    if let Some(netlink) = &mut netlink {
        netlink.read_features(&mut nics);
        netlink.read_private(&mut nics);
        for family in FAMILIES {
            netlink.read_family(family, &mut nics);
        }
    }
    for (name, nic) in &mut nics {
        read_older(&control, name, nic, netlink.is_none());
    }
    Ok(nics)
}

/// What only the ioctls have, and everything on a kernel without ethtool netlink.
fn read_older(control: &EthtoolSocket, name: &str, nic: &mut Nic, everything: bool) {
    let words = |e: io::Error| match e.raw_os_error() {
        Some(libc::EOPNOTSUPP | libc::EINVAL) => "not offered by the driver".to_string(),
        _ => e.to_string().split(" (os error").next().unwrap_or_default().to_lowercase(),
    };
    match control.driver(name) {
        Ok(driver) => nic.driver = Some(driver),
        Err(e) => drop(nic.missing.insert("driver".to_string(), words(e))),
    }
    for (flow, flow_name) in FLOWS {
        match control.hash_fields(name, flow) {
            Ok(fields) => drop(nic.rss.insert(flow_name.to_string(), fields)),
            Err(e) => {
                nic.missing.insert("rss".to_string(), words(e));
                break;
            }
        }
    }
    if !everything {
        return;
    }
    match control.features(name) {
        Ok(features) => nic.features = features,
        Err(e) => drop(nic.missing.insert("features".to_string(), words(e))),
    }
    if let Ok(private) = control.private_flags(name) {
        nic.private = private;
    }
    if let Ok(autoneg) = control.autoneg(name) {
        nic.numbers
            .insert(EthtoolFamily::Link, BTreeMap::from([("autoneg".to_string(), u64::from(autoneg))]));
    }
    for family in FAMILIES {
        let Some(older) = family.info().older else { continue };
        match control.numbers(name, older) {
            Ok(numbers) => drop(nic.numbers.insert(family, numbers)),
            Err(e) => drop(nic.missing.insert(label(family).to_string(), words(e))),
        }
    }
}

/// Numbers of one family of one device.
pub fn read_family(name: &str, family: EthtoolFamily) -> Result<BTreeMap<String, u64>, EthtoolError> {
    let info = family.info();
    let Ok(mut netlink) = Ethtool::open() else {
        let older = info.older.ok_or(EthtoolError::NoNetlink)?;
        return Ok(EthtoolSocket::open()?.numbers(name, older)?);
    };
    let mut numbers = BTreeMap::new();
    let request = netlink.request_for(info.get, name);
    netlink.ask(&request, |payload| numbers = parse_numbers(payload, info.fields))?;
    Ok(numbers)
}

/// Sets one number of a family.
pub fn set_number(name: &str, family: EthtoolFamily, field: &str, value: u32) -> Result<(), EthtoolError> {
    let info = family.info();
    let Ok(mut netlink) = Ethtool::open() else {
        let older = info.older.ok_or(EthtoolError::NoNetlink)?;
        return Ok(EthtoolSocket::open()?.set_number(name, older, field, value)?);
    };
    let (kind, _) = info.fields.iter().find(|(_, n)| *n == field).ok_or(EthtoolError::NoNumber)?;
    let request = netlink.request_for(info.set, name);
    let request = if is_flag(family, field) {
        request.bytes(*kind, &[u8::from(value != 0)])
    } else {
        request.u32(*kind, value)
    };
    Ok(netlink.ask(&request, |_| {})?)
}

/// Highest speeds that a link could have, Mbit/s; 0 where nothing is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkModes {
    /// Of the modes that the device supports with what is plugged in.
    pub supported_mbit: u64,
    /// Of the modes that it offers to its peer.
    pub advertised_mbit: u64,
    /// Of the modes that it supports and its peer offers.
    pub common_mbit: u64,
}

/// What a link could be, by ethtool netlink alone.
pub fn read_link_modes(name: &str) -> Result<LinkModes, EthtoolError> {
    let mut netlink = Ethtool::open().map_err(|_| EthtoolError::NoNetlink)?;
    let mut modes = LinkModes::default();
    let request = netlink.request_for(LINKMODES_GET, name);
    netlink.ask(&request, |body| modes = parse_link_modes(body))?;
    Ok(modes)
}

fn parse_link_modes(body: &[u8]) -> LinkModes {
    let set = |kind| attribute(body, kind).map(|a| bits(&a)).unwrap_or_default();
    let (ours, peer) = (set(LINKMODES_OURS), set(LINKMODES_PEER));
    let best = |names: &mut dyn Iterator<Item = &String>| names.filter_map(|n| mbit_of(n)).max().unwrap_or(0);
    LinkModes {
        supported_mbit: best(&mut ours.iter().map(|(name, _)| name)),
        advertised_mbit: best(&mut ours.iter().filter(|(_, on)| *on).map(|(name, _)| name)),
        common_mbit: best(
            &mut ours
                .iter()
                .map(|(name, _)| name)
                .filter(|name| peer.iter().any(|(other, _)| other == *name)),
        ),
    }
}

/// `10000baseT/Full` -> 10000; nothing for `Autoneg` and `FIBRE`.
fn mbit_of(mode: &str) -> Option<u64> {
    let digits = mode.find(|c: char| !c.is_ascii_digit())?;
    mode[digits..].starts_with("base").then(|| mode[..digits].parse().ok()).flatten()
}

/// Speed, duplex and autonegotiation of a link, all at once: a fixed speed needs the three together.
pub fn set_link(name: &str, autoneg: bool, fixed: Option<(u32, bool)>) -> Result<(), EthtoolError> {
    let info = EthtoolFamily::Link.info();
    let kind = |field: &str| info.fields.iter().find(|(_, n)| *n == field).map_or(0, |(kind, _)| *kind);
    let mut netlink = Ethtool::open().map_err(|_| EthtoolError::NoNetlink)?;
    let mut request = netlink.request_for(info.set, name).bytes(kind("autoneg"), &[u8::from(autoneg)]);
    if let Some((mbit, full)) = fixed {
        request = request.u32(kind("speed"), mbit).bytes(kind("duplex"), &[u8::from(full)]);
    }
    Ok(netlink.ask(&request, |_| {})?)
}

/// Private flags of one device.
pub fn read_private(name: &str) -> Result<BTreeMap<String, bool>, EthtoolError> {
    let Ok(mut netlink) = Ethtool::open() else {
        return Ok(EthtoolSocket::open()?.private_flags(name)?);
    };
    let mut flags = BTreeMap::new();
    let request = netlink.request_for(PRIVFLAGS_GET, name);
    netlink.ask(&request, |body| {
        flags = attribute(body, PRIVFLAGS_FLAGS).map(|a| bits(&a)).unwrap_or_default().into_iter().collect();
    })?;
    Ok(flags)
}

/// Switches a private flag.
pub fn set_private(name: &str, flag: &str, on: bool) -> Result<(), EthtoolError> {
    let mut netlink = Ethtool::open().map_err(|_| EthtoolError::NoNetlink)?;
    let request = netlink.request_for(PRIVFLAGS_SET, name);
    Ok(netlink.ask(&request.nest(PRIVFLAGS_FLAGS, &set_of(&[(flag.to_string(), on)])), |_| {})?)
}

/// Fields that choose the receive queue of a flow type of [`FLOWS`], as letters.
pub fn read_hash_fields(name: &str, flow: &str) -> Result<String, EthtoolError> {
    let number = flow_number(flow)?;
    Ok(EthtoolSocket::open()?.hash_fields(name, number)?)
}

/// Chooses the fields that choose the receive queue of a flow type.
pub fn set_hash_fields(name: &str, flow: &str, letters: &str) -> Result<(), EthtoolError> {
    let number = flow_number(flow)?;
    Ok(EthtoolSocket::open()?.set_hash_fields(name, number, letters)?)
}

fn flow_number(flow: &str) -> Result<u32, EthtoolError> {
    let found = FLOWS.iter().find(|(_, name)| *name == flow).ok_or(EthtoolError::NoNumber)?;
    Ok(found.0)
}

/// A bit set that changes these bits and leaves the others.
fn set_of(wanted: &[(String, bool)]) -> Payload {
    let mut bits = Payload::default();
    for (name, on) in wanted {
        let bit = Payload::default().text(BIT_NAME, name);
        bits = bits.nest(1, &if *on { bit.bytes(BIT_VALUE, &[]) } else { bit });
    }
    Payload::default().nest(BITSET_BITS, &bits)
}

/// Features of one device by the kernel's names.
pub fn read_features(name: &str) -> Result<BTreeMap<String, Feature>, EthtoolError> {
    let Ok(mut netlink) = Ethtool::open() else {
        return Ok(EthtoolSocket::open()?.features(name)?);
    };
    let mut features = BTreeMap::new();
    let request = netlink.request_for(FEATURES_GET, name);
    netlink.ask(&request, |payload| features = parse_features(payload))?;
    Ok(features)
}

/// Switches features by the kernel's names.
pub fn set_features(name: &str, wanted: &[(String, bool)]) -> Result<(), EthtoolError> {
    let Ok(mut netlink) = Ethtool::open() else {
        return Ok(EthtoolSocket::open()?.set_features(name, wanted)?);
    };
    let request = netlink.request_for(FEATURES_SET, name).nest(FEATURES_WANTED, &set_of(wanted));
    Ok(netlink.ask(&request, |_| {})?)
}

/// A generic netlink socket that knows the number of the ethtool family.
struct Ethtool {
    socket: Socket,
    family: u16,
    /// The group that gets changes.
    monitor: Option<u32>,
}

fn not_there() -> NetlinkError {
    NetlinkError::Refused { errno: libc::ENOENT, message: String::new() }
}

/// What drivers' settings become, changed by any program through netlink or, since Linux 5.6, through ioctl.
pub fn monitor() -> Result<NetlinkGroups, NetlinkError> {
    let group = Ethtool::open()?.monitor.ok_or_else(not_there)?;
    NetlinkGroups::on(libc::NETLINK_GENERIC, &[group])
}

/// The device that a message of [`monitor`] is about.
#[must_use]
pub fn monitored_device(message: &Message<'_>) -> Option<String> {
    device_of(body_of(message))
}

impl Ethtool {
    fn open() -> Result<Self, NetlinkError> {
        let mut socket = Socket::open(libc::NETLINK_GENERIC)?;
        let payload = Payload::new(&[CTRL_CMD_GETFAMILY, 1, 0, 0]).text(CTRL_ATTR_FAMILY_NAME, "ethtool");
        let (mut family, mut monitor) = (None, None);
        socket.request(GENL_ID_CTRL, 0, &payload, |message| {
            let body = body_of(message);
            family = attribute(body, CTRL_ATTR_FAMILY_ID).and_then(|a| a.u16());
            let groups = attribute(body, CTRL_ATTR_MCAST_GROUPS);
            let is_it = |group: &Attribute<'_>| {
                attribute(group.data, CTRL_ATTR_MCAST_GRP_NAME).is_some_and(|name| name.text() == "monitor")
            };
            let group = groups.and_then(|groups| groups.nested().find(is_it));
            monitor = group.and_then(|group| attribute(group.data, CTRL_ATTR_MCAST_GRP_ID)?.u32());
        })?;
        let family = family.ok_or_else(not_there)?;
        Ok(Self { socket, family, monitor })
    }

    /// `self` is taken so that a request is never built before the kernel is known to have the family.
    #[expect(clippy::unused_self, reason = "see above")]
    fn request_for(&self, command: u8, nic: &str) -> Payload {
        let header = Payload::default().text(HEADER_DEV_NAME, nic);
        Payload::new(&[command, 1, 0, 0]).nest(HEADER, &header)
    }

    fn ask(&mut self, request: &Payload, mut each: impl FnMut(&[u8])) -> Result<(), NetlinkError> {
        self.socket.request(self.family, 0, request, |message| each(body_of(message)))
    }

    /// One question for all devices. Where a single device spoils the answer, each one is asked.
    fn ask_all(
        &mut self,
        command: u8,
        names: &[String],
        label: &str,
        mut each: impl FnMut(&str, Answer<'_>),
    ) {
        let mut answered = Vec::new();
        let request = Payload::new(&[command, 1, 0, 0]).nest(HEADER, &Payload::default());
        let dump = self.socket.dump(self.family, &request, |message| {
            let body = body_of(message);
            if let Some(name) = device_of(body).filter(|n| names.contains(n)) {
                each(&name, Answer::Body(body));
                answered.push(name);
            }
        });
        for name in names.iter().filter(|n| !answered.contains(n)) {
            if dump.is_ok() {
                each(name, Answer::Missing(label, "not offered by the driver".to_string()));
                continue;
            }
            let mut body = Vec::new();
            let request = self.request_for(command, name);
            match self.ask(&request, |b| body = b.to_vec()) {
                Ok(()) => each(name, Answer::Body(&body)),
                Err(e) => each(name, Answer::Missing(label, e.to_string())),
            }
        }
    }

    fn read_features(&mut self, nics: &mut BTreeMap<String, Nic>) {
        let names: Vec<String> = nics.keys().cloned().collect();
        self.ask_all(FEATURES_GET, &names, "feature", |name, answer| {
            let Some(nic) = nics.get_mut(name) else { return };
            if let Some(body) = answer.body(nic) {
                nic.features = parse_features(body);
            }
        });
    }

    fn read_private(&mut self, nics: &mut BTreeMap<String, Nic>) {
        let names: Vec<String> = nics.keys().cloned().collect();
        self.ask_all(PRIVFLAGS_GET, &names, "private", |name, answer| {
            let Some(nic) = nics.get_mut(name) else { return };
            if let Some(body) = answer.body(nic) {
                let bits = attribute(body, PRIVFLAGS_FLAGS).map(|a| bits(&a)).unwrap_or_default();
                nic.private = bits.into_iter().collect();
            }
        });
    }

    fn read_family(&mut self, family: EthtoolFamily, nics: &mut BTreeMap<String, Nic>) {
        let names: Vec<String> = nics.keys().cloned().collect();
        let info = family.info();
        self.ask_all(info.get, &names, label(family), |name, answer| {
            let Some(nic) = nics.get_mut(name) else { return };
            if let Some(body) = answer.body(nic) {
                nic.numbers.insert(family, parse_numbers(body, info.fields));
            }
        });
    }
}

/// What is known about one device and one family.
enum Answer<'a> {
    Body(&'a [u8]),
    Missing(&'a str, String),
}

impl<'a> Answer<'a> {
    fn body(self, nic: &mut Nic) -> Option<&'a [u8]> {
        match self {
            Self::Body(body) => Some(body),
            Self::Missing(label, reason) => {
                nic.missing.insert(label.to_string(), reason);
                None
            }
        }
    }
}

fn body_of<'a>(message: &Message<'a>) -> &'a [u8] {
    message.payload.get(GENL_HEADER_BYTES..).unwrap_or_default()
}

fn device_of(body: &[u8]) -> Option<String> {
    Some(attribute(attribute(body, HEADER)?.data, HEADER_DEV_NAME)?.text())
}

fn parse_numbers(body: &[u8], fields: &[(u16, &str)]) -> BTreeMap<String, u64> {
    attributes(body)
        .filter_map(|a| {
            let (_, name) = fields.iter().find(|(kind, _)| *kind == a.kind)?;
            Some((name.to_string(), a.number()?))
        })
        .collect()
}

/// Names of a bit set with their values. A set without mask lists only the bits that are set.
fn bits(set: &Attribute<'_>) -> Vec<(String, bool)> {
    let Some(list) = attribute(set.data, BITSET_BITS) else { return Vec::new() };
    list.nested()
        .filter_map(|bit| {
            let name = attribute(bit.data, BIT_NAME)?.text();
            Some((name, attribute(bit.data, BIT_VALUE).is_some()))
        })
        .filter(|(name, _)| !name.is_empty())
        .collect()
}

fn parse_features(body: &[u8]) -> BTreeMap<String, Feature> {
    let set = |kind| attribute(body, kind).map(|a| bits(&a)).unwrap_or_default();
    let mut features: BTreeMap<String, Feature> = set(FEATURES_HW)
        .into_iter()
        .map(|(name, changeable)| (name, Feature { active: false, changeable }))
        .collect();
    for (name, _) in set(FEATURES_ACTIVE) {
        features.entry(name).or_default().active = true;
    }
    for (name, _) in set(FEATURES_NOCHANGE) {
        features.entry(name).or_default().changeable = false;
    }
    features
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = parse_link_modes(&bytes);
            let _ = (parse_features(&bytes), parse_numbers(&bytes, EthtoolFamily::Rings.info().fields), device_of(&bytes));
        }
    }

    #[test]
    fn netlink_and_ioctl_agree_on_the_loopback() {
        let names = ["lo".to_string(), "no-such-nic".to_string()];
        let nics = read(&names).unwrap();
        let older = EthtoolSocket::open().unwrap().features("lo").unwrap();
        assert_eq!(nics["lo"].features.len(), older.len());
        for (name, feature) in &older {
            assert_eq!(nics["lo"].features[name].active, feature.active, "{name}");
        }
        assert!(nics["lo"].missing.contains_key("ring"), "{:?}", nics["lo"].missing);
        assert!(nics["no-such-nic"].features.is_empty());
        assert_eq!(read_features("lo").unwrap(), nics["lo"].features);
        assert!(read_family("lo", EthtoolFamily::Rings).is_err());
    }
}
