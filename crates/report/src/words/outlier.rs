//! A host that stands out among its equals: how much in one line, when in another, and what to read there.

use linerate_model::outlier::{HostOutlier, OutlierUnit};
use linerate_model::units::{counted, date_minute, short};

/// `arc-3 eth0: damaged frames 0.2 %, 0 % on 7 equals`
pub(crate) fn line(seen: &HostOutlier) -> String {
    let device = if seen.device.is_empty() { String::new() } else { format!(" {}", seen.device) };
    format!(
        "{}{device}: {} {}, {} on {}",
        seen.host,
        seen.figure,
        value(seen.value, seen.unit),
        value(seen.usual, seen.unit),
        counted(seen.others, "equal")
    )
}

/// `since 2026-11-21 08:30 UTC, 0 % before`
pub(crate) fn when(seen: &HostOutlier) -> String {
    let time = match (seen.since_ms, seen.until_ms) {
        (Some(since), Some(until)) => format!("{} to {} UTC", date_minute(since), date_minute(until)),
        (Some(since), None) => format!("since {} UTC", date_minute(since)),
        (None, Some(until)) => format!("until {} UTC", date_minute(until)),
        (None, None) => "in the whole range".to_owned(),
    };
    let before = seen.before.filter(|_| seen.since_ms.is_some());
    time + &before.map_or(String::new(), |before| format!(", {} before", value(before, seen.unit)))
}

/// A share of packets may be far below a percent.
fn value(value: f64, unit: OutlierUnit) -> String {
    match unit {
        OutlierUnit::Share if value > 0.0 && value < 1e-5 => format!("{} in a million", plain(value * 1e6)),
        OutlierUnit::Share => format!("{} %", plain(value * 100.0)),
        OutlierUnit::PerHour => format!("{} an hour", plain(value)),
        OutlierUnit::Milliseconds => format!("{} ms", plain(value)),
    }
}

/// A number without an exponent: two digits of a small one, `0.0097`.
fn plain(value: f64) -> String {
    const LEAST: f64 = 1e-4;
    if value <= 0.0 || value >= 0.01 {
        return short(value);
    }
    if value < LEAST {
        return format!("less than {LEAST}");
    }
    let decimals = (-value.log10()).ceil() as usize + 1;
    format!("{value:.decimals$}").trim_end_matches('0').to_owned()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people_have_no_exponent() {
        let share = |share: f64| value(share, OutlierUnit::Share);
        assert_eq!([0.0215, 9.7e-5, 1e-5, 0.0].map(share), ["2.15 %", "0.0097 %", "0.001 %", "0 %"]);
        assert_eq!(
            [9.6e-6, 3e-9, 1e-15].map(share),
            ["9.6 in a million", "0.003 in a million", "less than 0.0001 in a million"]
        );
        assert_eq!(value(0.005, OutlierUnit::Milliseconds), "0.005 ms");
        for exponent in -400..400 {
            let text = share(10_f64.powi(exponent).min(1e12));
            assert!(!text.contains('e') || text.contains("less than"), "{text}");
        }
    }

    #[test]
    fn the_line_has_how_much_and_another_one_when() {
        let mut seen = HostOutlier {
            host: "arc-4".into(),
            device: String::new(),
            key: "snmp.Tcp.RetransSegs".into(),
            figure: "segments sent again".into(),
            unit: OutlierUnit::Share,
            value: 0.0215,
            usual: 9.7e-5,
            others: 7,
            since_ms: Some(1_741_064_400_000),
            until_ms: None,
            before: Some(9.5e-5),
        };
        assert_eq!(line(&seen), "arc-4: segments sent again 2.15 %, 0.0097 % on 7 equals");
        assert_eq!(when(&seen), "since 2025-03-04 05:00 UTC, 0.0095 % before");
        seen.since_ms = None;
        assert_eq!(when(&seen), "in the whole range");
    }
}
