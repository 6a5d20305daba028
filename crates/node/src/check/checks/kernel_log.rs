//! `kernel-log`: lines of the kernel's log that point to a known cause.

use linerate_sys::kernel_log::{newest, stamped};
use linerate_sys::root::ReadError;

use super::super::kind::{About, Check, Evidence, Lane, Observation, Reading, Row};
use super::super::past::Past;
use super::super::rule::{Moment, ONCE, Rule, Severity};
use super::super::settings::Settings;
use super::log_lines::{self, LINES, Sign};

/// The check.
pub(in super::super) struct KernelLog;

/// Words as `crates/import/src/formats/kernel_log.rs` has them, and some that end the work of a host.
const SIGNS: &[Sign] = &[
    Sign {
        name: "transmit-hang",
        words: &["netdev watchdog", "tx unit hang", "hardware unit hang"],
        cause: Some("nic-transmit-hang"),
    },
    Sign {
        name: "link-down",
        words: &["link is down", "nic link is down"],
        cause: Some("host-link-flapping"),
    },
    Sign { name: "conntrack-full", words: &["table full, dropping packet"], cause: Some("conntrack-full") },
    Sign { name: "tcp-memory", words: &["tcp: out of memory"], cause: Some("tcp-memory-exhausted") },
    Sign {
        name: "medium-error",
        words: &["medium error", "unrecovered read error", "i/o error, dev"],
        cause: Some("drive-failing"),
    },
    Sign {
        name: "drive-timeout",
        words: &["timeout, aborting", "timeout, reset controller", "rejecting i/o to offline device"],
        cause: Some("drive-failing"),
    },
    Sign { name: "array-leg-lost", words: &["disk failure on"], cause: Some("volume-degraded") },
    Sign { name: "read-only", words: &["remounting filesystem read-only"], cause: Some("drive-failing") },
    Sign { name: "server-silent", words: &["not responding, still trying"], cause: None },
    Sign {
        name: "neighbours-full",
        words: &["neighbour table overflow", "neighbor table overflow"],
        cause: None,
    },
    Sign { name: "task-hangs", words: &["blocked for more than", "soft lockup"], cause: None },
    Sign { name: "machine-check", words: &["hardware error", "machine check events logged"], cause: None },
    Sign { name: "pcie-error", words: &["pcie bus error", "aer: "], cause: None },
];

static ABOUT: About = About {
    id: "kernel-log",
    title: "lines of the kernel's log point to a known cause",
    reads: "the newest 128 KiB of the kernel's log (syslog(2)); nothing is cleared",
    severity: Severity::Warn,
    // The lines are counted over the window; twelve quiet calls end it.
    rule: Rule { passes: 12, ..ONCE },
    lane: Lane::Local,
    is_on: true,
    thresholds: &[LINES],
    takes_expected: false,
};

/// Lines behind the stamp of the last call, and the stamp of the newest. The first call only notes the stamp.
fn fresh(text: &str, cursor: Option<f64>) -> (Vec<&str>, Option<f64>) {
    let mut newest = cursor;
    let mut lines = Vec::new();
    for (stamp, message) in text.lines().filter_map(stamped) {
        if cursor.is_some_and(|read| stamp > read) {
            lines.push(message);
        }
        newest = Some(newest.map_or(stamp, |known| known.max(stamp)));
    }
    (lines, newest)
}

impl Check for KernelLog {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn read(&self, reading: &Reading<'_>) -> Result<Evidence, String> {
        let text = reading.root.answer("kernel_log", || newest().map_err(ReadError::from));
        let text = text.map_err(|error| error.to_string())?;
        let (lines, stamp) = fresh(&text, reading.cursor.and_then(|cursor| cursor.parse().ok()));
        if stamp.is_none() && !text.trim().is_empty() {
            return Err("its lines have no time: printk.time=0".to_owned());
        }
        let rows = log_lines::rows(SIGNS, lines.into_iter());
        // An empty log begins at its beginning.
        Ok(Evidence { rows, cursor: Some(stamp.unwrap_or(0.0).to_string()) })
    }

    fn judge(&self, row: &Row, past: &mut Past, now: Moment, settings: &Settings) -> Observation {
        let window_s = settings.rule(ABOUT.rule).window_s;
        log_lines::judge(SIGNS, row, past, now, window_s, settings)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::rule::Verdict;
    use super::*;

    #[test]
    fn only_lines_since_the_last_call_count() {
        let text = "<4>[  1.0] NETDEV WATCHDOG: eth0\n<6>[ 2.5] x\n<3>[ 3.0] sda: Medium Error\nno stamp\n";
        assert_eq!(fresh(text, None), (vec![], Some(3.0)));
        assert_eq!(fresh(text, Some(1.0)).0.len(), 2);
        assert_eq!(fresh(text, Some(9.0)), (vec![], Some(9.0)));
    }

    #[test]
    fn several_lines_of_one_kind_are_bad_and_the_first_call_is_not() {
        let (mut past, settings) = (Past::default(), Settings::default());
        let mut call = |up_s: u64, hangs: usize| {
            let rows = log_lines::rows(
                SIGNS,
                std::iter::repeat_n("NETDEV WATCHDOG: eth0 (x): transmit queue 0", hangs),
            );
            let now = Moment { up_s, unix_s: 0 };
            let judged: Vec<Observation> =
                rows.iter().map(|row| KernelLog.judge(row, &mut past, now, &settings)).collect();
            assert!(judged[1..].iter().all(|other| other.verdict == Verdict::Good));
            judged.into_iter().next().unwrap()
        };
        assert_eq!(call(100, 9).verdict, Verdict::Good, "first call");
        assert_eq!(call(400, 2).verdict, Verdict::Good, "two are an incident");
        let bad = call(700, 1);
        assert_eq!(
            (bad.verdict, bad.cause),
            (Verdict::Bad, Some("nic-transmit-hang")),
            "three within the hour"
        );
        assert_eq!(call(1000, 0).verdict, Verdict::Good);
    }
}
