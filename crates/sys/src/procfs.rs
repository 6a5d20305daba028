//! Parsers of the tables of `/proc`.
//!
//! In: text of a file. Out: names and numbers. A line that is not as expected is passed over; it never
//! panics.

use std::collections::BTreeMap;

use crate::cpu::{self, CpuTicks};

/// `/proc/net/snmp` and `/proc/net/netstat`: a line of names and a line of values with the same first word.
pub fn paired_table(text: &str) -> impl Iterator<Item = (&str, &str, i64)> {
    let mut lines = text.lines();
    std::iter::from_fn(move || Some((lines.next()?, lines.next()?))).flat_map(|(names, values)| {
        let (group, names) = names.split_once(':').unwrap_or_default();
        let (values_group, values) = values.split_once(':').unwrap_or_default();
        let same = group == values_group && !group.is_empty();
        names
            .split_ascii_whitespace()
            .zip(values.split_ascii_whitespace())
            .filter(move |_| same)
            .filter_map(move |(name, value)| Some((group, name, value.parse().ok()?)))
    })
}

/// Sums over all CPUs of `/proc/net/softnet_stat`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Softnet {
    /// Frames processed.
    pub processed: i64,
    /// Frames dropped because the backlog was full.
    pub dropped: i64,
    /// Times that work was left when the budget was used up.
    pub time_squeeze: i64,
    /// Times that another CPU was asked to process frames (RPS).
    pub received_rps: i64,
}

/// Parses `/proc/net/softnet_stat`: hexadecimal columns, one line for each CPU.
pub fn softnet(text: &str) -> Option<Softnet> {
    let mut sum = Softnet::default();
    let mut seen = false;
    for line in text.lines() {
        let mut columns = line.split_ascii_whitespace().map(|c| i64::from_str_radix(c, 16).ok());
        let (Some(Some(processed)), Some(Some(dropped)), Some(Some(squeeze))) =
            (columns.next(), columns.next(), columns.next())
        else {
            continue;
        };
        seen = true;
        sum.processed = sum.processed.saturating_add(processed);
        sum.dropped = sum.dropped.saturating_add(dropped);
        sum.time_squeeze = sum.time_squeeze.saturating_add(squeeze);
        let rps = columns.nth(6).flatten().unwrap_or(0);
        sum.received_rps = sum.received_rps.saturating_add(rps);
    }
    seen.then_some(sum)
}

/// What [`stat`] finds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stat {
    /// Of every CPU that is online.
    pub cpus: Vec<CpuTicks>,
    /// Interrupts since boot by number, without those that never came.
    pub interrupts: BTreeMap<u32, i64>,
}

/// Parses `/proc/stat`.
pub fn stat(text: &str) -> Stat {
    let mut stat = Stat::default();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(name) = words.next() else { continue };
        if name == "intr" {
            let counts = words.skip(1).map(|w| w.parse().unwrap_or(0)).enumerate();
            stat.interrupts = counts.filter(|(_, n)| *n > 0).map(|(i, n)| (i as u32, n)).collect();
        } else {
            stat.cpus.extend(cpu::parse_stat_line(line));
        }
    }
    stat
}

/// Names of the numbered interrupts of `/proc/interrupts`: the part after the counts.
pub fn interrupt_names(text: &str) -> BTreeMap<u32, String> {
    let mut lines = text.lines();
    let cpus = lines.next().map_or(0, |l| l.split_ascii_whitespace().count());
    lines
        .filter_map(|line| {
            let (number, rest) = line.split_once(':')?;
            let number = number.trim().parse().ok()?;
            let words: Vec<&str> = rest.split_ascii_whitespace().skip(cpus).take(32).collect();
            Some((number, words.join(" ")))
        })
        .collect()
}

/// One line of `/proc/self/mountinfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Major and minor number of the device; a number without a driver for file systems on several devices or
    /// none.
    pub number: String,
    /// Part of the file system that is mounted.
    pub root: String,
    /// Where.
    pub point: String,
    /// Options of this mount.
    pub options: String,
    /// Type of the file system.
    pub kind: String,
    /// Device or name.
    pub source: String,
    /// Options of the file system.
    pub super_options: String,
}

/// Parses `/proc/self/mountinfo`.
pub fn mounts(text: &str) -> Vec<Mount> {
    text.lines()
        .filter_map(|line| {
            let (head, tail) = line.split_once(" - ")?;
            let mut head = head.split(' ').skip(2);
            let mut tail = tail.split(' ');
            Some(Mount {
                number: head.next()?.to_string(),
                root: unescape(head.next()?),
                point: unescape(head.next()?),
                options: head.next()?.to_string(),
                kind: tail.next()?.to_string(),
                source: unescape(tail.next()?),
                super_options: tail.next().unwrap_or_default().to_string(),
            })
        })
        .collect()
}

/// `\040` -> space.
fn unescape(text: &str) -> String {
    let mut out = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let octal = bytes.get(at + 1..at + 4).filter(|_| bytes[at] == b'\\');
        let code = octal.and_then(|o| u8::from_str_radix(std::str::from_utf8(o).ok()?, 8).ok());
        out.push(code.unwrap_or(bytes[at]));
        at += if code.is_some() { 4 } else { 1 };
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// One line of `/proc/self/cgroup`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlGroup {
    /// Controllers; empty for version 2.
    pub controllers: Vec<String>,
    /// Path below the mount of the hierarchy.
    pub path: String,
}

/// Parses `/proc/self/cgroup`.
pub fn control_groups(text: &str) -> Vec<ControlGroup> {
    text.lines()
        .filter_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let controllers = parts.next()?.split(',').filter(|c| !c.is_empty()).map(String::from).collect();
            Some(ControlGroup { controllers, path: parts.next()?.to_string() })
        })
        .collect()
}

/// Lines of `name value` with one number, as in `cpu.stat`.
pub fn named_numbers(text: &str) -> BTreeMap<&str, i64> {
    text.lines()
        .filter_map(|line| {
            let (name, value) = line.split_once(char::is_whitespace)?;
            Some((name, value.trim().parse().ok()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tables_are_read() {
        let text = "Tcp: InSegs MaxConn\nTcp: 12 -1\nUdp: A\nIp: 1\n";
        assert_eq!(paired_table(text).collect::<Vec<_>>(), [("Tcp", "InSegs", 12), ("Tcp", "MaxConn", -1)]);
        let sum = softnet("0000000a 00000001 00000002 0 0 0 0 0 0 00000005\n0000000b 0 1 0\n").unwrap();
        assert_eq!(sum, Softnet { processed: 21, dropped: 1, time_squeeze: 3, received_rps: 5 });
        let stat = stat("cpu 9\ncpu1 1 2 3 4 5 6 7 8 0 0\nintr 30 0 10 20\n");
        assert_eq!(stat.cpus, [CpuTicks { cpu: 1, busy: 27, total: 36, softirq: 7, steal: 8 }]);
        assert_eq!(stat.interrupts, BTreeMap::from([(1, 10), (2, 20)]));
        let names =
            interrupt_names("   CPU0 CPU1\n 38: 0 55 PCI-MSIX-0000:00:03.0 1-edge eth0-rx-0\nNMI: 1 2 x\n");
        assert_eq!(names, BTreeMap::from([(38, "PCI-MSIX-0000:00:03.0 1-edge eth0-rx-0".to_string())]));
        let mount =
            &mounts("36 35 98:0 /m /a\\040b rw,noatime master:1 - ext3 /dev/root rw,errors=continue")[0];
        assert_eq!((mount.point.as_str(), mount.kind.as_str()), ("/a b", "ext3"));
        let groups = control_groups("1:cpu,cpuacct:/a\n0::/b:c\n");
        assert_eq!(groups[0].controllers, ["cpu", "cpuacct"]);
        assert_eq!(groups[1].path, "/b:c");
        assert_eq!(named_numbers("nr_throttled 3\nx y\n"), BTreeMap::from([("nr_throttled", 3)]));
    }

    proptest! {
        #[test]
        fn garbage_never_panics(text in "(\\PC|\n|:| |-|\\\\[0-7]{0,4}|cpu[0-9]|intr){0,200}") {
            let _ = paired_table(&text).count();
            let _ = (softnet(&text), stat(&text), interrupt_names(&text), mounts(&text));
            let _ = (control_groups(&text), named_numbers(&text));
        }
    }
}
