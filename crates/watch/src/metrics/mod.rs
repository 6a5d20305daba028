//! What a watch shows to Prometheus. One table of families, from which the text, the alert rules with their
//! tests, and the dashboard are made: a name stands here and nowhere else.

mod dashboard;
mod rules;
mod targets;
mod text;

pub use dashboard::dashboard;
pub use rules::{RULES_FILE, rule_tests, rules};
pub use targets::targets;
pub use text::text;

use linerate_model::download::DownloadPath;
use linerate_model::slow::SlowAlarm;
use linerate_model::watch::LossAlarm;

/// Kind of a family, as the text format names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FamilyKind {
    Counter,
    Gauge,
    Histogram,
}

/// A family of series.
#[derive(Debug, Clone, Copy)]
struct Family {
    name: &'static str,
    kind: FamilyKind,
    help: &'static str,
}

const fn counter(name: &'static str, help: &'static str) -> Family {
    Family { name, kind: FamilyKind::Counter, help }
}

const fn gauge(name: &'static str, help: &'static str) -> Family {
    Family { name, kind: FamilyKind::Gauge, help }
}

const BUILD: Family = gauge("linerate_build_info", "Version of the program; always 1.");
const START: Family = gauge("linerate_watch_start_time_seconds", "Begin of the watch, Unix time.");
const HOSTS: Family = gauge("linerate_watch_hosts", "Hosts of the watch.");
const LEFT_OUT: Family =
    gauge("linerate_watch_left_out_hosts", "Hosts without series here: the cap is reached.");
const LEFT_OUT_DOWNLOADS: Family =
    gauge("linerate_watch_left_out_downloads", "Paths of downloads without series here: the cap is reached.");
const ALARMS: Family = counter("linerate_watch_alarms_total", "Alarms since the begin of the watch.");
const ACTIVE: Family = gauge("linerate_alarm_active", "An alarm that is not over; always 1.");
const ACTIVE_LOSS: Family =
    gauge("linerate_alarm_loss_ratio", "Share of probes that an alarm has lost, 0 to 1.");
const ACTIVE_START: Family = gauge("linerate_alarm_start_time_seconds", "First loss of an alarm, Unix time.");
const SLOW: Family = gauge(
    "linerate_slow_alarm_ratio",
    "How many times slower than usual what an alarm is of has become; 0 where nothing arrives.",
);
const SLOW_START: Family =
    gauge("linerate_slow_alarm_start_time_seconds", "When an alarm of what is slow began, Unix time.");
const DOWNLOAD_RATE: Family = gauge(
    "linerate_download_bytes_per_second",
    "Median rate of the bodies of the last round of downloads; 0 where all failed.",
);
const DOWNLOADS: Family =
    counter("linerate_downloads_total", "Downloads whose body arrived since the begin of the watch.");
const DOWNLOADS_FAILED: Family =
    counter("linerate_downloads_failed_total", "Downloads that failed since the begin of the watch.");
const DELIVERED: Family = counter("linerate_notifications_total", "Notifications that were delivered.");
const UNDELIVERED: Family =
    counter("linerate_notifications_failed_total", "Attempts to deliver a notification that failed.");
const UNWRITTEN: Family =
    counter("linerate_history_writes_failed_total", "Minutes that could not be written into the history.");
const SCRAPE: Family = gauge("linerate_scrape_duration_seconds", "Time for making this text.");
const WATCHED: Family = gauge("linerate_host_watched", "Whether there is a session with the host, 0 or 1.");
const GAPS: Family =
    counter("linerate_host_gaps_total", "Sessions with the host that ended before the watch.");
const CHANGES: Family = counter("linerate_host_setting_changes_total", "Settings of the host that changed.");
const SENT: Family = counter("linerate_host_send_probes_total", "Probes and answers that the host sent.");
const SENT_LOST: Family = counter(
    "linerate_host_send_probes_lost_total",
    "Probes and answers that the host sent and no partner received.",
);
const RECEIVED: Family =
    counter("linerate_host_receive_probes_total", "Probes and answers that were sent to the host.");
const RECEIVED_LOST: Family = counter(
    "linerate_host_receive_probes_lost_total",
    "Probes and answers that were sent to the host and did not arrive.",
);
const RTT: Family = Family {
    name: "linerate_host_rtt_seconds",
    kind: FamilyKind::Histogram,
    help: "RTT of the host's probes by the kernel's time stamps, without the time in which the partner held them.",
};

/// All families, in the order of the text.
const FAMILIES: [Family; 26] = [
    BUILD,
    START,
    HOSTS,
    LEFT_OUT,
    LEFT_OUT_DOWNLOADS,
    ALARMS,
    ACTIVE,
    ACTIVE_LOSS,
    ACTIVE_START,
    SLOW,
    SLOW_START,
    DOWNLOAD_RATE,
    DOWNLOADS,
    DOWNLOADS_FAILED,
    DELIVERED,
    UNDELIVERED,
    UNWRITTEN,
    WATCHED,
    GAPS,
    CHANGES,
    SENT,
    SENT_LOST,
    RECEIVED,
    RECEIVED_LOST,
    RTT,
    SCRAPE,
];

/// Series at most: what a Prometheus server takes from one target without complaint (its own examples limit
/// a scrape to this).
pub const SERIES_MAX: usize = 50_000;
/// Series of a host: seven, and the histogram.
pub const HOST_SERIES: usize = 7 + BUCKETS + 3;
/// Alarms that are shown at most; each has three series, one of what is slow two.
const ALARMS_MAX: usize = 500;
/// Paths of downloads that are shown at most; each has three series.
const DOWNLOADS_MAX: usize = 500;

/// Buckets of RTTs: the first ends at 50 us, each at twice the one before, the last at 102 ms.
const BUCKETS: usize = 12;
const FIRST_BUCKET_US: u64 = 50;

/// RTTs of a host since the begin of the watch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RttCounts {
    buckets: [u64; BUCKETS],
    count: u64,
    sum_us: u64,
}

impl RttCounts {
    fn learn(&mut self, rtts_us: &[u32]) {
        for rtt_us in rtts_us.iter().map(|rtt| u64::from(*rtt)) {
            self.count += 1;
            self.sum_us = self.sum_us.saturating_add(rtt_us);
            if let Some(at) = (0..BUCKETS).find(|at| rtt_us <= FIRST_BUCKET_US << at) {
                self.buckets[at] += 1;
            }
        }
    }
}

/// What is counted of a host since the begin of the watch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HostCounts {
    /// Sessions that ended.
    pub gaps: u64,
    /// Settings that changed.
    pub changes: u64,
    /// Probes and answers of it, and those that did not arrive.
    pub sent: (u64, u64),
    /// Those to it, and those that did not arrive.
    pub received: (u64, u64),
    /// RTTs of its probes.
    pub rtts: RttCounts,
}

impl HostCounts {
    /// Learns of probes and answers that the host sent.
    pub fn send(&mut self, sent: u64, lost: u64) {
        self.sent = (self.sent.0.saturating_add(sent), self.sent.1.saturating_add(lost));
    }

    /// Learns of those to it, and of RTTs of its own, microseconds.
    pub fn receive(&mut self, sent: u64, lost: u64, rtts_us: &[u32]) {
        self.received = (self.received.0.saturating_add(sent), self.received.1.saturating_add(lost));
        self.rtts.learn(rtts_us);
    }
}

/// A host with its counts.
#[derive(Debug, Clone, Copy)]
pub struct HostFigures<'a> {
    /// Name.
    pub name: &'a str,
    /// Whether there is a session.
    pub is_watched: bool,
    /// Its counts.
    pub counts: &'a HostCounts,
}

/// A path of downloads with its counts.
#[derive(Debug, Clone, Copy)]
pub struct DownloadFigures<'a> {
    /// Which.
    pub path: &'a DownloadPath,
    /// Median of the last round, bit/s.
    pub rate_bps: f64,
    /// Downloads whose body arrived.
    pub downloads: u64,
    /// Those that failed.
    pub failed: u64,
}

/// What a watch shows.
#[derive(Debug, Clone)]
pub struct WatchFigures<'a> {
    /// Version of the program.
    pub version: &'a str,
    /// Begin of the watch, Unix milliseconds.
    pub start_ms: u64,
    /// Hosts in the order of the inventory.
    pub hosts: Vec<HostFigures<'a>>,
    /// Alarms that are not over.
    pub open: Vec<&'a LossAlarm>,
    /// Of what is slow.
    pub slow: Vec<&'a SlowAlarm>,
    /// Downloads of the inventory.
    pub downloads: Vec<DownloadFigures<'a>>,
    /// Alarms so far.
    pub alarms: u64,
    /// Notifications that were delivered, and attempts that failed.
    pub notifications: (u64, u64),
    /// Minutes that are not in the history.
    pub missing_minutes: u64,
}
