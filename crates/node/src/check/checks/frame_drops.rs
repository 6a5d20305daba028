//! `frame-drops`: frames that the NIC, the driver or the backlog of a CPU dropped for want of a buffer,
//! beside their own past and relative to traffic. `rx_dropped` is not among them: it also counts frames of
//! protocols and VLANs that the host does not have, which harms nothing.

use linerate_sys::procfs;

use super::super::growth::GrowthRule;
use super::super::kind::{About, Check, Evidence, Lane, Observation, Reading, Row};
use super::super::past::Past;
use super::super::rule::{Moment, Severity, TWICE, Threshold};
use super::super::settings::Settings;
use super::growing;
use super::nics::{in_use, stat};

/// The check.
pub(in super::super) struct FrameDrops;

const SHARE: Threshold = Threshold {
    name: "share",
    default: 1e-4,
    unit: "of the frames",
    meaning: "Drops below this share are no trouble: a loss that TCP at the RTT of a cluster repairs \
        without a visible cost.",
};
const EVENTS: Threshold = Threshold {
    name: "events",
    default: 100.0,
    unit: "frames",
    meaning: "Fewer in the window are one burst.",
};
/// Subject of the drops of all CPUs.
const BACKLOG: &str = "backlog";

static ABOUT: About = About {
    id: "frame-drops",
    title: "frames are dropped for want of a buffer, more than before",
    reads: "rx_missed_errors, rx_fifo_errors, rx_over_errors, tx_fifo_errors of devices; /proc/net/softnet_stat",
    severity: Severity::Warn,
    rule: TWICE,
    lane: Lane::Local,
    is_on: true,
    thresholds: &[SHARE, EVENTS],
    takes_expected: false,
};

impl Check for FrameDrops {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn read(&self, reading: &Reading<'_>) -> Result<Evidence, String> {
        let mut rows: Vec<Row> = in_use(reading.root)?
            .into_iter()
            .map(|link| {
                let names = ["rx_missed_errors", "rx_fifo_errors", "rx_over_errors", "tx_fifo_errors"];
                let dropped = names.iter().map(|name| stat(&link, name)).sum::<f64>();
                let frames = stat(&link, "rx_packets") + stat(&link, "tx_packets");
                Row::new(link.name).value("events", dropped).value("traffic", frames)
            })
            .collect();
        let text = reading.root.read("/proc/net/softnet_stat").unwrap_or_default();
        if let Some(sum) = procfs::softnet(&text) {
            let row = Row::new(BACKLOG).value("events", sum.dropped as f64);
            rows.push(row.value("traffic", sum.processed as f64));
        }
        Ok(rows.into())
    }

    fn judge(&self, row: &Row, past: &mut Past, now: Moment, settings: &Settings) -> Observation {
        let rule = GrowthRule {
            window_s: settings.rule(ABOUT.rule).window_s,
            events_min: settings.number(&EVENTS),
            share_min: settings.number(&SHARE),
        };
        let cause = if row.subject == BACKLOG { "backlog-overflow" } else { "rx-ring-small" };
        growing::judge(row, past, now, rule, "frames dropped").map_or_else(
            |first| first,
            |(growth, seen)| if growth.is_bad { seen.because(cause) } else { seen },
        )
    }
}
