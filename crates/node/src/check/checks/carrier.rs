//! `carrier`: a link that flaps, more often than it did.

use super::super::growth::GrowthRule;
use super::super::kind::{About, Check, Evidence, Lane, Observation, Reading, Row};
use super::super::past::Past;
use super::super::rule::{Moment, ONCE, Rule, Severity, Threshold};
use super::super::settings::Settings;
use super::growing;
use super::nics::in_use;

/// The check.
pub(in super::super) struct Carrier;

const CHANGES: Threshold = Threshold {
    name: "changes",
    default: 6.0,
    unit: "changes",
    meaning: "Changes of the carrier within the window that are flapping: three losses of the link, as \
        in knowledge/loss/host-link-flapping.toml.",
};

static ABOUT: About = About {
    id: "carrier",
    title: "a link flaps",
    reads: "carrier changes of devices (rtnetlink)",
    severity: Severity::Fail,
    // Three losses in the window are no single sample. Twelve quiet calls end it: an hour at five minutes.
    rule: Rule { window_s: 10_800, passes: 12, ..ONCE },
    lane: Lane::Local,
    is_on: true,
    thresholds: &[CHANGES],
    takes_expected: false,
};

impl Check for Carrier {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn read(&self, reading: &Reading<'_>) -> Result<Evidence, String> {
        let rows = in_use(reading.root)?.into_iter().filter_map(|link| {
            let changes = f64::from(link.carrier_changes?);
            Some(Row::new(link.name).value("events", changes))
        });
        Ok(rows.collect::<Vec<_>>().into())
    }

    fn judge(&self, row: &Row, past: &mut Past, now: Moment, settings: &Settings) -> Observation {
        let rule = GrowthRule {
            window_s: settings.rule(ABOUT.rule).window_s,
            events_min: settings.number(&CHANGES),
            share_min: 0.0,
        };
        // Time is what passes while a link could flap.
        let row = row.clone().value("traffic", now.up_s as f64);
        growing::judge(&row, past, now, rule, "changes of the carrier").map_or_else(
            |first| first,
            |(growth, seen)| if growth.is_bad { seen.because("host-link-flapping") } else { seen },
        )
    }
}
