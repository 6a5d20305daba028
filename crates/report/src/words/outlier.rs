//! A host that stands out among its equals, in one line, and what to read there.

use linerate_model::outlier::{HostOutlier, OutlierUnit};
use linerate_model::units::{counted, date_minute, short};

/// `arc-3 eth0: damaged frames 0.2 %, 0 on 7 equals; since 2026-11-21 08:30 UTC, 0 before`
pub(crate) fn line(seen: &HostOutlier) -> String {
    let device = if seen.device.is_empty() { String::new() } else { format!(" {}", seen.device) };
    let since = match (seen.since_ms, seen.until_ms) {
        (Some(since), Some(until)) => format!("; {} to {} UTC", date_minute(since), date_minute(until)),
        (Some(since), None) => format!("; since {} UTC", date_minute(since)),
        (None, Some(until)) => format!("; until {} UTC", date_minute(until)),
        (None, None) => "; all the time that was read".to_owned(),
    };
    let before = seen.before.filter(|_| seen.since_ms.is_some());
    let before = before.map_or(String::new(), |before| format!(", {} before", value(before, seen.unit)));
    format!(
        "{}{device}: {} {}, {} on {}{since}{before}",
        seen.host,
        seen.figure,
        value(seen.value, seen.unit),
        value(seen.usual, seen.unit),
        counted(seen.others, "equal")
    )
}

/// A share of packets may be far below a percent.
fn value(value: f64, unit: OutlierUnit) -> String {
    match unit {
        OutlierUnit::Share if value > 0.0 && value < 1e-5 => format!("{} in a million", short(value * 1e6)),
        OutlierUnit::Share => format!("{} %", short(value * 100.0)),
        OutlierUnit::PerHour => format!("{} an hour", short(value)),
        OutlierUnit::Milliseconds => format!("{} ms", short(value)),
    }
}

/// Beginnings of keys with the command that shows more of them.
const CHECKS: [(&str, &str); 9] = [
    ("snmp.Udp.", "nstat -az | grep Udp; ss -uamn"),
    ("nic.", "ethtool -S NIC; ip -s -s link show dev NIC"),
    ("softnet.", "cat /proc/net/softnet_stat; mpstat -P ALL 1 5"),
    ("conntrack.", "cat /proc/net/stat/nf_conntrack; sysctl net.netfilter.nf_conntrack_max"),
    ("disk.", "iostat -x 1 5; smartctl -a /dev/DRIVE"),
    ("pressure.", "head /proc/pressure/*; mpstat -P ALL 1 5"),
    ("cpu.", "mpstat -P ALL 1 5; cat /proc/interrupts"),
    ("nfs.", "nfsstat -rc; nfsstat -m"),
    ("", "nstat -az; ss -ti"),
];

/// What to run on the host.
pub(crate) fn check(seen: &HostOutlier) -> String {
    let command =
        CHECKS.iter().find(|(head, _)| seen.key.starts_with(head)).map_or("", |(_, command)| command);
    // A name that would mean something else to a shell stays a word to fill in.
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:@".contains(c);
    if seen.device.is_empty() || !seen.device.chars().all(plain) || seen.device.starts_with('-') {
        return command.to_owned();
    }
    command.replace("NIC", &seen.device).replace("DRIVE", &seen.device)
}
