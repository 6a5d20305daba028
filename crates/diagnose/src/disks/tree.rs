//! Which block device stands on which, and what people call them.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::disk::{Disk, DiskKind};
use linerate_model::fact::{FactValue, HostFacts};
use linerate_model::names::natural;

/// The block devices of a host.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Layout {
    disks: BTreeMap<String, Disk>,
}

/// One line of the tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Leaf<'a> {
    /// The device.
    pub disk: &'a Disk,
    /// How many devices stand above it here.
    pub depth: usize,
}

/// The block devices that the facts of a host tell of.
#[must_use]
pub fn layout(facts: &HostFacts) -> Layout {
    let mut disks: BTreeMap<String, Disk> = BTreeMap::new();
    let mut parts: Vec<(String, String)> = Vec::new();
    let mut kinds: BTreeMap<String, String> = BTreeMap::new();
    for (key, value) in &facts.readings {
        let Some((device, field)) = key.strip_prefix("disk.").and_then(|rest| rest.split_once('.')) else {
            continue;
        };
        let device = device.replace('/', ".");
        let disk = disks.entry(device.clone()).or_insert_with(|| bare(&device));
        match (field, value) {
            ("size_bytes", FactValue::Int(bytes)) => disk.size_bytes = u64::try_from(*bytes).unwrap_or(0),
            ("number", FactValue::Text(number)) => disk.number = Some(number.clone()),
            ("rotational", FactValue::Flag(true)) if disk.kind == DiskKind::Solid => {
                disk.kind = DiskKind::Rotating;
            }
            ("md_level", _) => disk.kind = DiskKind::Array,
            // It comes before the name, in the order of keys.
            ("dm_kind", FactValue::Text(kind)) => drop(kinds.insert(device, kind.clone())),
            ("dm_name", FactValue::Text(name)) => {
                let kind = kinds.get(&device).map(String::as_str);
                disk.kind = if kind == Some("mpath") { DiskKind::Multipath } else { DiskKind::Volume };
                // Only LVM puts two names into one.
                let is_lvm = kind.is_none_or(|kind| kind == "LVM");
                disk.inner = is_lvm && is_inner(name);
                disk.name = if is_lvm { volume(name) } else { name.clone() };
            }
            ("on", FactValue::List(on)) => disk.on = ordered(on),
            ("failed_legs", FactValue::List(failed)) => disk.failed = ordered(failed),
            ("rebuilding_legs", FactValue::List(rebuilding)) => disk.rebuilding = ordered(rebuilding),
            ("partitions", FactValue::List(all)) => {
                parts.extend(all.iter().map(|part| (part.clone(), device.clone())));
            }
            _ => {}
        }
    }
    for (part, whole) in parts {
        let disk = disks.entry(part.clone()).or_insert_with(|| bare(&part));
        disk.kind = DiskKind::Partition;
        disk.on = vec![whole];
    }
    join_paths(&mut disks);
    // A virtual drive says that it rotates when nobody told it otherwise; only SCSI and ATA drives have been
    // asked.
    for disk in disks.values_mut().filter(|d| d.kind == DiskKind::Rotating) {
        if !["sd", "hd"].iter().any(|start| disk.device.starts_with(start)) {
            disk.kind = DiskKind::Solid;
        }
    }
    let mut layout = Layout { disks };
    layout.mount(facts);
    layout
}

/// Names in the order in which people count them.
fn ordered(names: &[String]) -> Vec<String> {
    let mut names = names.to_vec();
    names.sort_by(|a, b| natural(a, b));
    names
}

/// Hangs the hidden ways of NVMe's own multipath (`nvme0c1n1`) below the device that people use (`nvme0n1`).
fn join_paths(disks: &mut BTreeMap<String, Disk>) {
    let paths: Vec<(String, String)> =
        disks.keys().filter_map(|name| Some((name.clone(), behind(name)?))).collect();
    for (path, head) in paths {
        if let Some(head) = disks.get_mut(&head) {
            head.kind = DiskKind::Multipath;
            if !head.on.contains(&path) {
                head.on.push(path);
                head.on.sort_by(|a, b| natural(a, b));
            }
        }
    }
}

/// The device that a hidden way leads to: `nvme0n1` for `nvme0c1n1`.
fn behind(path: &str) -> Option<String> {
    let (subsystem, rest) = path.strip_prefix("nvme")?.split_once('c')?;
    let (controller, namespace) = rest.split_once('n')?;
    let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    [subsystem, controller, namespace].into_iter().all(number).then(|| format!("nvme{subsystem}n{namespace}"))
}

fn bare(device: &str) -> Disk {
    let kind = match device.trim_end_matches(|c: char| c.is_ascii_digit()) {
        "md" => DiskKind::Array,
        "dm-" => DiskKind::Volume,
        "drbd" => DiskKind::Replicated,
        "loop" | "ram" | "zram" => DiskKind::Made,
        _ => DiskKind::Solid,
    };
    Disk {
        device: device.to_owned(),
        name: device.to_owned(),
        number: None,
        kind,
        size_bytes: 0,
        on: Vec::new(),
        mounts: Vec::new(),
        inner: false,
        failed: Vec::new(),
        rebuilding: Vec::new(),
    }
}

/// `vg0-home--old` is `vg0/home-old`: the device mapper doubles dashes within a name.
fn volume(name: &str) -> String {
    const DASH: &str = "\u{0}";
    let doubled = name.replace("--", DASH);
    match doubled.split_once('-') {
        Some((group, volume)) => format!("{}/{}", group.replace(DASH, "-"), volume.replace(DASH, "-")),
        None => doubled.replace(DASH, "-"),
    }
}

/// Images, metadata and logs of LVM's own arrays.
fn is_inner(name: &str) -> bool {
    ["_rimage_", "_rmeta_", "_mimage_", "_mlog", "_cdata", "_cmeta", "_tdata", "_tmeta"]
        .iter()
        .any(|part| name.contains(part))
}

impl Layout {
    /// A device by the name of the kernel.
    #[must_use]
    pub fn get(&self, device: &str) -> Option<&Disk> {
        self.disks.get(device)
    }

    /// All devices in the natural order of their names.
    pub fn disks(&self) -> impl Iterator<Item = &Disk> {
        let mut disks: Vec<&Disk> = self.disks.values().collect();
        disks.sort_by(|a, b| natural(&a.device, &b.device));
        disks.into_iter()
    }

    /// What people call a device: its name, and the kernel's behind it where that is another.
    #[must_use]
    pub fn called(&self, device: &str) -> String {
        self.get(device).map_or_else(|| device.to_owned(), Disk::called)
    }

    fn mount(&mut self, facts: &HostFacts) {
        for (key, value) in &facts.readings {
            let Some(folder) = key.strip_prefix("mount.") else { continue };
            let text = value.to_string();
            let Some(source) = text.split_ascii_whitespace().find(|w| w.starts_with("/dev/")) else {
                continue;
            };
            let name = source.trim_start_matches("/dev/").trim_start_matches("mapper/");
            let called = volume(name);
            let found = self.disks.values_mut().find(|d| {
                d.device == name
                    || (matches!(d.kind, DiskKind::Volume | DiskKind::Multipath)
                        && (d.name == name || d.name == called))
            });
            if let Some(disk) = found {
                disk.mounts.push(folder.replace("//", "/"));
            }
        }
    }

    /// The devices at the bottom that a device stands on in the end.
    #[must_use]
    pub fn drives_of(&self, device: &str) -> BTreeSet<&str> {
        let mut drives = BTreeSet::new();
        let mut seen = BTreeSet::new();
        let mut todo = vec![device];
        while let Some(device) = todo.pop() {
            let Some(disk) = self.get(device).filter(|_| seen.insert(device)) else { continue };
            // Ways to one drive are not drives.
            if disk.on.is_empty() || disk.kind == DiskKind::Multipath {
                drives.insert(disk.device.as_str());
                continue;
            }
            todo.extend(disk.on.iter().map(String::as_str));
        }
        drives
    }

    /// Devices that no other stands on.
    pub fn tops(&self) -> impl Iterator<Item = &Disk> {
        let below: BTreeSet<&str> =
            self.disks.values().flat_map(|d| d.on.iter().map(String::as_str)).collect();
        self.disks().filter(move |d| !below.contains(d.device.as_str()))
    }

    /// All devices, each once: what stands on others first, then those. `inner` shows parts of volumes too;
    /// without it what they stand on hangs below the volume.
    #[must_use]
    pub fn lines(&self, inner: bool) -> Vec<Leaf<'_>> {
        let mut lines = Vec::new();
        let mut seen = BTreeSet::new();
        for top in self.tops() {
            self.walk(top, 0, inner, &mut seen, &mut lines);
        }
        lines
    }

    fn walk<'a>(
        &'a self,
        disk: &'a Disk,
        depth: usize,
        inner: bool,
        seen: &mut BTreeSet<&'a str>,
        lines: &mut Vec<Leaf<'a>>,
    ) {
        if !seen.insert(&disk.device) {
            return;
        }
        let shown = inner || !disk.inner;
        if shown {
            lines.push(Leaf { disk, depth });
        }
        for below in disk.on.iter().filter_map(|device| self.get(device)) {
            self.walk(below, depth + usize::from(shown), inner, seen, lines);
        }
    }
}
