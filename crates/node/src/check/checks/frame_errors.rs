//! `frame-errors`: damaged frames that grow beside their own past and relative to traffic.

use super::super::growth::GrowthRule;
use super::super::kind::{About, Check, Evidence, Lane, Observation, Reading, Row};
use super::super::past::Past;
use super::super::rule::{Moment, Severity, TWICE, Threshold};
use super::super::settings::Settings;
use super::growing;
use super::nics::{in_use, stat};

/// The check.
pub(in super::super) struct FrameErrors;

const SHARE: Threshold = Threshold {
    name: "share",
    default: 1e-5,
    unit: "of the frames",
    meaning: "Damaged frames below this share are no trouble; as in knowledge/loss/link-errors.toml.",
};
const EVENTS: Threshold =
    Threshold { name: "events", default: 10.0, unit: "frames", meaning: "Fewer in the window are chance." };

static ABOUT: About = About {
    id: "frame-errors",
    title: "frames arrive damaged, more than before",
    reads: "rx_errors, rx_crc_errors, rx_frame_errors, rx_packets of devices (rtnetlink)",
    severity: Severity::Fail,
    rule: TWICE,
    lane: Lane::Local,
    is_on: true,
    thresholds: &[SHARE, EVENTS],
    takes_expected: false,
};

impl Check for FrameErrors {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn read(&self, reading: &Reading<'_>) -> Result<Evidence, String> {
        let rows = in_use(reading.root)?.into_iter().map(|link| {
            // rx_errors is the sum of some of the others, and drivers fill what they like; fifo and
            // missed ones are drops.
            let damaged = stat(&link, "rx_crc_errors") + stat(&link, "rx_frame_errors");
            let sum = stat(&link, "rx_errors")
                - stat(&link, "rx_fifo_errors")
                - stat(&link, "rx_missed_errors")
                - stat(&link, "rx_over_errors");
            let frames = stat(&link, "rx_packets");
            Row::new(link.name).value("events", damaged.max(sum)).value("traffic", frames)
        });
        Ok(rows.collect::<Vec<_>>().into())
    }

    fn judge(&self, row: &Row, past: &mut Past, now: Moment, settings: &Settings) -> Observation {
        let rule = GrowthRule {
            window_s: settings.rule(ABOUT.rule).window_s,
            events_min: settings.number(&EVENTS),
            share_min: settings.number(&SHARE),
        };
        growing::judge(row, past, now, rule, "frames arrived damaged").map_or_else(
            |first| first,
            |(growth, good)| if growth.is_bad { good.because("link-errors") } else { good },
        )
    }
}
