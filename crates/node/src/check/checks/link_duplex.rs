//! `link-duplex`: a link on which the ends send in turns.

use super::super::kind::{About, Check, Evidence, Lane, Observation, Reading, Row};
use super::super::past::Past;
use super::super::rule::{Moment, Severity, TWICE};
use super::super::settings::Settings;
use super::nics::linked;

/// The check.
pub(in super::super) struct LinkDuplex;

static ABOUT: About = About {
    id: "link-duplex",
    title: "a link has half duplex",
    reads: "/sys/class/net/*/duplex",
    severity: Severity::Fail,
    rule: TWICE,
    lane: Lane::Local,
    is_on: true,
    thresholds: &[],
    takes_expected: false,
};

impl Check for LinkDuplex {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn read(&self, reading: &Reading<'_>) -> Result<Evidence, String> {
        let rows = linked(reading.root)?.into_iter().filter_map(|link| {
            let duplex = reading.root.line(&format!("/sys/class/net/{}/duplex", link.name)).ok()?;
            // Virtual devices and those without a link have `unknown`.
            ["full", "half"].contains(&duplex.as_str()).then(|| Row::new(link.name).word("duplex", duplex))
        });
        Ok(rows.collect::<Vec<_>>().into())
    }

    fn judge(&self, row: &Row, _past: &mut Past, _now: Moment, _settings: &Settings) -> Observation {
        match row.text("duplex") {
            "half" => Observation::bad(row, "half duplex").because("half-duplex"),
            other => Observation::good(row, other),
        }
    }
}
