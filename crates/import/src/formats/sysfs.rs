//! Files of `/sys` and single files of `/proc` as `grep . FILES`, `head FILES` or `cat FILE` print them: path
//! and value come in, facts and counters of the same names as those of our own readers go out.
//!
//! `cat` of several files prints values without names: those of `statistics/*` of one device are known by
//! their number and order.

use linerate_model::fact::FactValue;

use super::ethtool::key;
use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// The format.
pub(crate) struct Sysfs;

/// Files of `statistics`, in the order in which a shell lists them.
const STATISTICS: [&str; 24] = [
    "collisions",
    "multicast",
    "rx_bytes",
    "rx_compressed",
    "rx_crc_errors",
    "rx_dropped",
    "rx_errors",
    "rx_fifo_errors",
    "rx_frame_errors",
    "rx_length_errors",
    "rx_missed_errors",
    "rx_nohandler",
    "rx_over_errors",
    "rx_packets",
    "tx_aborted_errors",
    "tx_bytes",
    "tx_carrier_errors",
    "tx_compressed",
    "tx_dropped",
    "tx_errors",
    "tx_fifo_errors",
    "tx_heartbeat_errors",
    "tx_packets",
    "tx_window_errors",
];

/// The file that kernels before 4.6 lack.
const NEW: &str = "rx_nohandler";

/// Files of a device that are facts, by the name of the fact.
const NIC: [(&str, &str); 10] = [
    ("mtu", "mtu"),
    ("mode", "ipoib_mode"),
    ("speed", "speed_mbit"),
    ("duplex", "duplex"),
    ("operstate", "state"),
    ("carrier_changes", "carrier_changes"),
    ("tx_queue_len", "txqueuelen"),
    ("device/numa_node", "numa_node"),
    ("gso_max_segs", "gso_max_segs"),
    ("address", "mac"),
];

/// The same of a block device.
const DISK: [(&str, &str); 8] = [
    ("queue/scheduler", "scheduler"),
    ("queue/nr_requests", "nr_requests"),
    ("queue/read_ahead_kb", "read_ahead_kb"),
    ("queue/max_sectors_kb", "max_sectors_kb"),
    ("queue/rotational", "rotational"),
    ("queue/write_cache", "write_cache"),
    ("queue/nomerges", "nomerges"),
    ("device/queue_depth", "queue_depth"),
];

/// The file with the power saving of a SATA link.
const LINK_POWER: &str = "link_power_management_policy";
/// The policy that saves nothing.
const NO_SAVING: &str = "max_performance";
/// The others, and the one that the firmware sets.
const SAVING: [&str; 4] = ["min_power", "medium_power", "med_power_with_dipm", "min_power_with_partial"];

/// Power saving of the SATA links of a host adapter.
fn link_power(adapter: &str, policy: &str, out: &mut Sink) {
    out.text(format!("ata.{adapter}.link_power"), policy);
    if SAVING.contains(&policy) {
        out.fact(format!("ata.{adapter}.power_saving"), FactValue::Int(1));
    }
}

/// `cat /sys/class/scsi_host/host*/link_power_management_policy` prints policies without names: what all of
/// them have, else the one that saves most.
fn link_powers(lines: &[&str], out: &mut Sink) {
    let saving = SAVING.iter().find(|policy| lines.contains(policy));
    if let Some(policy) = saving.or(lines.first()) {
        link_power("host", policy, out);
    }
}

/// A path that is read.
fn is_path(text: &str) -> bool {
    (text.starts_with("/sys/") || text.starts_with("/proc/sys/")) && !text.contains([' ', '*'])
}

/// `/sys/class/net/eth0/mtu:1500`
fn pair(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    let start = line.find("/sys/").filter(|at| *at == 0)?;
    // An address of PCI has colons of its own; the value stands behind the last part of the path.
    let last = line[start..].rfind('/').map(|at| start + at)?;
    let at = last + line[last..].find([':', '='])?;
    let (path, value) = (&line[..at], line[at + 1..].trim());
    is_path(path).then_some((path, value))
}

/// `==> /sys/class/net/eth0/mtu <==`
fn heading(line: &str) -> Option<&str> {
    line.trim().strip_prefix("==> ")?.strip_suffix(" <==").filter(|path| is_path(path))
}

/// Keeps the value of a file; whether it is one that is kept.
fn put(path: &str, value: &str, out: &mut Sink) -> bool {
    if let Some((nic, file)) = path.split_once("/net/").and_then(|(_, rest)| rest.split_once('/')) {
        return nic_file(&key(nic), file, value, out);
    }
    if let Some((disk, file)) = path.split_once("/block/").and_then(|(_, rest)| rest.split_once('/')) {
        let Some((_, fact)) = DISK.iter().find(|(name, _)| *name == file) else { return false };
        let value = match *fact {
            // `[mq-deadline] none`
            "scheduler" => value.split('[').nth(1).and_then(|v| v.split(']').next()).unwrap_or(value),
            _ => value,
        };
        let value = if *fact == "rotational" { FactValue::Flag(value == "1") } else { typed(value) };
        out.fact(format!("disk.{disk}.{fact}"), value);
        return true;
    }
    if let Some(folder) = path.strip_suffix(LINK_POWER) {
        link_power(folder.trim_end_matches('/').rsplit('/').next().unwrap_or("host"), value, out);
        return true;
    }
    if path.ends_with("/cpufreq/scaling_governor") {
        out.text("cpu.governor", value);
        return true;
    }
    if path.ends_with("/current_clocksource") {
        out.text("cpu.clocksource", value);
        return true;
    }
    false
}

fn nic_file(nic: &str, file: &str, value: &str, out: &mut Sink) -> bool {
    if let Some(name) = file.strip_prefix("statistics/") {
        let Ok(value) = value.parse() else { return false };
        out.counter(format!("{nic}.stat.{name}"), value);
        return true;
    }
    let Some((_, fact)) = NIC.iter().find(|(name, _)| *name == file) else { return false };
    // A device without a link has a speed of -1.
    if *fact != "speed_mbit" || value.parse::<i64>().is_ok_and(|mbit| mbit > 0) {
        out.fact(format!("{nic}.{fact}"), typed(value));
    }
    true
}

fn typed(value: &str) -> FactValue {
    value.parse().map_or_else(|_| FactValue::Text(value.to_owned()), FactValue::Int)
}

fn is_number(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && line.len() < 20 && line.bytes().all(|b| b.is_ascii_digit())
}

/// The paths that a `cat` named.
fn asked<'c>(block: &'c Block<'_>) -> Vec<&'c str> {
    let command = &block.at.command;
    if !command.is(&["cat", "head", "tail", "more", "less"]) {
        return Vec::new();
    }
    command.words.iter().skip(1).map(String::as_str).filter(|word| word.starts_with("/sys/")).collect()
}

impl Reader for Sysfs {
    fn name(&self) -> &'static str {
        "sysfs"
    }

    fn describes(&self) -> &'static str {
        "files of /sys: grep . FILES, head FILES, cat FILE"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        let line = block.first();
        pair(line).is_some() || heading(line).is_some() || !asked(block).is_empty() && !line.contains(": ")
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let paths = asked(block);
        let is_bare = pair(block.first()).is_none() && heading(block.first()).is_none();
        if is_bare && !paths.is_empty() {
            return bare(&paths, block, out);
        }
        let mut path = None;
        let mut taken = 0;
        for (at, line) in block.lines.iter().enumerate() {
            if let Some(named) = heading(line) {
                path = Some(named);
            } else if let Some((path, value)) = pair(line) {
                if !put(path, value, out) {
                    out.unread(at, "a file of /sys about neither network nor disks");
                }
            } else if let Some(path) = path.take_if(|_| !line.trim().is_empty()) {
                put(path, line.trim(), out);
            } else if !line.trim().is_empty() {
                break;
            }
            taken = at + 1;
        }
        taken.max(1)
    }
}

/// Values without names, of a command that names the files.
fn bare(paths: &[&str], block: &Block<'_>, out: &mut Sink) -> usize {
    let lines = || block.lines.iter().map(|line| line.trim()).take_while(|line| !line.is_empty());
    if let [path] = paths
        && let Some(folder) = path.strip_suffix("/statistics/*").filter(|folder| !folder.contains('*'))
    {
        let count = lines().take_while(|line| is_number(line)).count();
        let names: Vec<&str> =
            STATISTICS.iter().filter(|name| count == STATISTICS.len() || **name != NEW).copied().collect();
        if count == names.len() {
            for (name, value) in names.iter().zip(lines()) {
                put(&format!("{folder}/statistics/{name}"), value, out);
            }
        } else {
            out.unread(0, "values without names: `grep . FILES` prints both");
        }
        return count.max(1);
    }
    if paths.iter().all(|path| path.ends_with(LINK_POWER)) {
        let is_policy =
            |line: &&str| SAVING.contains(line) || [NO_SAVING, "keep_firmware_settings"].contains(line);
        let policies: Vec<&str> = lines().take_while(is_policy).collect();
        link_powers(&policies, out);
        return policies.len().max(1);
    }
    let is_plain = paths.iter().all(|path| !path.contains('*'));
    let count = lines().take(paths.len()).count();
    if !is_plain || count != paths.len() {
        out.unread(0, "values without names: `grep . FILES` prints both");
        return lines().take_while(|line| is_number(line)).count().max(1);
    }
    for (path, value) in paths.iter().zip(lines()) {
        put(path, value, out);
    }
    count.max(1)
}
