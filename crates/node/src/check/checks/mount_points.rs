//! `mount-points`: folders on which a file system should be and none is, so that jobs write into the folder
//! below; and file systems that the kernel made read-only.

use std::collections::BTreeMap;

use linerate_sys::procfs::{self, Mount};

use super::super::kind::{About, Check, Evidence, Lane, Observation, Reading, Row};
use super::super::past::Past;
use super::super::rule::{Moment, Severity, TWICE};
use super::super::settings::Settings;

/// The check.
pub(in super::super) struct MountPoints;

/// Options of entries that are mounted on demand, or by hand.
const LATER: [&str; 3] = ["noauto", "x-systemd.automount", "user"];

static ABOUT: About = About {
    id: "mount-points",
    title: "a mount point of fstab is empty, or its file system became read-only",
    reads: "/etc/fstab, /proc/self/mountinfo",
    severity: Severity::Fail,
    rule: TWICE,
    lane: Lane::Drives,
    is_on: true,
    thresholds: &[],
    takes_expected: true,
};

/// Mount points of fstab with whether they are meant to be written.
fn wanted(fstab: &str) -> BTreeMap<String, bool> {
    let lines = fstab.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .filter_map(|line| {
            let mut words = line.split_ascii_whitespace().skip(1);
            let (point, kind) = (words.next()?, words.next()?);
            let options: Vec<&str> = words.next().unwrap_or("defaults").split(',').collect();
            let is_later = options.iter().any(|option| LATER.contains(option));
            (point.starts_with('/') && kind != "swap" && !is_later)
                .then(|| (point.replace("\\040", " "), !options.contains(&"ro")))
        })
        .map(|(point, is_written)| {
            let plain = point.trim_end_matches('/');
            (if plain.is_empty() { "/".to_owned() } else { plain.to_owned() }, is_written)
        })
        .collect()
}

fn is_read_only(mount: &Mount) -> bool {
    [&mount.options, &mount.super_options].iter().any(|options| options.split(',').any(|o| o == "ro"))
}

impl Check for MountPoints {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn read(&self, reading: &Reading<'_>) -> Result<Evidence, String> {
        let mut points = wanted(&reading.root.read("/etc/fstab").unwrap_or_default());
        for point in &reading.settings.expect {
            // Whether it is meant to be written is not known.
            points.entry(point.clone()).or_insert(false);
        }
        let text = reading.root.read("/proc/self/mountinfo").map_err(|error| error.to_string())?;
        let mounts = procfs::mounts(&text);
        let rows = points.into_iter().map(|(point, is_written)| {
            // The last one at a folder is the one that is seen.
            let mount = mounts.iter().rev().find(|mount| mount.point == point);
            let is_lowered = mount.is_some_and(|mount| is_written && is_read_only(mount));
            Row::new(point)
                .value("mounted", f64::from(u8::from(mount.is_some())))
                .value("lowered", f64::from(u8::from(is_lowered)))
        });
        Ok(rows.collect::<Vec<_>>().into())
    }

    fn judge(&self, row: &Row, _past: &mut Past, _now: Moment, _settings: &Settings) -> Observation {
        if row.get("mounted") != Some(1.0) {
            return Observation::bad(row, "nothing is mounted here").because("mount-missing");
        }
        if row.get("lowered") == Some(1.0) {
            return Observation::bad(row, "read-only, and fstab has it writable").because("drive-failing");
        }
        Observation::good(row, "mounted")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_of_fstab_are_expected() {
        let fstab = "# x\nUUID=1 / ext4 errors=remount-ro 0 1\nnas:/s /scratch/ nfs rw,_netdev\n\
                     /dev/sdb1 none swap sw\n/dev/cdrom /media iso9660 ro,noauto\nx /ro\\040dir ext4 ro\n\
                     nas:/h /home nfs x-systemd.automount\n/dev/sdc\n";
        let points: Vec<(String, bool)> = wanted(fstab).into_iter().collect();
        let expected = [("/", true), ("/ro dir", false), ("/scratch", true)];
        assert_eq!(points, expected.map(|(point, written)| (point.to_owned(), written)));
    }

    #[test]
    fn an_empty_mount_point_and_one_that_became_read_only_are_bad() {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("etc/fstab", "a / ext4 defaults\nb /data xfs defaults\nn:/s /scratch nfs defaults\n"),
            (
                "proc/self/mountinfo",
                "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 8:2 / /data rw - xfs /dev/sdb ro\n",
            ),
        ] {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = linerate_sys::root::Root::recorded(folder.path());
        let settings = Settings { expect: vec!["/gone".into()], ..Settings::default() };
        let reading = Reading { root: &root, item: "", settings: &settings, cursor: None };
        let now = Moment { up_s: 1, unix_s: 1 };
        let rows = MountPoints.read(&reading).unwrap().rows;
        let seen: Vec<String> = rows
            .iter()
            .map(|row| {
                format!(
                    "{} {}",
                    row.subject,
                    MountPoints.judge(row, &mut Past::default(), now, &settings).text
                )
            })
            .collect();
        let missing = "nothing is mounted here";
        let wanted = [
            "/ mounted".to_owned(),
            "/data read-only, and fstab has it writable".to_owned(),
            format!("/gone {missing}"),
            format!("/scratch {missing}"),
        ];
        assert_eq!(seen, wanted);
    }
}
