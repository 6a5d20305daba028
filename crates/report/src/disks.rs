//! Block devices as text: a tree with rates. Fits 100 columns.

use std::fmt::Write as _;

use linerate_diagnose::disks::{Layout, Leaf};
use linerate_model::disk::{Disk, DiskEpisodes, DiskInterval, DiskKind, DiskRates, DiskTraffic};
use linerate_model::disk_user::DiskUser;
use linerate_model::printable::one_line;

use super::heat::Style;

/// Width of a table.
const WIDTH: usize = 100;

/// What is shown of a host.
#[derive(Debug, Clone, Copy)]
pub struct DiskView<'a> {
    /// Idle devices and inner parts of volumes too.
    pub all: bool,
    /// Several hosts are watched, so that each is named.
    pub many: bool,
    /// Findings; devices of those that hold now are marked.
    pub wrong: &'a [DiskEpisodes],
    /// How the marks look.
    pub style: Style,
}

/// A column behind the names.
struct Column {
    /// What it has in common with its neighbours; a line of its own above the heads.
    group: &'static str,
    head: &'static str,
    width: usize,
    value: fn(&Disk, &DiskRates) -> String,
}

const fn column(head: &'static str, width: usize, value: fn(&Disk, &DiskRates) -> String) -> Column {
    Column { group: "", head, width, value }
}

const fn grouped(
    group: &'static str,
    head: &'static str,
    width: usize,
    value: fn(&Disk, &DiskRates) -> String,
) -> Column {
    Column { group, head, width, value }
}

/// Where only means are known.
const MEANS: &[Column] = &[
    column("r/s", 7, |_, d| number(d.read.requests_per_s)),
    column("w/s", 7, |_, d| number(d.write.requests_per_s)),
    column("rMB/s", 7, |_, d| number(d.read.bytes_per_s / 1e6)),
    column("wMB/s", 7, |_, d| number(d.write.bytes_per_s / 1e6)),
    column("merged/s", 9, |_, d| number(merged(d))),
    column("r ms", 7, |_, d| known(d.read.wait_ms)),
    column("w ms", 7, |_, d| known(d.write.wait_ms)),
    column("queue", 7, |_, d| number(d.queue)),
    column("busy", 7, busy),
];

/// Where the kernel tells how long single requests take. A device of which it does not has its mean, in
/// brackets.
const TIMES: &[Column] = &[
    column("r/s", 6, |_, d| number(d.read.requests_per_s)),
    column("w/s", 6, |_, d| number(d.write.requests_per_s)),
    column("rMB/s", 6, |_, d| number(d.read.bytes_per_s / 1e6)),
    column("wMB/s", 6, |_, d| number(d.write.bytes_per_s / 1e6)),
    column("merged", 7, |_, d| number(merged(d))),
    grouped("read, ms", "p50", 7, |_, d| middle(&d.read)),
    grouped("read, ms", "p99", 6, |_, d| known(d.read.times.map(|t| t.p99_ms))),
    grouped("write, ms", "p50", 7, |_, d| middle(&d.write)),
    grouped("write, ms", "p99", 6, |_, d| known(d.write.times.map(|t| t.p99_ms))),
    grouped("ms", "max", 6, |_, d| known(d.longest_ms())),
    column("queue", 6, |_, d| number(d.queue)),
    column("busy", 7, busy),
];

fn merged(rates: &DiskRates) -> f64 {
    rates.read.merged_per_s + rates.write.merged_per_s
}

fn known(ms: Option<f64>) -> String {
    ms.map_or_else(|| "-".to_owned(), number)
}

fn middle(traffic: &DiskTraffic) -> String {
    match (traffic.times, traffic.wait_ms) {
        (Some(times), _) => number(times.p50_ms),
        (None, Some(mean)) => format!("({})", number(mean)),
        (None, None) => "-".to_owned(),
    }
}

fn busy(disk: &Disk, rates: &DiskRates) -> String {
    let busy = format!("{:.0}%", rates.busy * 100.0);
    if disk.kind == DiskKind::Rotating { busy } else { format!("({busy})") }
}

/// The table of one host.
#[must_use]
pub fn table(layout: &Layout, interval: &DiskInterval, show: DiskView<'_>) -> String {
    let columns = if interval.times_missing.is_none() { TIMES } else { MEANS };
    let name_width = WIDTH - columns.iter().map(|c| c.width).sum::<usize>();
    let mut text = String::new();
    if show.many {
        let _ = writeln!(text, "{}", one_line(&interval.host));
    }
    text.push_str(&heads(columns, name_width));
    let mut idle = 0;
    let mut lines: Vec<Leaf<'_>> = layout.lines(show.all);
    // What has counters and no facts: a device that came a moment ago, or one without a size, as loop devices
    // without a file are.
    let strange = |d: &&DiskRates| layout.get(&d.device).is_none() && !d.is_idle();
    let strange: Vec<Disk> = interval.disks.iter().filter(strange).map(stranger).collect();
    lines.extend(strange.iter().map(|disk| Leaf { disk, depth: 0 }));
    for Leaf { disk, depth } in lines {
        let Some(rates) = interval.disks.iter().find(|d| d.device == disk.device) else { continue };
        if rates.is_idle() && !show.all {
            idle += 1;
            continue;
        }
        let mut line = name(disk, depth, name_width);
        for column in columns {
            let _ = write!(line, "{:>1$}", (column.value)(disk, rates), column.width);
        }
        let marks = |wrong: &DiskEpisodes| {
            wrong.open && wrong.finding.host == interval.host && wrong.finding.device == disk.device
        };
        let wrong = show.wrong.iter().any(marks);
        let _ = writeln!(text, "{}", if wrong { show.style.alarm(&line) } else { line });
    }
    if idle > 0 {
        let _ = writeln!(text, "{idle} idle");
    }
    text
}

/// One line, or two where columns have something in common.
fn heads(columns: &[Column], name_width: usize) -> String {
    let mut above = " ".repeat(name_width);
    for group in columns.chunk_by(|a, b| a.group == b.group) {
        let width: usize = group.iter().map(|c| c.width).sum();
        let _ = write!(above, "{:>width$}", group.first().map_or("", |c| c.group));
    }
    let mut heads = format!("{:name_width$}", "device");
    for column in columns {
        let _ = write!(heads, "{:>1$}", column.head, column.width);
    }
    let above = above.trim_end();
    if above.is_empty() { format!("{heads}\n") } else { format!("{above}\n{heads}\n") }
}

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
        failed: Vec::new(),
        rebuilding: Vec::new(),
    }
}

fn name(disk: &Disk, depth: usize, width: usize) -> String {
    let mut name = format!("{}{}", "  ".repeat(depth), one_line(&disk.name));
    if disk.name != disk.device {
        let _ = write!(name, " ({})", one_line(&disk.device));
    }
    if let Some(mount) = disk.mounts.first() {
        let _ = write!(name, " {}", one_line(mount));
    }
    if name.chars().count() >= width {
        name = name.chars().take(width - 2).chain(['…']).collect();
    }
    format!("{name:width$}")
}

/// At most five characters below 100 million.
fn number(value: f64) -> String {
    match value {
        v if v >= 99_999.5 => format!("{:.0}k", v / 1000.0),
        v if v >= 99.95 => format!("{v:.0}"),
        v if v >= 9.995 => format!("{v:.1}"),
        v if v >= 0.005 => format!("{v:.2}"),
        _ => "0".to_owned(),
    }
}

/// Why there are means alone, below a table.
#[must_use]
pub fn no_percentiles(reason: &str) -> String {
    super::wrap::wrap(&format!("no percentiles: {}", one_line(reason)), WIDTH).join("\n  ") + "\n"
}

/// Most users of disks that are named.
const USERS_MAX: usize = 10;
/// Width of the name of a user.
const USER_WIDTH: usize = 64;

/// Who causes the load, below a table.
#[must_use]
pub fn users(users: &[DiskUser], missing: Option<&str>) -> String {
    let mut text = format!("  {:USER_WIDTH$} {:>9} {:>9}\n", "who", "rMB/s", "wMB/s");
    let mut line = |name: &str, read: f64, written: f64| {
        let name = shortened(&one_line(name));
        let _ = writeln!(text, "  {name:USER_WIDTH$} {:>9} {:>9}", number(read / 1e6), number(written / 1e6));
    };
    for user in users.iter().take(USERS_MAX) {
        let name = match user.processes {
            1 => user.name.clone(),
            many => format!("{} ({many} processes)", user.name),
        };
        line(&name, user.read_bytes_per_s, user.write_bytes_per_s);
    }
    if let Some(rest) = users.get(USERS_MAX..).filter(|rest| !rest.is_empty()) {
        let sum = |of: fn(&DiskUser) -> f64| rest.iter().map(of).sum::<f64>();
        let name = format!("{} more", rest.len());
        line(&name, sum(|user| user.read_bytes_per_s), sum(|user| user.write_bytes_per_s));
    }
    if users.is_empty() {
        text.push_str("  no process read from storage or wrote for it\n");
    }
    if let Some(reason) = missing {
        let missing = format!("not all of them: {}", one_line(reason));
        text.push_str(&(super::wrap::wrap(&missing, WIDTH).join("\n  ") + "\n"));
    }
    text
}

/// A long name, shortened at its front: the end of a control group's path is the specific part.
fn shortened(name: &str) -> String {
    let length = name.chars().count();
    if length <= USER_WIDTH {
        return name.to_owned();
    }
    format!("…{}", name.chars().skip(length - USER_WIDTH + 1).collect::<String>())
}

#[cfg(test)]
mod tests {
    use linerate_diagnose::disks::layout;
    use linerate_model::disk::{DiskFinding, DiskTimes, DiskTrouble};
    use linerate_model::fact::{FactValue, HostFacts};

    use super::*;

    #[test]
    fn ten_users_are_named_and_the_others_added_up() {
        let user = |number: usize| DiskUser {
            name: format!("/docker/{}/{number}", "a".repeat(80)),
            processes: number,
            read_bytes_per_s: 1e6,
            write_bytes_per_s: 2.5e7,
        };
        let text = users(&(1..=13).map(user).collect::<Vec<_>>(), Some("permission denied for 3 processes"));
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert_eq!(text.lines().count(), 13, "{text}");
        assert!(
            text.contains("/2 (2 processes)") && text.contains("3 more") && text.contains("75.0"),
            "{text}"
        );
        assert!(users(&[], None).contains("no process"));
    }

    const SHOW: DiskView<'static> = DiskView { all: false, many: true, wrong: &[], style: Style::PLAIN };

    #[test]
    fn times_of_single_requests_stand_by_direction_and_what_is_wrong_is_marked() {
        let mut facts = HostFacts::default();
        facts.readings.extend([
            ("disk.md0.on".to_owned(), FactValue::List(vec!["sda".into(), "sdb".into()])),
            ("disk.sda.rotational".to_owned(), FactValue::Flag(true)),
            ("disk.sdb.rotational".to_owned(), FactValue::Flag(true)),
        ]);
        let times = |p50_ms, p99_ms, max_ms| {
            Some(DiskTimes { requests: 400, p50_ms, p90_ms: p99_ms, p99_ms, max_ms })
        };
        let traffic = |requests_per_s, wait_ms, times| DiskTraffic {
            requests_per_s,
            wait_ms: Some(wait_ms),
            times,
            ..DiskTraffic::default()
        };
        let drive = |device: &str, slower: f64| DiskRates {
            device: device.into(),
            read: traffic(1_234_567.0, 1.0, times(0.25, 11.9, 15.0)),
            write: traffic(65_955.0, 50.0 * slower, times(4.8 * slower, 90.0 * slower, 110.0 * slower)),
            flush_times: times(1.0, 2.0, 33_333.0 * slower),
            busy: 1.0,
            ..DiskRates::default()
        };
        let array = DiskRates {
            device: "md0".into(),
            write: traffic(65_955.0, 9_876.0, None),
            busy: 1.0,
            ..DiskRates::default()
        };
        let interval = DiskInterval {
            host: "store-1".into(),
            at_ms: 0,
            seconds: 2.0,
            disks: vec![array, drive("sda", 1.0), drive("sdb", 3.0)],
            times_missing: None,
        };
        let found = |device: &str, open| DiskEpisodes {
            finding: DiskFinding {
                host: "store-1".into(),
                device: device.into(),
                what: DiskTrouble::SlowAmongEquals,
                evidence: None,
                sentence: String::new(),
            },
            since_ms: 0,
            last_ms: 0,
            open,
            times: 1,
            seconds: 2.0,
        };
        let wrong = [found("sdb", true), found("sda", false)];
        let text = table(&layout(&facts), &interval, SHOW);
        let lines: Vec<Vec<&str>> = text.lines().map(|l| l.split_ascii_whitespace().collect()).collect();
        assert_eq!(lines[1], ["read,", "ms", "write,", "ms", "ms"], "{text}");
        assert_eq!(lines[2][6..], ["p50", "p99", "p50", "p99", "max", "queue", "busy"], "{text}");
        // The array hands on: its mean in brackets.
        assert_eq!(lines[3][6..11], ["-", "-", "(9876)", "-", "-"], "{text}");
        assert_eq!(lines[4][1..3], ["1235k", "65955"], "{text}");
        assert_eq!(lines[4][6..11], ["0.25", "11.9", "4.80", "90.0", "33333"], "{text}");
        assert_eq!(lines[5][8..11], ["14.4", "270", "99999"], "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        let style = Style { colour: true, ..Style::default() };
        let marked = table(&layout(&facts), &interval, DiskView { wrong: &wrong, style, ..SHOW });
        assert!(marked.lines().all(|line| line.contains('\u{1b}') == line.contains("sdb")), "{marked}");
    }

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
                times: None,
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
            times_missing: Some("no right".into()),
        };
        let text = table(&layout(&facts), &interval, SHOW);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "store-1");
        assert!(lines[2].starts_with("vg0/a-very-long-name-of-a-volume …"), "{text}");
        assert!(lines[2].ends_with("(60%)") && lines[3].ends_with(" 60%"), "{text}");
        assert!(lines[3].starts_with("  sda  ") && lines[4].starts_with("new  "), "{text}");
        assert_eq!(lines[5], "1 idle");
        assert!(lines.iter().all(|line| line.chars().count() <= 100), "{text}");
    }
}
