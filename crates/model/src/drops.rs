//! Packets that hosts drop and segments that they send again: the names of the counters, and what a watch of
//! them found.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fact::{FactKey, Gap};
use crate::inventory::HostName;

/// Beginning of the counters of packets that the kernel dropped: `drop.<reason>.<EtherType>.<device>`.
pub const DROPS: &str = "drop.";
/// Instead of a device: sent by the host itself.
pub const SENT: &str = "(sent)";
/// Instead of a device: in network namespaces inside the host.
pub const INSIDE: &str = "(netns)";
/// How often the program that counts drops ran.
pub const COST_RUNS: &str = "drop.cost.runs";
/// How long it ran, nanoseconds.
pub const COST_NS: &str = "drop.cost.ns";
/// Packets of combinations that have no count of their own.
pub const OTHERS: &str = "drop.others";

/// Beginning of the counters of segments that were sent again: `retransmit.<kind>.<address of the peer>`.
pub const RETRANSMITS: &str = "retransmit.";
/// Segments that were sent.
pub const SEGMENTS_SENT: &str = "snmp.Tcp.OutSegs";
/// Segments that were sent again, by the kernel's own count.
pub const SEGMENTS_AGAIN: &str = "snmp.Tcp.RetransSegs";
/// Segments that the other end reported as received twice: it was needless to send them again.
pub const SEGMENTS_TWICE: &str = "netstat.TcpExt.TCPDSACKRecv";
/// Bytes of IPv4 that were sent.
pub const BYTES_SENT: &str = "netstat.IpExt.OutOctets";

/// Why a segment was sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ResentKind {
    /// No answer within the timeout (RTO).
    Timeout,
    /// Acknowledgements of later segments showed the loss.
    Recovery,
    /// The last segments, to see whether they arrived (TLP).
    TailProbe,
    /// The first segment of a connection, or its answer.
    Handshake,
}

impl ResentKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Timeout, Self::Recovery, Self::TailProbe, Self::Handshake];

    /// Its word in keys and tables.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Recovery => "recovery",
            Self::TailProbe => "tail-probe",
            Self::Handshake => "handshake",
        }
    }

    /// The key of the counter of a peer.
    #[must_use]
    pub fn key(self, peer: IpAddr) -> FactKey {
        format!("{RETRANSMITS}{}.{peer}", self.word())
    }

    /// The kind and the peer of a counter; `None` for others.
    #[must_use]
    pub fn of(key: &str) -> Option<(Self, IpAddr)> {
        let (word, peer) = key.strip_prefix(RETRANSMITS)?.split_once('.')?;
        Some((Self::ALL.into_iter().find(|kind| kind.word() == word)?, peer.parse().ok()?))
    }
}

/// What dropped packets that are counted together have in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct PacketKind {
    /// The kernel's name of the reason, without `SKB_DROP_REASON_`.
    pub reason: String,
    /// EtherType; 0 for packets without.
    pub ether_type: u16,
    /// Device they came in by, [`SENT`] or [`INSIDE`].
    pub device: String,
}

impl PacketKind {
    /// The kind of a counter; `None` for others.
    #[must_use]
    pub fn of(key: &str) -> Option<Self> {
        let mut parts = key.strip_prefix(DROPS)?.splitn(3, '.');
        let (reason, ether_type, device) = (parts.next()?, parts.next()?, parts.next()?);
        let ether_type = u16::from_str_radix(ether_type, 16).ok()?;
        Some(Self { reason: reason.to_owned(), ether_type, device: device.to_owned() })
    }

    /// The key of its counter.
    #[must_use]
    pub fn key(&self) -> FactKey {
        format!("{DROPS}{}.{:04x}.{}", self.reason, self.ether_type, self.device)
    }
}

/// What a watch of drops found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DropReport {
    /// Length of the watch, seconds.
    pub seconds: f64,
    /// Length of the intervals in which hosts are compared, seconds.
    pub every_s: f64,
    /// Hosts, in the order of the inventory.
    pub hosts: Vec<HostDrops>,
    /// Hosts that drop the same packets, the most certain first.
    pub groups: Vec<DropGroup>,
    /// A host to which most of what the others send again goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resent_to: Option<ResentTo>,
    /// Hosts that were not seen, or not for the whole watch.
    pub gaps: Vec<Gap>,
}

/// What one host dropped.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostDrops {
    /// Host.
    pub host: HostName,
    /// What was dropped, what is not harmless first, then by packets.
    pub rows: Vec<DropRow>,
    /// Why the kernel's reasons are not known there: counters alone were read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters_alone: Option<String>,
    /// Segments of TCP that it sent again.
    pub resent: HostResent,
    /// What counting cost; absent where the kernel does not measure it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<DropCost>,
}

/// Packets that a host dropped for one reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DropRow {
    /// The kernel's name of the reason, or the key of a counter.
    pub reason: String,
    /// EtherType of the packets; absent for counters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ether_type: Option<u16>,
    /// Device they came in by, `(sent)` or `(netns)`; absent where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Packets during the watch.
    pub packets: u64,
    /// What it means, from the knowledge; absent where no file knows the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<DropMeaning>,
}

impl DropRow {
    /// Whether it is known to be harmless.
    #[must_use]
    pub fn is_harmless(&self) -> bool {
        self.class.as_ref().is_some_and(|class| class.harmless)
    }
}

/// What is known of a class of drops.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DropMeaning {
    /// Its name in the knowledge.
    pub id: String,
    /// What it means, in a few words.
    pub title: String,
    /// Whether hosts without a fault drop such packets.
    pub harmless: bool,
    /// A command that shows more on the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
}

/// What a host sent again.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostResent {
    /// Segments that it sent.
    pub sent: u64,
    /// Segments that it sent again.
    pub again: u64,
    /// Those of them for each gigabyte that it sent; absent below a megabyte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_gigabyte: Option<f64>,
    /// Those that the other end reported as received twice.
    pub needless: u64,
    /// By peer and kind, most first; empty where the kernel was not asked.
    pub rows: Vec<ResentRow>,
}

/// Segments that a host sent again to one peer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResentRow {
    /// Address of the peer.
    pub peer: IpAddr,
    /// Its name, where it is a host of the inventory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostName>,
    /// Why.
    pub kind: ResentKind,
    /// Segments during the watch.
    pub segments: u64,
}

/// Where most of what is sent again goes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResentTo {
    /// Host.
    pub host: HostName,
    /// Hosts that send to it again.
    pub from: usize,
    /// Share of all segments that are sent again between hosts of the watch, 0 to 1.
    pub share: f64,
}

/// What the program that counts drops cost on a host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DropCost {
    /// How often it ran.
    pub runs: u64,
    /// How long that took, nanoseconds.
    pub ns: u64,
    /// The share of one core that this is, 0 to 1.
    pub share: f64,
}

/// Hosts that drop the same packets: their counts rise and fall together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DropGroup {
    /// The kernel's name of the reason, or the counter without its device.
    pub reason: String,
    /// EtherType of the packets; absent for counters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ether_type: Option<u16>,
    /// Hosts, in the order of the inventory.
    pub hosts: Vec<HostName>,
    /// Packets of all of them.
    pub packets: u64,
    /// Least correlation of two of them, -1 to 1.
    pub correlation: f64,
    /// How likely it is no chance, 0 to 1.
    pub probability: f64,
    /// Facts that all of them have and no other host has, those that bear on the reason first.
    pub shared: Vec<String>,
    /// How likely a fact that splits the hosts by chance splits them so, 0 to 1.
    pub shared_by_chance: f64,
    /// What it means, from the knowledge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<DropMeaning>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_its_kind_and_back() {
        let kind = PacketKind { reason: "NO_SOCKET".into(), ether_type: 0x86dd, device: "eth0/5".into() };
        assert_eq!(kind.key(), "drop.NO_SOCKET.86dd.eth0/5");
        assert_eq!(PacketKind::of(&kind.key()), Some(kind));
        let peer: IpAddr = "2001:db8::1".parse().unwrap();
        let key = ResentKind::TailProbe.key(peer);
        assert_eq!(
            (key.as_str(), ResentKind::of(&key)),
            ("retransmit.tail-probe.2001:db8::1", Some((ResentKind::TailProbe, peer)))
        );
        assert_eq!(ResentKind::of("retransmit.timeout.192.0.2.1").unwrap().1.to_string(), "192.0.2.1");
        assert_eq!(
            (ResentKind::of("retransmit.x.192.0.2.1"), ResentKind::of("retransmit.timeout.x")),
            (None, None)
        );
        for other in [COST_NS, OTHERS, "drop.X.zz.eth0", "softnet.dropped"] {
            assert_eq!(PacketKind::of(other), None, "{other}");
        }
    }
}
