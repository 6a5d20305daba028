//! The text format of Prometheus, 0.0.4. Figures in, text out.

use std::fmt::{Display, Write as _};
use std::time::Duration;

use linerate_model::slow::{SlowAlarm, SlowOf};
use linerate_model::suspect::{Direction, Suspect};
use linerate_model::watch::LossAlarm;

use super::{
    ACTIVE, ACTIVE_LOSS, ACTIVE_START, ALARMS, ALARMS_MAX, BUILD, CHANGES, DELIVERED, DOWNLOAD_RATE,
    DOWNLOADS, DOWNLOADS_FAILED, DOWNLOADS_MAX, DownloadFigures, FAMILIES, FIRST_BUCKET_US, Family,
    FamilyKind, GAPS, HOST_SERIES, HOSTS, HostFigures, LEFT_OUT, LEFT_OUT_DOWNLOADS, RECEIVED, RECEIVED_LOST,
    RTT, SCRAPE, SENT, SENT_LOST, SERIES_MAX, SLOW, SLOW_START, START, UNDELIVERED, UNWRITTEN, WATCHED,
    WatchFigures,
};

type AlarmValue = fn(&LossAlarm) -> f64;
type SlowValue = fn(&SlowAlarm) -> f64;
type DownloadValue = fn(&DownloadFigures<'_>) -> f64;
type HostValue = fn(&HostFigures<'_>) -> u64;

/// Alarms of what is slow, one for each name: two tables of downloads may have the same front end.
fn distinct<'a>(alarms: &'a [&'a SlowAlarm]) -> Vec<&'a SlowAlarm> {
    let mut found: Vec<&SlowAlarm> = Vec::new();
    for alarm in alarms {
        if found.len() < ALARMS_MAX && found.iter().all(|known| known.of != alarm.of) {
            found.push(alarm);
        }
    }
    found
}

/// The text; `took`: for how long it was made, asked at its end.
pub fn text(figures: &WatchFigures<'_>, took: impl FnOnce() -> Duration) -> String {
    let open = &figures.open[..figures.open.len().min(ALARMS_MAX)];
    let slow = distinct(&figures.slow);
    let downloads = &figures.downloads[..figures.downloads.len().min(DOWNLOADS_MAX)];
    let others = 3 * open.len() + 2 * slow.len() + 3 * downloads.len() + FAMILIES.len();
    let hosts_max = (SERIES_MAX - others) / HOST_SERIES;
    let shown = &figures.hosts[..figures.hosts.len().min(hosts_max)];
    let mut out = Exposition(String::with_capacity(4096 + shown.len() * HOST_SERIES * 60));
    out.one(BUILD, &[("version", figures.version)], 1);
    out.one(START, &[], seconds(figures.start_ms));
    out.one(HOSTS, &[], figures.hosts.len());
    out.one(LEFT_OUT, &[], figures.hosts.len() - shown.len());
    out.one(LEFT_OUT_DOWNLOADS, &[], figures.downloads.len() - downloads.len());
    out.one(ALARMS, &[], figures.alarms);
    let of_alarms: [(Family, AlarmValue); 3] =
        [(ACTIVE, |_| 1.0), (ACTIVE_LOSS, LossAlarm::share), (ACTIVE_START, |alarm| seconds(alarm.since_ms))];
    for (family, value) in of_alarms {
        out.head(family);
        for alarm in open {
            out.alarm(family, alarm, value(alarm));
        }
    }
    let of_slow: [(Family, SlowValue); 2] =
        [(SLOW, |alarm| alarm.times().unwrap_or(0.0)), (SLOW_START, |alarm| seconds(alarm.since_ms))];
    for (family, value) in of_slow {
        out.head(family);
        for alarm in &slow {
            out.slow(family, alarm, value(alarm));
        }
    }
    let of_downloads: [(Family, DownloadValue); 3] = [
        (DOWNLOAD_RATE, |one| one.rate_bps / 8.0),
        (DOWNLOADS, |one| one.downloads as f64),
        (DOWNLOADS_FAILED, |one| one.failed as f64),
    ];
    for (family, value) in of_downloads {
        out.head(family);
        for one in downloads {
            let path = one.path;
            let labels = [("host", &*path.host), ("url", &*path.url), ("front_end", &*path.via)];
            out.line(family.name, "", &labels, value(one));
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

    fn slow(&mut self, family: Family, alarm: &SlowAlarm, value: f64) {
        let (kind, suspect) = match &alarm.of {
            SlowOf::Rtt(suspect) => ("rtt", named(suspect).1),
            SlowOf::Download(of) => {
                let parts = [("", &of.url), ("through ", &of.via), ("from ", &of.host)];
                let parts = parts.iter().filter_map(|(word, of)| Some(format!("{word}{}", (*of).as_ref()?)));
                ("download", parts.collect::<Vec<String>>().join(" "))
            }
        };
        self.line(family.name, "", &[("kind", kind), ("suspect", &suspect)], value);
    }

    fn alarm(&mut self, family: Family, alarm: &LossAlarm, value: f64) {
        let (kind, suspect) = named(&alarm.suspect);
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

/// Kind and name of what an alarm is of.
fn named(suspect: &Suspect) -> (&'static str, String) {
    match suspect {
        Suspect::Host(host) => ("host", host.clone()),
        Suspect::Pair(from, to) => ("pair", format!("{from} to {to}")),
        Suspect::Group(group) => ("group", group.clone()),
        _ => ("all", "every path".to_owned()),
    }
}

fn seconds(unix_ms: u64) -> f64 {
    unix_ms as f64 / 1e3
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
