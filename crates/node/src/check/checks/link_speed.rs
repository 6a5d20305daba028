//! `link-speed`: a link that came up slower than both of its ends can, or than it was.

use linerate_sys::ethtool;
use linerate_sys::root::ReadError;

use super::super::kind::{About, Check, Evidence, Lane, Observation, Reading, Row};
use super::super::past::Past;
use super::super::rule::{Moment, Severity, TWICE, Threshold};
use super::super::settings::Settings;
use super::nics::{linked, speed};

/// The check.
pub(in super::super) struct LinkSpeed;

const BEST_DAYS: Threshold = Threshold {
    name: "best_days",
    default: 30.0,
    unit: "days",
    meaning: "How long the own best speed is expected after it was last seen; a port that was moved to \
        a slower switch is quiet after that.",
};

static ABOUT: About = About {
    id: "link-speed",
    title: "a link is slower than both of its ends can be, or than it was",
    reads: "/sys/class/net/*/speed, link modes of ethtool: own and those of the peer",
    severity: Severity::Fail,
    rule: TWICE,
    lane: Lane::Local,
    is_on: true,
    thresholds: &[BEST_DAYS],
    takes_expected: false,
};

impl Check for LinkSpeed {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn read(&self, reading: &Reading<'_>) -> Result<Evidence, String> {
        let rows = linked(reading.root)?.into_iter().filter_map(|link| {
            let mbit = reading.root.number(&format!("/sys/class/net/{}/speed", link.name)).ok()?;
            let asked =
                || ethtool::read_link_modes(&link.name).map_err(|error| ReadError::Other(error.to_string()));
            let modes = reading.root.answer(&format!("link-modes/{}", link.name), asked).unwrap_or_default();
            let known = |mbit: u64| (mbit > 0).then_some(mbit as f64);
            // -1 stands for a device that has no speed; so do virtual ones that make one up: they have no
            // modes, and their own best is all that is expected.
            let row = Row::new(link.name.clone()).value("mbit", (mbit > 0).then_some(mbit as f64));
            Some(row.value("both_mbit", known(modes.common_mbit)))
        });
        Ok(rows.filter(|row| row.get("mbit").is_some()).collect::<Vec<_>>().into())
    }

    fn judge(&self, row: &Row, past: &mut Past, now: Moment, settings: &Settings) -> Observation {
        let Some(mbit) = row.get("mbit") else { return Observation::unknown(row, "no speed") };
        let best = past.best(&row.subject, mbit, now, settings.number(&BEST_DAYS));
        let both = row.get("both_mbit").unwrap_or(0.0);
        if mbit < both {
            let text = format!("{} although both ends offer {}", speed(mbit), speed(both));
            return Observation::bad(row, text).because("link-speed-low");
        }
        if mbit < best {
            let text = format!("{}, and it was {}", speed(mbit), speed(best));
            return Observation::bad(row, text).because("link-speed-low");
        }
        Observation::good(row, speed(mbit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(mbit: f64, both: f64) -> Row {
        Row::new("eth0").value("mbit", mbit).value("both_mbit", both)
    }

    #[test]
    fn a_link_is_compared_with_its_peer_and_its_own_past_and_with_no_constant() {
        let (mut past, now) = (Past::default(), Moment { up_s: 10, unix_s: 1_000_000 });
        let mut verdict = |mbit, both| {
            let observation = LinkSpeed.judge(&row(mbit, both), &mut past, now, &Settings::default());
            observation.text
        };
        // A port of 25 Gbit/s at a switch of 10 Gbit/s.
        assert_eq!(verdict(10_000.0, 10_000.0), "10 Gbit/s");
        assert_eq!(verdict(1000.0, 10_000.0), "1 Gbit/s although both ends offer 10 Gbit/s");
        // With optics the peer's modes are unknown.
        assert_eq!(verdict(2500.0, 0.0), "2.5 Gbit/s, and it was 10 Gbit/s");
    }
}
