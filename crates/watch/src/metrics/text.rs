//! The text format of Prometheus, 0.0.4. Figures in, text out.

use std::fmt::{Display, Write as _};
use std::time::Duration;

use linerate_model::suspect::{Direction, Suspect};
use linerate_model::watch::LossAlarm;

use super::{
    ACTIVE, ACTIVE_LOSS, ACTIVE_START, ALARMS, ALARMS_MAX, BUILD, CHANGES, DELIVERED, FAMILIES,
    FIRST_BUCKET_US, Family, FamilyKind, GAPS, HOST_SERIES, HOSTS, HostFigures, LEFT_OUT, RECEIVED,
    RECEIVED_LOST, RTT, SCRAPE, SENT, SENT_LOST, SERIES_MAX, START, UNDELIVERED, UNWRITTEN, WATCHED,
    WatchFigures,
};

type AlarmValue = fn(&LossAlarm) -> f64;
type HostValue = fn(&HostFigures<'_>) -> u64;

/// The text; `took`: for how long it was made, asked at its end.
pub fn text(figures: &WatchFigures<'_>, took: impl FnOnce() -> Duration) -> String {
    let hosts_max = (SERIES_MAX - 3 * ALARMS_MAX - FAMILIES.len()) / HOST_SERIES;
    let shown = &figures.hosts[..figures.hosts.len().min(hosts_max)];
    let open = &figures.open[..figures.open.len().min(ALARMS_MAX)];
    let mut out = Exposition(String::with_capacity(4096 + shown.len() * HOST_SERIES * 60));
    out.one(BUILD, &[("version", figures.version)], 1);
    out.one(START, &[], seconds(figures.start_ms));
    out.one(HOSTS, &[], figures.hosts.len());
    out.one(LEFT_OUT, &[], figures.hosts.len() - shown.len());
    out.one(ALARMS, &[], figures.alarms);
    let of_alarms: [(Family, AlarmValue); 3] =
        [(ACTIVE, |_| 1.0), (ACTIVE_LOSS, LossAlarm::share), (ACTIVE_START, |alarm| seconds(alarm.since_ms))];
    for (family, value) in of_alarms {
        out.head(family);
        for alarm in open {
            out.alarm(family, alarm, value(alarm));
        }
    }
    out.one(DELIVERED, &[], figures.notifications.0);
    out.one(UNDELIVERED, &[], figures.notifications.1);
    out.one(UNWRITTEN, &[], figures.missing_minutes);
    let of_hosts: [(Family, HostValue); 7] = [
        (WATCHED, |host| u64::from(host.is_watched)),
        (GAPS, |host| host.counts.gaps),
        (CHANGES, |host| host.counts.changes),
        (SENT, |host| host.counts.sent.0),
        (SENT_LOST, |host| host.counts.sent.1),
        (RECEIVED, |host| host.counts.received.0),
        (RECEIVED_LOST, |host| host.counts.received.1),
    ];
    for (family, value) in of_hosts {
        out.head(family);
        for host in shown {
            out.line(family.name, "", &[("host", host.name)], value(host));
        }
    }
    out.head(RTT);
    for host in shown {
        out.rtts(host);
    }
    out.one(SCRAPE, &[], took().as_secs_f64());
    out.0
}

struct Exposition(String);

impl Exposition {
    fn head(&mut self, family: Family) {
        let kind = match family.kind {
            FamilyKind::Counter => "counter",
            FamilyKind::Gauge => "gauge",
            FamilyKind::Histogram => "histogram",
        };
        let Family { name, help, .. } = family;
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn one(&mut self, family: Family, labels: &[(&str, &str)], value: impl Display) {
        self.head(family);
        self.line(family.name, "", labels, value);
    }

    fn line(&mut self, name: &str, suffix: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0 += name;
        self.0 += suffix;
        for (at, (label, text)) in labels.iter().enumerate() {
            self.0.push(if at == 0 { '{' } else { ',' });
            let _ = write!(self.0, "{label}=\"{}\"", escaped(text));
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        let _ = writeln!(self.0, " {value}");
    }

    fn alarm(&mut self, family: Family, alarm: &LossAlarm, value: f64) {
        let (kind, suspect) = match &alarm.suspect {
            Suspect::Host(host) => ("host", host.clone()),
            Suspect::Pair(from, to) => ("pair", format!("{from} to {to}")),
            Suspect::Group(group) => ("group", group.clone()),
            _ => ("all", "every path".to_owned()),
        };
        let direction = match alarm.direction {
            Direction::Tx => "send",
            Direction::Rx => "receive",
            Direction::Both => "both",
        };
        self.line(family.name, "", &[("kind", kind), ("suspect", &suspect), ("direction", direction)], value);
    }

    fn rtts(&mut self, host: &HostFigures<'_>) {
        let rtts = &host.counts.rtts;
        let mut below = 0;
        for (at, count) in rtts.buckets.iter().enumerate() {
            below += count;
            let end = ((FIRST_BUCKET_US << at) as f64 / 1e6).to_string();
            self.line(RTT.name, "_bucket", &[("host", host.name), ("le", &end)], below);
        }
        self.line(RTT.name, "_bucket", &[("host", host.name), ("le", "+Inf")], rtts.count);
        self.line(RTT.name, "_sum", &[("host", host.name)], rtts.sum_us as f64 / 1e6);
        self.line(RTT.name, "_count", &[("host", host.name)], rtts.count);
    }
}

fn seconds(unix_ms: u64) -> f64 {
    unix_ms as f64 / 1e3
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
