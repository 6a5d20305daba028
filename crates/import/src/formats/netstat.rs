//! `netstat -s`, `nstat`, `/proc/net/snmp` and `netstat`, `netstat -i`, `/proc/net/dev`: counters of
//! protocols and devices. Lines come in, counters of the same names as those of our own readers go out.
//!
//! `netstat -s` prints sentences; those about losses and retransmissions are known.

use linerate_model::fact::FactValue;

use super::ethtool::key;
use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// `netstat -s`.
pub(crate) struct NetstatS;
/// `nstat`.
pub(crate) struct Nstat;
/// `/proc/net/snmp`, `/proc/net/netstat`.
pub(crate) struct ProcNet;
/// `netstat -i`, `/proc/net/dev`.
pub(crate) struct NetstatI;

/// Sections of `netstat -s`.
const SECTIONS: [&str; 9] =
    ["Ip:", "Icmp:", "IcmpMsg:", "Tcp:", "Udp:", "UdpLite:", "TcpExt:", "IpExt:", "MPTcpExt:"];

/// What a sentence of `netstat -s` counts: section, words of it, counter.
const SENTENCES: [(&str, &str, &str); 44] = [
    ("Ip", "total packets received", "snmp.Ip.InReceives"),
    ("Ip", "incoming packets discarded", "snmp.Ip.InDiscards"),
    ("Ip", "outgoing packets dropped", "snmp.Ip.OutDiscards"),
    ("Ip", "dropped because of missing route", "snmp.Ip.OutNoRoutes"),
    ("Ip", "packet reassembles failed", "snmp.Ip.ReasmFails"),
    ("Ip", "packet reassemblies failed", "snmp.Ip.ReasmFails"),
    ("Ip", "fragments dropped after timeout", "snmp.Ip.ReasmTimeout"),
    ("Ip", "reassemblies required", "snmp.Ip.ReasmReqds"),
    ("Ip", "fragments failed", "snmp.Ip.FragFails"),
    ("Tcp", "active connection", "snmp.Tcp.ActiveOpens"),
    ("Tcp", "failed connection attempts", "snmp.Tcp.AttemptFails"),
    ("Tcp", "connection resets received", "snmp.Tcp.EstabResets"),
    ("Tcp", "segments received", "snmp.Tcp.InSegs"),
    ("Tcp", "segments send out", "snmp.Tcp.OutSegs"),
    ("Tcp", "segments sent out", "snmp.Tcp.OutSegs"),
    ("Tcp", "segments retransmi", "snmp.Tcp.RetransSegs"),
    ("Tcp", "bad segments received", "snmp.Tcp.InErrs"),
    ("Udp", "packets received", "snmp.Udp.InDatagrams"),
    ("Udp", "packet receive errors", "snmp.Udp.InErrors"),
    ("Udp", "receive buffer errors", "snmp.Udp.RcvbufErrors"),
    ("Udp", "send buffer errors", "snmp.Udp.SndbufErrors"),
    ("TcpExt", "SYNs to LISTEN sockets", "netstat.TcpExt.ListenDrops"),
    ("TcpExt", "times the listen queue of a socket overflowed", "netstat.TcpExt.ListenOverflows"),
    ("TcpExt", "packets pruned from receive queue", "netstat.TcpExt.PruneCalled"),
    ("TcpExt", "packets collapsed in receive queue", "netstat.TcpExt.TCPRcvCollapsed"),
    ("TcpExt", "fast retransmits", "netstat.TcpExt.TCPFastRetrans"),
    ("TcpExt", "retransmits in slow start", "netstat.TcpExt.TCPSlowStartRetrans"),
    ("TcpExt", "other TCP timeouts", "netstat.TcpExt.TCPTimeouts"),
    ("TcpExt", "SACK retransmits failed", "netstat.TcpExt.TCPSackRecoveryFail"),
    ("TcpExt", "DSACKs sent for old packets", "netstat.TcpExt.TCPDSACKOldSent"),
    ("TcpExt", "DSACKs received", "netstat.TcpExt.TCPDSACKRecv"),
    ("TcpExt", "packets rejected in established connections", "netstat.TcpExt.PAWSEstab"),
    ("TcpExt", "times recovered from packet loss", "netstat.TcpExt.TCPSackRecovery"),
    ("TcpExt", "Detected reordering", "netstat.TcpExt.TCPSACKReorder"),
    ("TcpExt", "TCPBacklogDrop", "netstat.TcpExt.TCPBacklogDrop"),
    ("TcpExt", "TCP ran low on memory", "netstat.TcpExt.TCPMemoryPressures"),
    ("TcpExt", "TCPMemoryPressures", "netstat.TcpExt.TCPMemoryPressures"),
    ("TcpExt", "IPReversePathFilter", "netstat.TcpExt.IPReversePathFilter"),
    ("TcpExt", "connections aborted due to timeout", "netstat.TcpExt.TCPAbortOnTimeout"),
    ("TcpExt", "connections reset due to early user close", "netstat.TcpExt.TCPAbortOnClose"),
    ("TcpExt", "packets dropped from prequeue", "netstat.TcpExt.TCPPrequeueDropped"),
    ("TcpExt", "packets header predicted", "netstat.TcpExt.TCPHPHits"),
    ("TcpExt", "passive connections rejected because of time stamp", "netstat.TcpExt.PAWSPassive"),
    ("TcpExt", "invalid SYN cookies received", "netstat.TcpExt.SyncookiesFailed"),
];

/// The counter of a line below a section, with its value: a number somewhere in a sentence, or `Name: 12`.
fn counted(section: &str, line: &str) -> Option<(String, i64)> {
    let text = line.trim();
    let value = text.split_whitespace().find_map(|word| word.parse::<i64>().ok())?;
    let known = SENTENCES.iter().find(|(of, words, _)| *of == section && text.contains(words));
    if let Some((_, _, name)) = known {
        return Some(((*name).to_owned(), value));
    }
    let (name, rest) = text.split_once(": ")?;
    let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric());
    let head = if section.ends_with("Ext") { "netstat" } else { "snmp" };
    (is_name && rest.trim().parse::<i64>().is_ok()).then(|| (format!("{head}.{section}.{name}"), value))
}

impl Reader for NetstatS {
    fn name(&self) -> &'static str {
        "netstat-s"
    }

    fn describes(&self) -> &'static str {
        "netstat -s: counters of protocols"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        let next = block.line(1);
        let is_section = SECTIONS.contains(&block.first().trim_end()) && next.starts_with([' ', '\t']);
        // `netstat -s | grep retrans`
        let is_part = block.at.command.is(&["netstat"])
            && ["Tcp", "TcpExt", "Udp", "Ip"].iter().any(|s| counted(s, block.first()).is_some());
        is_section && !next.contains("inet") || is_part
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let mut section = "";
        let mut taken = 0;
        for (at, line) in block.lines.iter().enumerate() {
            if let Some(name) = SECTIONS.iter().find(|name| line.trim_end() == **name) {
                section = name.trim_end_matches(':');
            } else if line.trim().is_empty() {
                continue;
            } else if line.starts_with([' ', '\t']) {
                let sections: &[&str] =
                    if section.is_empty() { &["TcpExt", "Tcp", "Udp", "Ip"] } else { &[section] };
                if let Some((name, value)) = sections.iter().find_map(|section| counted(section, line)) {
                    out.counter(name, value);
                }
            } else {
                break;
            }
            taken = at + 1;
        }
        taken.max(1)
    }
}

/// Counter of a name as `nstat` prints it: `TcpRetransSegs`, `TcpExtListenDrops`.
fn of_nstat(name: &str) -> Option<String> {
    let groups = [
        ("TcpExt", "netstat"),
        ("IpExt", "netstat"),
        ("Tcp", "snmp"),
        ("Udp", "snmp"),
        ("Icmp", "snmp"),
        ("Ip", "snmp"),
    ];
    groups.iter().find_map(|(group, head)| {
        let rest = name.strip_prefix(group).filter(|rest| rest.starts_with(char::is_uppercase))?;
        Some(format!("{head}.{group}.{rest}"))
    })
}

fn nstat(line: &str) -> Option<(String, i64)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [name, value, rate] = words[..] else { return None };
    rate.parse::<f64>().ok()?;
    Some((of_nstat(name)?, value.parse().ok()?))
}

impl Reader for Nstat {
    fn name(&self) -> &'static str {
        "nstat"
    }

    fn describes(&self) -> &'static str {
        "nstat: counters of protocols"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        block.first().trim() == "#kernel" && nstat(block.line(1)).is_some() || nstat(block.first()).is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let mut taken = 0;
        for (at, line) in block.lines.iter().enumerate() {
            match nstat(line) {
                Some((name, value)) => out.counter(name, value),
                None if line.trim() == "#kernel" || line.starts_with("Ip6") || line.starts_with("Udp6") => {}
                None => break,
            }
            taken = at + 1;
        }
        taken.max(1)
    }
}

/// `Tcp: RtoAlgorithm RtoMin …`: group and words.
fn row(line: &str) -> Option<(&str, Vec<&str>)> {
    let (group, rest) = line.split_once(": ")?;
    let known = SECTIONS.iter().any(|section| section.trim_end_matches(':') == group);
    known.then(|| (group, rest.split_whitespace().collect()))
}

/// Names and values of a group in two lines.
fn paired<'l>(names: &'l str, values: &'l str) -> Option<(&'l str, Vec<(&'l str, i64)>)> {
    let ((group, names), (same, values)) = (row(names)?, row(values)?);
    let read: Option<Vec<(&str, i64)>> =
        names.iter().zip(&values).map(|(name, value)| Some((*name, value.parse().ok()?))).collect();
    read.filter(|read| group == same && names.len() == values.len() && !read.is_empty())
        .map(|read| (group, read))
}

impl Reader for ProcNet {
    fn name(&self) -> &'static str {
        "proc-net"
    }

    fn describes(&self) -> &'static str {
        "/proc/net/snmp, /proc/net/netstat"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        paired(block.first(), block.line(1)).is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let mut taken = 0;
        while let Some((group, values)) = paired(block.line(taken), block.line(taken + 1)) {
            let head = if group.ends_with("Ext") { "netstat" } else { "snmp" };
            for (name, value) in values {
                out.counter(format!("{head}.{group}.{name}"), value);
            }
            taken += 2;
        }
        taken.max(1)
    }
}

/// Columns of `netstat -i` and the counters that they are.
const DEVICE: [(&str, &str); 8] = [
    ("RX-OK", "rx_packets"),
    ("RX-ERR", "rx_errors"),
    ("RX-DRP", "rx_dropped"),
    ("RX-OVR", "rx_over_errors"),
    ("TX-OK", "tx_packets"),
    ("TX-ERR", "tx_errors"),
    ("TX-DRP", "tx_dropped"),
    ("TX-OVR", "tx_fifo_errors"),
];

/// Columns of `/proc/net/dev`, in their order.
const DEV: [&str; 16] = [
    "rx_bytes",
    "rx_packets",
    "rx_errors",
    "rx_dropped",
    "rx_fifo_errors",
    "rx_frame_errors",
    "rx_compressed",
    "multicast",
    "tx_bytes",
    "tx_packets",
    "tx_errors",
    "tx_dropped",
    "tx_fifo_errors",
    "collisions",
    "tx_carrier_errors",
    "tx_compressed",
];

fn heading(line: &str) -> Option<Vec<&str>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    (words.first() == Some(&"Iface") && words.contains(&"RX-OK")).then_some(words)
}

/// A line of `/proc/net/dev`: the device and its sixteen numbers.
fn dev(line: &str) -> Option<(&str, Vec<i64>)> {
    let (nic, rest) = line.split_once(':')?;
    let values: Option<Vec<i64>> = rest.split_whitespace().map(|word| word.parse().ok()).collect();
    let values = values.filter(|values| values.len() == DEV.len())?;
    (!nic.trim().is_empty() && !nic.trim().contains(' ')).then_some((nic.trim(), values))
}

impl Reader for NetstatI {
    fn name(&self) -> &'static str {
        "netstat-i"
    }

    fn describes(&self) -> &'static str {
        "netstat -i, /proc/net/dev"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        let line = block.first();
        line.trim() == "Kernel Interface table" && heading(block.line(1)).is_some()
            || heading(line).is_some()
            || line.starts_with("Inter-|   Receive")
            || dev(line).is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let mut columns: Vec<&str> = Vec::new();
        let mut taken = 0;
        for (at, line) in block.lines.iter().enumerate() {
            if let Some(found) = heading(line) {
                columns = found;
            } else if let Some((nic, values)) = dev(line) {
                for (name, value) in DEV.iter().zip(values) {
                    out.counter(format!("{}.stat.{name}", key(nic)), value);
                }
            } else if !columns.is_empty() && line.split_whitespace().count() == columns.len() {
                device(&columns, line, out);
            } else if !["Kernel Interface", "Inter-|", " face |"].iter().any(|head| line.starts_with(head)) {
                break;
            }
            taken = at + 1;
        }
        taken.max(1)
    }
}

fn device(columns: &[&str], line: &str, out: &mut Sink) {
    let words: Vec<&str> = line.split_whitespace().collect();
    let nic = key(words.first().copied().unwrap_or_default());
    for (column, word) in columns.iter().zip(&words) {
        let Ok(value) = word.parse::<i64>() else { continue };
        if column.eq_ignore_ascii_case("mtu") {
            out.fact(format!("{nic}.mtu"), FactValue::Int(value));
        } else if let Some((_, name)) = DEVICE.iter().find(|(known, _)| known == column) {
            out.counter(format!("{nic}.stat.{name}"), value);
        }
    }
}
