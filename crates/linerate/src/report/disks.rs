//! Block devices as text: a tree with rates, and what is wrong with them. Fits 100 columns.

use std::fmt::Write as _;

use linerate_diagnose::disks::{Layout, Leaf};
use linerate_model::disk::{Disk, DiskFinding, DiskInterval, DiskKind, DiskRates};
use linerate_model::snapshot::Snapshot;

use super::names::one_line;

/// Width of the column of names.
const NAME: usize = 35;

/// What is shown of a host.
#[derive(Debug, Clone, Copy)]
pub struct Show {
    /// Idle devices and inner parts of volumes too.
    pub all: bool,
    /// There are several hosts, so that each is named.
    pub many: bool,
}

/// The table of one host.
#[must_use]
pub fn table(layout: &Layout, interval: &DiskInterval, show: Show) -> String {
    let mut text = String::new();
    if show.many {
        let _ = writeln!(text, "{}", one_line(&interval.host));
    }
    let heads = ["r/s", "w/s", "rMB/s", "wMB/s", "merged/s", "r ms", "w ms", "queue", "busy"];
    let _ = write!(text, "{:NAME$}", "device");
    for (head, width) in heads.iter().zip(WIDTHS) {
        let _ = write!(text, "{head:>width$}");
    }
    text.push('\n');
    let mut idle = 0;
    let mut lines: Vec<Leaf<'_>> = layout.lines(show.all);
    // What has counters and no facts: a device that came a moment ago, or one without a size, as loop devices without a file are.
    let strange = |d: &&DiskRates| layout.get(&d.device).is_none() && !d.is_idle();
    let strange: Vec<Disk> = interval.disks.iter().filter(strange).map(stranger).collect();
    lines.extend(strange.iter().map(|disk| Leaf { disk, depth: 0 }));
    for Leaf { disk, depth } in lines {
        let Some(rates) = interval.disks.iter().find(|d| d.device == disk.device) else { continue };
        if rates.is_idle() && !show.all {
            idle += 1;
            continue;
        }
        let _ = writeln!(text, "{}", row(disk, depth, rates));
    }
    if idle > 0 {
        let _ = writeln!(text, "{idle} idle");
    }
    text
}

const WIDTHS: [usize; 9] = [7, 7, 7, 7, 9, 7, 7, 7, 7];

fn stranger(rates: &DiskRates) -> Disk {
    Disk {
        device: rates.device.clone(),
        name: rates.device.clone(),
        number: None,
        kind: DiskKind::Made,
        size_bytes: 0,
        on: Vec::new(),
        mounts: Vec::new(),
        inner: false,
    }
}

fn row(disk: &Disk, depth: usize, rates: &DiskRates) -> String {
    let mut name = format!("{}{}", "  ".repeat(depth), one_line(&disk.name));
    if disk.name != disk.device {
        let _ = write!(name, " ({})", one_line(&disk.device));
    }
    if let Some(mount) = disk.mounts.first() {
        let _ = write!(name, " {}", one_line(mount));
    }
    if name.chars().count() >= NAME {
        name = name.chars().take(NAME - 2).chain(['…']).collect();
    }
    let merged = rates.read.merged_per_s + rates.write.merged_per_s;
    let wait = |ms: Option<f64>| ms.map_or_else(|| "-".to_owned(), number);
    let busy = format!("{:.0}%", rates.busy * 100.0);
    let busy = if disk.kind == DiskKind::Rotating { busy } else { format!("({busy})") };
    let values = [
        number(rates.read.requests_per_s),
        number(rates.write.requests_per_s),
        number(rates.read.bytes_per_s / 1e6),
        number(rates.write.bytes_per_s / 1e6),
        number(merged),
        wait(rates.read.wait_ms),
        wait(rates.write.wait_ms),
        number(rates.queue),
        busy,
    ];
    let mut line = format!("{name:NAME$}");
    for (value, width) in values.iter().zip(WIDTHS) {
        let _ = write!(line, "{value:>width$}");
    }
    line
}

/// At most five characters up to 99999.
fn number(value: f64) -> String {
    match value {
        v if v >= 99.95 => format!("{v:.0}"),
        v if v >= 9.995 => format!("{v:.1}"),
        v if v >= 0.005 => format!("{v:.2}"),
        _ => "0".to_owned(),
    }
}

/// What is wrong, a line each.
#[must_use]
pub fn findings(findings: &[DiskFinding]) -> String {
    if findings.is_empty() {
        return "nothing is wrong as far as the counters show it\n".to_owned();
    }
    let line = |f: &DiskFinding| super::text::wrap(&format!("{}: {}", f.host, f.sentence), 100).join("\n  ");
    findings.iter().map(line).collect::<Vec<_>>().join("\n") + "\n"
}

/// The run in a line.
#[must_use]
pub fn headline(snapshot: &Snapshot, findings: &[DiskFinding]) -> String {
    let seconds: f64 = snapshot
        .facts
        .keys()
        .next()
        .map_or(0.0, |host| snapshot.disks.iter().filter(|i| i.host == *host).map(|i| i.seconds).sum());
    let what = match findings {
        [] => "nothing wrong was seen".to_owned(),
        [first, rest @ ..] => {
            let more = if rest.is_empty() { String::new() } else { format!(" (and {} more)", rest.len()) };
            format!("{}: {}{more}", first.host, first.sentence)
        }
    };
    format!("disks of {} hosts watched for {seconds:.0} s: {what}", snapshot.facts.len())
}

#[cfg(test)]
mod tests {
    use linerate_diagnose::disks::layout;
    use linerate_model::disk::DiskTraffic;
    use linerate_model::fact::{FactValue, HostFacts};

    use super::*;

    #[test]
    fn a_table_shows_names_and_fits() {
        let mut facts = HostFacts::default();
        facts.readings.extend([
            (
                "disk.dm-2.dm_name".to_owned(),
                FactValue::Text("vg0-a--very--long--name--of--a--volume".into()),
            ),
            ("disk.dm-2.on".to_owned(), FactValue::List(vec!["sda".into(), "sdb".into()])),
            ("disk.sda.rotational".to_owned(), FactValue::Flag(true)),
            ("disk.sdb.rotational".to_owned(), FactValue::Flag(true)),
        ]);
        let busy = |device: &str, requests| DiskRates {
            device: device.into(),
            write: DiskTraffic {
                requests_per_s: requests,
                merged_per_s: 3290.0,
                bytes_per_s: 258e6,
                wait_ms: Some(12.34),
            },
            busy: 0.6,
            ..DiskRates::default()
        };
        let idle = DiskRates { device: "sdb".into(), ..DiskRates::default() };
        let interval = DiskInterval {
            host: "store-1".into(),
            at_ms: 0,
            seconds: 2.0,
            disks: vec![busy("dm-2", 65_955.0), busy("sda", 115.0), idle, busy("new", 1.0)],
        };
        let text = table(&layout(&facts), &interval, Show { all: false, many: true });
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "store-1");
        assert!(lines[2].starts_with("vg0/a-very-long-name-of-a-volume …"), "{text}");
        assert!(lines[2].ends_with("(60%)") && lines[3].ends_with(" 60%"), "{text}");
        assert!(lines[3].starts_with("  sda  ") && lines[4].starts_with("new  "), "{text}");
        assert_eq!(lines[5], "1 idle");
        assert!(lines.iter().all(|line| line.chars().count() <= 100), "{text}");
    }
}
