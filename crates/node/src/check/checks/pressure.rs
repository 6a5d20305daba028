//! `pressure`: tasks that wait for storage or memory for a large share of five minutes (PSI).

use super::super::kind::{About, Check, Evidence, Lane, Observation, Reading, Row};
use super::super::past::Past;
use super::super::rule::{Moment, Rule, Severity, TWICE, Threshold};
use super::super::settings::Settings;

/// The check.
pub(in super::super) struct Pressure;

const FULL: Threshold = Threshold {
    name: "full_percent",
    default: 20.0,
    unit: "%",
    meaning: "Share of the last five minutes in which all tasks that were not idle waited; as in \
        knowledge/storage/disk-pressure.toml.",
};

static ABOUT: About = About {
    id: "pressure",
    title: "the tasks of the host wait for storage or memory",
    reads: "/proc/pressure/io, /proc/pressure/memory",
    severity: Severity::Warn,
    rule: Rule { strikes: 3, ..TWICE },
    lane: Lane::Local,
    is_on: true,
    thresholds: &[FULL],
    takes_expected: false,
};

/// `full avg10=0.00 avg60=1.25 avg300=0.10 total=7` -> 0.1
fn full(text: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix("full "))?;
    line.split(' ').find_map(|word| word.strip_prefix("avg300="))?.parse().ok()
}

impl Check for Pressure {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn read(&self, reading: &Reading<'_>) -> Result<Evidence, String> {
        // Kernels without PSI have neither; there is nothing to judge.
        let rows = ["io", "memory"].into_iter().filter_map(|what| {
            let text = reading.root.read(&format!("/proc/pressure/{what}")).ok()?;
            Some(Row::new(what).value("percent", full(&text)))
        });
        Ok(rows.collect::<Vec<_>>().into())
    }

    fn judge(&self, row: &Row, _past: &mut Past, _now: Moment, settings: &Settings) -> Observation {
        let Some(percent) = row.get("percent") else { return Observation::unknown(row, "no average") };
        let text = format!("all tasks waited {percent} % of five minutes");
        if percent > settings.number(&FULL) {
            let bad = Observation::bad(row, text);
            return if row.subject == "io" { bad.because("disk-pressure") } else { bad };
        }
        Observation::good(row, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_average_of_five_minutes_counts() {
        let text = "some avg10=9 avg60=9 avg300=9 total=1\nfull avg10=80 avg60=40 avg300=21.50 total=7\n";
        assert_eq!(full(text), Some(21.5));
        assert_eq!((full(""), full("full avg300=x")), (None, None));
    }
}
