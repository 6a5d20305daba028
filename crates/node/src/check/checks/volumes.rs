//! `volumes`: arrays of md and volumes of LVM without a leg.

use linerate_sys::root::Root;

use super::super::kind::{About, Check, Evidence, Lane, Observation, Reading, Row};
use super::super::past::Past;
use super::super::rule::{Moment, Severity, TWICE};
use super::super::settings::Settings;

/// The check.
pub(in super::super) struct Volumes;

/// Most volumes that are asked.
const VOLUMES_MAX: usize = 512;

static ABOUT: About = About {
    id: "volumes",
    title: "an array of md or a volume of LVM has lost a leg",
    reads: "/sys/block/md*/md, status of the device mapper",
    severity: Severity::Warn,
    rule: TWICE,
    lane: Lane::Drives,
    is_on: true,
    thresholds: &[],
    takes_expected: false,
};

impl Check for Volumes {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn items(&self, root: &Root, _settings: &Settings) -> Vec<String> {
        let is_volume = |name: &String| {
            let is_lvm = || {
                name.starts_with("dm-")
                    && root.line(&format!("/sys/block/{name}/dm/uuid")).is_ok_and(|id| id.starts_with("LVM-"))
            };
            // What holds the arrays of a firmware RAID is no array, and always inactive.
            let is_array = || {
                let level = root.line(&format!("/sys/block/{name}/md/level"));
                name.starts_with("md") && level.is_ok_and(|level| level != "container")
            };
            is_array() || is_lvm()
        };
        let names = root.list("/sys/block").unwrap_or_default();
        names.into_iter().filter(is_volume).take(VOLUMES_MAX).collect()
    }

    fn read(&self, reading: &Reading<'_>) -> Result<Evidence, String> {
        let (root, name) = (reading.root, reading.item);
        let (failed, rebuilding) = linerate_facts::legs(root, name);
        let of = |file: &str| root.line(&format!("/sys/block/{name}/{file}")).unwrap_or_default();
        let subject = Some(of("dm/name")).filter(|name| !name.is_empty()).unwrap_or_else(|| name.to_owned());
        let row = Row::new(subject).word("failed", failed.join(" ")).word("filled", rebuilding.join(" "));
        // Counted by md itself, also where no leg has a name any more.
        let degraded = root.number(&format!("/sys/block/{name}/md/degraded")).ok();
        Ok(vec![row.value("degraded", degraded.map(|n| n as f64)).word("state", of("md/array_state"))].into())
    }

    fn judge(&self, row: &Row, _past: &mut Past, _now: Moment, _settings: &Settings) -> Observation {
        let bad = |text: String| Observation::bad(row, text).because("volume-degraded");
        if ["inactive", "broken"].contains(&row.text("state")) {
            return bad(format!("array is {}", row.text("state")));
        }
        if !row.text("failed").is_empty() {
            return bad(format!("without {}", row.text("failed")));
        }
        if !row.text("filled").is_empty() {
            return bad(format!("{} is being filled", row.text("filled")));
        }
        match row.get("degraded") {
            Some(missing) if missing > 0.0 => bad(format!("{missing} legs are missing")),
            _ => Observation::good(row, "whole"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_without_a_leg_is_bad_and_a_container_is_none() {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("md0/md/level", "raid1"),
            ("md0/md/array_state", "clean"),
            ("md0/md/degraded", "0"),
            ("md1/md/level", "raid10"),
            ("md1/md/array_state", "active"),
            ("md1/md/degraded", "1"),
            ("md127/md/level", "container"),
            ("md127/md/array_state", "inactive"),
            ("dm-0/dm/uuid", "CRYPT-LUKS2-x"),
            ("sda/size", "9"),
        ] {
            let path = folder.path().join("sys/block").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let (root, settings) = (Root::recorded(folder.path()), Settings::default());
        let items = Volumes.items(&root, &settings);
        assert_eq!(items, ["md0", "md1"]);
        let judge = |item: &String| {
            let reading = Reading { root: &root, item, settings: &settings, cursor: None };
            let rows = Volumes.read(&reading).unwrap().rows;
            let now = Moment { up_s: 1, unix_s: 1 };
            Volumes.judge(&rows[0], &mut Past::default(), now, &settings).text
        };
        let texts: Vec<String> = items.iter().map(judge).collect();
        assert_eq!(texts, ["whole", "1 legs are missing"]);
    }
}
