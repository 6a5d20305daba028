//! Lines of the kernel's log (`dmesg`, `journalctl -k`, syslog) about network devices, disks and limits.
//! Lines come in; facts of links and counts of events (`nic.*.log.…`, `disk.*.log.…`, `kernel.log.…`) go
//! out.

use linerate_model::fact::FactValue;

use super::ethtool::key;
use crate::reader::{Block, Reader};
use crate::sink::Sink;
use crate::units::{leading, number};

/// The format.
pub(crate) struct KernelLog;

/// Events of a network device: words of the line, name of the count.
const OF_NIC: [(&str, &str); 13] = [
    ("link is down", "link_down"),
    ("link down", "link_down"),
    ("carrier lost", "link_down"),
    ("lost carrier", "link_down"),
    ("transmit queue", "tx_timeout"),
    ("tx unit hang", "tx_hang"),
    ("hardware unit hang", "tx_hang"),
    ("reset adapter", "reset"),
    ("resetting", "reset"),
    ("rx fifo", "rx_fifo"),
    ("too many", "errors"),
    ("hw csum failure", "checksum"),
    ("martian source", "martian"),
];

/// Events of a block device.
const OF_DISK: [(&str, &str); 11] = [
    ("uas_eh_abort_handler", "uas_abort"),
    ("uas_zap_pending", "uas_abort"),
    ("i/o error", "io_error"),
    ("critical medium error", "medium_error"),
    ("unrecovered read error", "medium_error"),
    ("medium error", "medium_error"),
    ("hostbyte=did_", "io_error"),
    ("timeout, aborting", "timeout"),
    ("timeout, reset controller", "reset"),
    ("disk failure on", "failed"),
    ("rejecting i/o to offline device", "offline"),
];

/// Events of a port of SATA.
const OF_ATA: [(&str, &str); 8] = [
    ("comreset failed", "comreset_failed"),
    ("hard resetting link", "reset"),
    ("soft resetting link", "reset"),
    ("failed command", "failed_command"),
    ("exception emask", "exception"),
    ("link is slow to respond", "slow"),
    ("qc timeout", "timeout"),
    ("softreset failed", "reset_failed"),
];

/// Errors of the wire that libata lists in braces: those of a link that wakes up or is trained again, and
/// those of bits on their path.
const OF_WIRE: [(&str, &[&str]); 2] = [
    ("wake_error", &["CommWake", "PHYRdyChg", "LinkSeq"]),
    ("line_error", &["BadCRC", "10B8B", "Dispar", "UnrecovData", "Handshk"]),
];

/// Events of a device on USB.
const OF_USB: [(&str, &str); 4] = [
    ("usb device number", "reset"),
    ("device descriptor read", "descriptor_error"),
    ("device not accepting address", "descriptor_error"),
    ("over-current", "over_current"),
];

/// Events of the host.
const OF_HOST: [(&str, &str); 12] = [
    ("table full, dropping packet", "conntrack_full"),
    ("possible syn flooding", "syn_flooding"),
    ("neighbour table overflow", "neighbour_overflow"),
    ("neighbor table overflow", "neighbour_overflow"),
    ("tcp: out of memory", "tcp_memory"),
    ("page allocation failure", "allocation_failure"),
    ("cpu clock throttled", "cpu_throttled"),
    ("above threshold, cpu clock", "cpu_throttled"),
    ("soft lockup", "soft_lockup"),
    ("not responding, still trying", "nfs_not_responding"),
    ("out of memory: kill", "oom_kill"),
    ("blocked for more than", "hung_task"),
];

/// Longest line without a stamp that is checked, bytes.
const BARE_MAX: usize = 160;

/// The message of a line of a log; `None` when it has no stamp of one.
fn message(line: &str, is_dmesg: bool) -> Option<&str> {
    let text = line.trim();
    // `[12345.678901] text`, `[Mon Nov 21 10:00:00 2026] text`
    if let Some((stamp, rest)) = text.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
        // `[Mar23 13:30]` is that of `dmesg -H`.
        let is_stamp = stamp.trim().parse::<f64>().is_ok()
            || stamp.contains(':') && stamp.len() < 40 && stamp.bytes().any(|b| b.is_ascii_digit());
        return is_stamp.then_some(rest);
    }
    // `Nov 21 10:00:00 arc-1 kernel: [123.4] text`
    if let Some((head, rest)) =
        text.strip_prefix("kernel: ").map(|rest| ("", rest)).or(text.split_once(" kernel: "))
    {
        let rest = rest.trim_start();
        let behind = rest.strip_prefix('[').and_then(|r| r.split_once("] ")).map_or(rest, |(_, r)| r);
        return (head.len() < 80).then_some(behind);
    }
    // Some sentences of the kernel stand in nothing else, also where their stamp was cut off.
    let is_known = || {
        let lower = text.to_lowercase();
        OF_HOST.iter().any(|(words, _)| lower.contains(words))
    };
    (is_dmesg || text.len() < BARE_MAX && is_known()).then_some(text)
}

/// Levels of syslog(3).
const LEVELS: [&str; 9] = ["emerg", "alert", "crit", "err", "warn", "warning", "notice", "info", "debug"];

/// The host of a line of syslog.
fn host(line: &str) -> Option<&str> {
    let word = line.split_once(" kernel: ")?.0.split_whitespace().next_back()?;
    // `kern.err` is a facility with its level, where a log has no host.
    let is_facility = word.split_once('.').is_some_and(|(_, level)| LEVELS.contains(&level));
    (!is_facility).then_some(word)
}

/// A network device in a message: `ixgbe 0000:03:00.0 eth0: NIC Link is Up`, `NETDEV WATCHDOG: eth0 (ixgbe)`,
/// `e1000e: eth0 NIC Link is Down`.
fn nic(message: &str) -> Option<&str> {
    let begins =
        ["eth", "en", "em", "p1p", "p2p", "p3p", "bond", "ib", "team", "br", "vmnic", "wlan", "veth"];
    message.split([' ', ',', '(']).map(|word| word.trim_end_matches([':', ')'])).find(|word| {
        let is_named = begins
            .iter()
            .any(|b| word.strip_prefix(b).is_some_and(|rest| rest.bytes().any(|b| b.is_ascii_digit())));
        is_named
            && word.len() <= 15
            && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-@".contains(&b))
    })
}

/// A block device in a message: `dev sda, sector 1`, `sd 0:0:0:0: [sda]`, `nvme0n1: I/O`, `on sdb1`.
fn disk(message: &str) -> Option<&str> {
    let words = message.split([' ', ',', '[', ']']).map(|word| word.trim_end_matches([':', '.']));
    let begins = ["sd", "nvme", "vd", "md", "dm-", "hd", "drbd"];
    words.filter(|word| word.len() <= 16).find(|word| {
        begins.iter().any(|b| {
            word.strip_prefix(b).is_some_and(|rest| {
                !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
            })
        })
    })
}

/// Counts of events by key.
type Counts = std::collections::BTreeMap<String, i64>;

/// Takes a message; whether it is one that is known.
fn event(message: &str, counts: &mut Counts, out: &mut Sink) -> bool {
    let lower = message.to_lowercase();
    if let Some(nic) = nic(message) {
        let nic = key(nic.split('@').next().unwrap_or(nic));
        if lower.contains("link is up") || lower.contains("link up") {
            link_up(&nic, message, out);
            *counts.entry(format!("{nic}.log.link_up")).or_default() += 1;
            return true;
        }
        if let Some((_, name)) = OF_NIC.iter().find(|(words, _)| lower.contains(words)) {
            if *name == "link_down" {
                out.text(format!("{nic}.state"), "down");
            }
            *counts.entry(format!("{nic}.log.{name}")).or_default() += 1;
            return true;
        }
    }
    if narrow(&lower, message, out) {
        return true;
    }
    // `clocksource: Switched to clocksource hpet`
    if let Some((_, clock)) = lower.split_once("switched to clocksource ") {
        out.text("cpu.clocksource", clock.split_whitespace().next().unwrap_or_default());
        return true;
    }
    if let Some((disk, (_, name))) =
        disk(message).zip(OF_DISK.iter().find(|(words, _)| lower.contains(words)))
    {
        *counts.entry(format!("disk.{disk}.log.{name}")).or_default() += 1;
        return true;
    }
    // `ata1: SATA link up 1.5 Gbps (SStatus 113 SControl 310)`
    if let Some((port, rest)) = message.split_once(": SATA link up ") {
        if let Some(gbit) = leading(rest).filter(|_| port.starts_with("ata")) {
            out.fact(format!("ata.{port}.sata_gbit"), FactValue::Float(gbit));
        }
        return true;
    }
    if let Some((port, _)) = message.split_once(": limiting SATA link speed to ") {
        *counts.entry(format!("ata.{}.log.lowered", port.split('.').next().unwrap_or(port))).or_default() +=
            1;
        return true;
    }
    if ata(message, &lower, counts) || usb(message, &lower, counts) {
        return true;
    }
    if let Some((_, name)) = OF_HOST.iter().find(|(words, _)| lower.contains(words)) {
        *counts.entry(format!("kernel.log.{name}")).or_default() += 1;
        return true;
    }
    false
}

/// Whether a word is a name of libata: `ata5`, `ata5.00`.
fn is_ata(word: &str) -> bool {
    let number = word.strip_prefix("ata").unwrap_or_default();
    number.starts_with(|c: char| c.is_ascii_digit())
        && number.bytes().all(|b| b.is_ascii_digit() || b == b'.')
}

/// `ata5.00: exception Emask 0x0 SAct 0x0 SErr 0x40000 action 0x6 frozen` and what follows it: the command,
/// the answer, the errors of the wire. Whether the message is of libata.
fn ata(message: &str, lower: &str, counts: &mut Counts) -> bool {
    let Some((name, rest)) = message.split_once(": ").filter(|(name, _)| is_ata(name)) else {
        // The second line of a command stands without its port.
        return message.trim_start().starts_with("res ") && message.contains("Emask");
    };
    let port = name.split('.').next().unwrap_or(name);
    let mut count = |what: &str| *counts.entry(format!("ata.{port}.log.{what}")).or_default() += 1;
    if let Some((_, what)) = OF_ATA.iter().find(|(words, _)| lower.contains(words)) {
        count(what);
        if what.ends_with("reset") {
            *counts.entry("kernel.log.sata_resets".to_owned()).or_default() += 1;
        }
        return true;
    }
    if let Some(errors) = rest.strip_prefix("SError: {") {
        let has = |flags: &[&str]| errors.split_whitespace().any(|flag| flags.contains(&flag));
        for (what, _) in OF_WIRE.iter().filter(|(_, flags)| has(flags)) {
            count(what);
        }
        return true;
    }
    ["cmd ", "res ", "status: {", "error: {", "edma_err", "SATA link", "EH complete", "configured for"]
        .iter()
        .any(|start| rest.starts_with(start))
}

/// `usb 2-1.1: reset SuperSpeed Gen 1 USB device number 5 using xhci_hcd`, `scsi host0:
/// uas_eh_device_reset_handler start`, and the command that a driver gave up. Whether the message is of them.
fn usb(message: &str, lower: &str, counts: &mut Counts) -> bool {
    if lower.contains("uas_eh_") {
        if lower.ends_with("start") {
            *counts.entry("kernel.log.uas_resets".to_owned()).or_default() += 1;
        }
        return true;
    }
    if message.starts_with("sd ") && lower.contains(" cdb: ") {
        return true;
    }
    let Some((port, rest)) = lower.strip_prefix("usb ").and_then(|rest| rest.split_once(": ")) else {
        return false;
    };
    let is_port = port.starts_with(|c: char| c.is_ascii_digit()) && port.contains('-') && port.len() <= 16;
    let fits = |(words, what): &&(&str, &str)| {
        rest.contains(words) && (*what != "reset" || rest.starts_with("reset "))
    };
    let Some((_, what)) = OF_USB.iter().find(fits).filter(|_| is_port) else { return false };
    *counts.entry(format!("usb.{}.log.{what}", port.replace('.', "/"))).or_default() += 1;
    true
}

/// `NIC Link is Up 1000 Mbps Full Duplex`, `Link is Up - 1Gbps/Full`, `link up, 10Gbps, full-duplex`.
fn link_up(nic: &str, message: &str, out: &mut Sink) {
    out.text(format!("{nic}.state"), "up");
    let words: Vec<&str> = message.split([' ', ',', '/']).filter(|w| !w.is_empty()).collect();
    let mbit = words.iter().enumerate().find_map(|(at, word)| {
        let unit = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let (value, unit) = if unit.is_empty() {
            (*word, words.get(at + 1).copied().unwrap_or_default())
        } else {
            (&word[..word.len() - unit.len()], unit)
        };
        let factor = match unit {
            "Mbps" => 1.0,
            "Gbps" => 1000.0,
            _ => return None,
        };
        Some(number(value)? * factor)
    });
    if let Some(mbit) = mbit.filter(|mbit| *mbit >= 1.0) {
        out.fact(format!("{nic}.speed_mbit"), FactValue::Int(mbit.round() as i64));
    }
    let lower = message.to_lowercase();
    for (word, duplex) in [("full", "full"), ("half", "half")] {
        if lower.contains(word) {
            out.text(format!("{nic}.duplex"), duplex);
            break;
        }
    }
}

/// `ixgbe 0000:03:00.0: 8.000 Gb/s available PCIe bandwidth, limited by 2.5 GT/s PCIe x4 link at 0000:00:1c.0
/// (capable of 32.000 Gb/s with 5.0 GT/s PCIe x8 link)`: the link of a device on its bus.
fn narrow(lower: &str, message: &str, out: &mut Sink) -> bool {
    if !lower.contains("available pcie bandwidth") {
        return false;
    }
    let bus = message.split_whitespace().find(|word| word.matches(':').count() >= 2 && word.contains('.'));
    let Some(bus) = bus.map(|bus| bus.trim_end_matches(':')) else { return true };
    // The core of the bus calls itself `pci`; a driver prints its own name in front.
    let driver = message.split_whitespace().next().filter(|word| !["pci", bus].contains(word));
    out.text(format!("pci.{bus}.driver"), driver.filter(|word| !word.contains(':')).unwrap_or_default());
    let link = |text: &str, tail: &str| {
        let words: Vec<&str> = text.split([' ', '(', ')']).filter(|w| !w.is_empty()).collect();
        let at = words.iter().position(|w| *w == "GT/s")?;
        let speed = number(words.get(at.checked_sub(1)?)?)?;
        let width = words.iter().skip(at).find_map(|w| w.strip_prefix('x')?.parse::<i64>().ok())?;
        Some([
            (format!("{tail}speed_gts"), FactValue::Float(speed)),
            (format!("{tail}width"), FactValue::Int(width)),
        ])
    };
    let (limited, capable) = message.split_once("capable of").unwrap_or((message, ""));
    for (key, value) in [link(limited, ""), link(capable, "max_")].into_iter().flatten().flatten() {
        out.fact(format!("pci.{bus}.pcie.{key}"), value);
    }
    true
}

impl Reader for KernelLog {
    fn name(&self) -> &'static str {
        "kernel-log"
    }

    fn describes(&self) -> &'static str {
        "dmesg, journalctl -k: links, time-outs, errors of disks, SATA and USB"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        let is_dmesg = block.at.command.is(&["dmesg", "journalctl"]);
        message(block.first(), is_dmesg)
            .is_some_and(|message| event(message, &mut Counts::new(), &mut Sink::default()))
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let is_dmesg = block.at.command.is(&["dmesg", "journalctl"]);
        if let Some(host) = host(block.first()) {
            out.speaks_of(block.at, host);
        }
        let mut counts = Counts::new();
        let mut taken = 0;
        for (at, line) in block.lines.iter().enumerate() {
            let Some(message) = message(line, is_dmesg) else { break };
            if !event(message, &mut counts, out) {
                // A line about something else is quoted by the walk, unless more that are known follow.
                break;
            }
            taken = at + 1;
        }
        for (key, count) in counts {
            out.add(key, count);
        }
        taken.max(1)
    }
}
