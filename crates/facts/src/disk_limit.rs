//! Facts `disk_limit.*`: what cgroups allow of a block device, and how long tasks wait for storage.
//!
//! In: `io.max` of version 2, `blkio.throttle.*` of version 1, pressure files. Out: the limits with the group
//! that has them. Pressure changes by itself: it is the share of the last minute. It never walks more groups
//! than [`GROUPS_MAX`]; the rest is a gap.

use std::collections::BTreeMap;

use linerate_model::fact::{FactDecl, FactValue};
use linerate_sys::root::Root;

use super::fact::Fact;
use super::readings::{Readings, fact};
use super::view::View;

/// The topic.
pub(super) struct DiskLimits;

/// Most groups that are read: a host with a thousand containers has a few thousand.
const GROUPS_MAX: usize = 8192;
/// Most groups that are named for a device.
const NAMED_MAX: usize = 32;
/// Where version 2 may be mounted, alone or beside version 1.
const UNIFIED: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
/// The same for the controller of version 1.
const BLKIO: [&str; 2] = ["/sys/fs/cgroup/blkio", "/sys/fs/cgroup/blkio,cpuacct"];
/// Files of version 1 with a limit, and the words of version 2 for it.
const THROTTLES: [(&str, &str); 4] = [
    ("blkio.throttle.read_bps_device", "rbps"),
    ("blkio.throttle.write_bps_device", "wbps"),
    ("blkio.throttle.read_iops_device", "riops"),
    ("blkio.throttle.write_iops_device", "wiops"),
];
/// In which minute a limit counts as waited for.
const AVERAGE: &str = "avg60";

impl Fact for DiskLimits {
    fn declarations(&self) -> Vec<FactDecl> {
        vec![
            fact(
                "disk_limit.*.cgroups",
                "list",
                "Groups whose requests to the device are limited, each with its limits (rbps, wbps: bytes/s; riops, wiops: requests/s).",
            ),
            fact(
                "disk_limit.*.waiting_percent",
                "percent",
                "Share of the last minute in which a task of such a group waited for storage, of the group that waited most. Version 2 alone.",
            ),
            fact(
                "disk_limit.pressure.some_percent",
                "percent",
                "Share of the last minute in which some task of the host waited for storage (PSI).",
            ),
            fact(
                "disk_limit.pressure.full_percent",
                "percent",
                "Share of the last minute in which all tasks that were not idle waited for storage (PSI).",
            ),
        ]
    }

    fn of_namespace(&self) -> bool {
        false
    }

    fn read(&self, view: &View<'_>, out: &mut Readings) {
        let root = view.root;
        match root.read("/proc/pressure/io") {
            Ok(text) => {
                for (line, fact) in [("some", "some_percent"), ("full", "full_percent")] {
                    if let Some(share) = pressure(&text, line) {
                        out.put(format!("disk_limit.pressure.{fact}"), FactValue::Float(share));
                    }
                }
            }
            Err(error) => out.gap("disk_limit.pressure.*", &error),
        }
        let devices = numbers(root);
        let mut limits = Limits::default();
        for mount in UNIFIED {
            // In the root of version 2 itself there is no io.max.
            if root.read(&format!("{mount}/cgroup.controllers")).is_ok_and(|text| text.contains("io")) {
                limits.walk(root, mount, unified);
            }
        }
        for mount in BLKIO {
            limits.walk(root, mount, throttled);
        }
        if limits.is_cut {
            out.gap("disk_limit.*.cgroups", &format!("{GROUPS_MAX} groups are read, and there are more"));
        }
        for (number, groups) in limits.found {
            let Some(name) = devices.get(&number) else { continue };
            let key = format!("disk_limit.{}", name.replace('.', "/"));
            let waiting = groups.iter().filter_map(|group| group.waiting).max_by(f64::total_cmp);
            let words =
                groups.into_iter().take(NAMED_MAX).map(|group| format!("{} {}", group.name, group.limits));
            out.put(format!("{key}.cgroups"), FactValue::List(words.collect()));
            if let Some(waiting) = waiting {
                out.put(format!("{key}.waiting_percent"), FactValue::Float(waiting));
            }
        }
    }
}

/// `some avg10=0.00 avg60=1.25 avg300=0.10 total=7` -> 1.25
fn pressure(text: &str, line: &str) -> Option<f64> {
    let line = text.lines().find_map(|l| l.strip_prefix(line)?.strip_prefix(' '))?;
    let value =
        line.split_ascii_whitespace().find_map(|word| word.strip_prefix(AVERAGE)?.strip_prefix('='))?;
    value.parse().ok().filter(|share: &f64| share.is_finite())
}

/// Names of devices and partitions by their numbers.
fn numbers(root: &Root) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for name in root.list("/sys/block").unwrap_or_default() {
        if let Ok(number) = root.line(&format!("/sys/block/{name}/dev")) {
            found.insert(number, name);
        }
    }
    found
}

/// A group with a limit.
struct Limited {
    name: String,
    limits: String,
    waiting: Option<f64>,
}

/// Limits by the number of the device.
#[derive(Default)]
struct Limits {
    found: BTreeMap<String, Vec<Limited>>,
    groups: usize,
    is_cut: bool,
}

/// What a group has of devices: number and limits in words.
type LimitReader = fn(&Root, &str) -> Vec<(String, String)>;

impl Limits {
    fn walk(&mut self, root: &Root, mount: &str, read: LimitReader) {
        let mut folders = vec![String::new()];
        while let Some(group) = folders.pop() {
            let folder = format!("{mount}{group}");
            let Ok(names) = root.list(&folder) else { continue };
            self.groups += 1;
            if self.groups > GROUPS_MAX {
                self.is_cut = true;
                return;
            }
            // Files of controllers have a dot behind the name of the controller, and so may groups; only a
            // folder has `cgroup.procs`.
            let is_group = |name: &&String| !is_file(name);
            folders.extend(names.iter().filter(is_group).map(|name| format!("{group}/{name}")));
            for (number, limits) in read(root, &folder) {
                let waiting = root.read(&format!("{folder}/io.pressure")).ok();
                let waiting = waiting.and_then(|text| pressure(&text, "some"));
                let name = if group.is_empty() { "/".to_owned() } else { group.clone() };
                self.found.entry(number).or_default().push(Limited { name, limits, waiting });
            }
        }
    }
}

/// Whether a name in the folder of a group is that of a file of the kernel.
fn is_file(name: &str) -> bool {
    const CONTROLLERS: [&str; 12] = [
        "cgroup", "io", "memory", "cpu", "cpuset", "pids", "hugetlb", "rdma", "misc", "irq", "blkio", "dmem",
    ];
    let plain = ["tasks", "notify_on_release", "release_agent"];
    let slices = [".slice", ".scope", ".service", ".mount", ".socket"];
    plain.contains(&name)
        || (name.split_once('.').is_some_and(|(head, _)| CONTROLLERS.contains(&head))
            && !slices.iter().any(|end| name.ends_with(end)))
}

/// `8:16 rbps=2097152 wbps=max riops=max wiops=120` -> (`8:16`, `rbps=2097152 wiops=120`)
fn unified(root: &Root, folder: &str) -> Vec<(String, String)> {
    let Ok(text) = root.read(&format!("{folder}/io.max")) else { return Vec::new() };
    let line = |line: &str| {
        let (number, limits) = line.split_once(' ')?;
        let limits: Vec<&str> = limits.split_ascii_whitespace().filter(|l| !l.ends_with("=max")).collect();
        (!limits.is_empty()).then(|| (number.to_owned(), limits.join(" ")))
    };
    text.lines().filter_map(line).collect()
}

/// Version 1: a file for each limit, `8:16 2097152` a line.
fn throttled(root: &Root, folder: &str) -> Vec<(String, String)> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (file, word) in THROTTLES {
        let text = root.read(&format!("{folder}/{file}")).unwrap_or_default();
        for (number, limit) in text.lines().filter_map(|line| line.trim().split_once(' ')) {
            found.entry(number.to_owned()).or_default().push(format!("{word}={limit}"));
        }
    }
    found.into_iter().map(|(number, limits)| (number, limits.join(" "))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(files: &[(&str, &str)]) -> BTreeMap<String, String> {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = Root::recorded(folder.path());
        let mut out = Readings::default();
        DiskLimits.read(&View::new(&root, None, &[]), &mut out);
        out.finish().readings.iter().map(|(k, v)| (k.clone(), v.to_string())).collect()
    }

    #[test]
    fn limits_of_both_versions_are_read_with_the_group_that_has_them() {
        let seen = read(&[
            (
                "proc/pressure/io",
                "some avg10=0.00 avg60=31.50 avg300=0.1 total=9\nfull avg10=0 avg60=4.00 avg300=0 total=1\n",
            ),
            ("sys/block/sda/dev", "8:0\n"),
            ("sys/block/sdb/dev", "8:16\n"),
            ("sys/fs/cgroup/cgroup.controllers", "cpu io memory\n"),
            ("sys/fs/cgroup/system.slice/cgroup.procs", ""),
            (
                "sys/fs/cgroup/system.slice/db.service/io.max",
                "8:16 rbps=2097152 wbps=max riops=max wiops=120\n8:0 rbps=max wbps=max\n",
            ),
            (
                "sys/fs/cgroup/system.slice/db.service/io.pressure",
                "some avg10=0 avg60=72.25 avg300=0 total=1\n",
            ),
            ("sys/fs/cgroup/blkio/docker/blkio.throttle.write_bps_device", "8:0 1048576\n"),
        ]);
        let wanted = [
            ("disk_limit.pressure.some_percent", "31.5"),
            ("disk_limit.pressure.full_percent", "4"),
            ("disk_limit.sdb.cgroups", "/system.slice/db.service rbps=2097152 wiops=120"),
            ("disk_limit.sdb.waiting_percent", "72.25"),
            ("disk_limit.sda.cgroups", "/docker wbps=1048576"),
        ];
        let wanted: BTreeMap<String, String> = wanted.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        assert_eq!(seen, wanted);
    }

    #[test]
    fn a_host_without_limits_has_none() {
        let seen = read(&[("sys/block/sda/dev", "8:0\n"), ("sys/fs/cgroup/cgroup.controllers", "io\n")]);
        assert!(seen.is_empty(), "{seen:?}");
        assert!(
            is_file("io.max") && is_file("cgroup.procs") && !is_file("io.mount") && !is_file("user.slice")
        );
    }

    /// On a host with version 1, and rights to it.
    #[test]
    fn a_limit_that_is_made_is_seen_and_gone_with_its_group() {
        let group =
            std::path::Path::new("/sys/fs/cgroup/blkio").join(format!("linerate-{}", std::process::id()));
        let root = Root::live();
        let Some((number, name)) = numbers(&root).into_iter().find(|(_, name)| name.starts_with("loop"))
        else {
            return println!("SKIPPED a_limit_that_is_made_is_seen_and_gone_with_its_group: no loop device");
        };
        if let Err(reason) = std::fs::create_dir(&group) {
            return println!("SKIPPED a_limit_that_is_made_is_seen_and_gone_with_its_group: {reason}");
        }
        let made = std::fs::write(group.join("blkio.throttle.read_bps_device"), format!("{number} 4194304"));
        let mut out = Readings::default();
        DiskLimits.read(&View::new(&root, None, &[]), &mut out);
        std::fs::remove_dir(&group).unwrap();
        if let Err(reason) = made {
            return println!("SKIPPED a_limit_that_is_made_is_seen_and_gone_with_its_group: {reason}");
        }
        let seen = out.finish().readings[&format!("disk_limit.{name}.cgroups")].to_string();
        let own = format!("/linerate-{} rbps=4194304", std::process::id());
        assert!(seen.contains(&own), "{seen}");
    }
}
