//! `kept-set`: settings that `linerate keep` persisted and that are not in force.
//!
//! In: the lines of the file of sysctls that `keep` writes. Other persistent settings (`.link` files, units)
//! are not compared yet.

use linerate_sys::root::{ReadError, Root};

use crate::facts::setting_for;

use super::super::kind::{About, Check, Evidence, Lane, Observation, Reading, Row};
use super::super::past::Past;
use super::super::rule::{Moment, Severity, TWICE};
use super::super::settings::Settings;

/// The check.
pub(in super::super) struct KeptSet;

/// Where `keep` writes sysctls in files of its own.
const FILES: [&str; 2] = ["/etc/sysctl.d/90-linerate.conf", "/etc/sysctl.d/zz-linerate.conf"];

static ABOUT: About = About {
    id: "kept-set",
    title: "a setting that was kept is not in force",
    reads: "/etc/sysctl.d/90-linerate.conf and the sysctls in it",
    severity: Severity::Warn,
    rule: TWICE,
    lane: Lane::Drives,
    is_on: true,
    thresholds: &[],
    takes_expected: false,
};

/// One space between words.
fn plain(text: &str) -> String {
    text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

fn row(root: &Root, name: &str, kept: &str) -> Row {
    let row = Row::new(name).word("kept", plain(kept));
    let key = format!("sysctl.{name}");
    match setting_for(&key).map(|setting| setting.read(root, &key)) {
        Some(Ok(now)) => row.word("now", plain(&now.to_string())),
        Some(Err(error)) => row.word("gap", error.to_string()),
        None => row.word("gap", "no setting of linerate"),
    }
}

impl Check for KeptSet {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn read(&self, reading: &Reading<'_>) -> Result<Evidence, String> {
        let mut text = String::new();
        for file in FILES {
            match reading.root.read(file) {
                // Nothing was kept.
                Err(ReadError::Missing) => {}
                other => text += &other.map_err(|error| error.to_string())?,
            }
        }
        let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
        let pairs = lines.filter_map(|line| line.split_once('='));
        let rows = pairs.map(|(name, kept)| row(reading.root, name.trim(), kept));
        Ok(rows.collect::<Vec<_>>().into())
    }

    fn judge(&self, row: &Row, _past: &mut Past, _now: Moment, _settings: &Settings) -> Observation {
        let (kept, now, gap) = (row.text("kept"), row.text("now"), row.text("gap"));
        if !gap.is_empty() {
            return Observation::unknown(row, gap);
        }
        if kept != now {
            return Observation::bad(row, format!("{now}, and {kept} was kept"));
        }
        Observation::good(row, kept)
    }
}
