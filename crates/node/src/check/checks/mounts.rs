//! `mounts`: file systems that do not answer. Each is asked for its size, which a file server has to answer
//! itself; a table of mounts alone is not enough (a stale handle is in it too).

use std::io::ErrorKind;
use std::path::Path;

use linerate_sys::filesystem;
use linerate_sys::procfs;
use linerate_sys::root::Root;

use linerate_facts::holds_data;

use super::super::kind::{About, Check, Evidence, Lane, Observation, Reading, Row};
use super::super::past::Past;
use super::super::rule::{Moment, Severity, TWICE};
use super::super::settings::Settings;

/// The check.
pub(in super::super) struct Mounts;

/// Most file systems that are asked.
const MOUNTS_MAX: usize = 128;

static ABOUT: About = About {
    id: "mounts",
    title: "a file system does not answer",
    reads: "/proc/self/mountinfo; statvfs of each mount point, in a child that may be left",
    severity: Severity::Fail,
    rule: TWICE,
    lane: Lane::Mounts,
    is_on: true,
    thresholds: &[],
    takes_expected: false,
};

impl Check for Mounts {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn items(&self, root: &Root, settings: &Settings) -> Vec<String> {
        let text = root.read("/proc/self/mountinfo").unwrap_or_default();
        let mut points: Vec<String> = Vec::new();
        let mut numbers = Vec::new();
        for mount in procfs::mounts(&text) {
            // One file system mounted ten times (containers) is asked once.
            let is_new = !numbers.contains(&mount.number);
            if holds_data(&mount.kind) && is_new && !settings.leaves(&mount.point) {
                numbers.push(mount.number);
                points.push(mount.point);
            }
        }
        points.truncate(MOUNTS_MAX);
        points
    }

    fn read(&self, reading: &Reading<'_>) -> Result<Evidence, String> {
        let row = Row::new(reading.item);
        let row = match filesystem::free_bytes(Path::new(reading.item)) {
            // A file system of one user's own (FUSE) refuses root, and so answers.
            Err(error) if error.kind() != ErrorKind::PermissionDenied => {
                let words = error.to_string();
                row.word("error", words.split(" (os error").next().unwrap_or_default().to_lowercase())
            }
            _ => row,
        };
        Ok(vec![row].into())
    }

    fn judge(&self, row: &Row, _past: &mut Past, _now: Moment, _settings: &Settings) -> Observation {
        match row.text("error") {
            "" => Observation::good(row, "answers"),
            error => Observation::bad(row, error),
        }
    }

    fn silent(&self, item: &str) -> Observation {
        Observation::bad(&Row::new(item), "does not answer")
    }
}
