//! Facts `disk.<dev>.*`: block devices and which stands on which.

use linerate_model::fact::{FactDecl, FactValue};
use linerate_sys::root::Root;

use super::fact::Fact;
use super::readings::{Readings, fact, settings};
use super::view::View;
use super::{disk_legs, disk_setting, disk_wire};

/// The topic.
pub(super) struct Disks;

const DISKS_MAX: usize = 1024;
const SECTOR_BYTES: i64 = 512;

/// File below the folder of the device, and name of the fact; whole numbers.
const NUMBERS: [(&str, &str); 7] = [
    ("queue/max_sectors_kb", "max_sectors_kb"),
    ("queue/logical_block_size", "logical_block_bytes"),
    ("queue/minimum_io_size", "minimum_io_bytes"),
    ("queue/optimal_io_size", "optimal_io_bytes"),
    ("md/chunk_size", "md_chunk_bytes"),
    ("md/layout", "md_layout"),
    ("md/degraded", "md_degraded"),
];
/// The same for text.
const TEXTS: [(&str, &str); 7] = [
    ("dev", "number"),
    ("loop/backing_file", "file"),
    ("device/model", "model"),
    ("device/rev", "firmware"),
    ("device/firmware_rev", "firmware"),
    ("dm/name", "dm_name"),
    ("md/level", "md_level"),
];

impl Fact for Disks {
    fn declarations(&self) -> Vec<FactDecl> {
        let mut declared = vec![
            fact("disk.*.size_bytes", "bytes", "Size of the block device."),
            fact("disk.*.rotational", "flag", "Whether it has rotating discs."),
            fact("disk.*.firmware", "text", "Release of the drive's firmware."),
            fact("disk.*.on", "list", "Block devices that this one stands on."),
            fact("disk.*.partitions", "list", "Its partitions."),
            fact("disk.*.number", "text", "Major and minor number."),
            fact("disk.*.dm_name", "text", "Name of the volume of the device mapper."),
            fact("disk.*.dm_kind", "text", "Which kind of volume it is: LVM, CRYPT, mpath."),
            fact("disk.*.file", "text", "File behind a loop device."),
            fact(
                "disk.*.failed_legs",
                "list",
                "Legs of an array or volume that failed: by name, or by their place from 0. Volumes need root.",
            ),
            fact(
                "disk.*.rebuilding_legs",
                "list",
                "Legs of an array or volume that are being filled, named as those that failed; of a replica of DRBD the devices of its own side. Volumes need root, and DRBD 9 its debugfs.",
            ),
            fact(
                "disk.*.checked_legs",
                "list",
                "Legs of an array or volume that are read from end to end and compared, as after `checkarray`.",
            ),
            fact(
                "disk.*.*",
                "by name",
                "max_sectors_kb, logical_block_bytes, minimum_io_bytes, optimal_io_bytes, model, md_level, md_layout, md_chunk_bytes, md_degraded, dm_kind.",
            ),
        ];
        declared.extend(settings("disk.", "by name"));
        declared.extend(disk_wire::declarations());
        declared
    }

    fn of_namespace(&self) -> bool {
        false
    }

    fn read(&self, view: &View<'_>, out: &mut Readings) {
        let names = match view.root.list("/sys/block") {
            Ok(names) => names,
            Err(error) => return out.gap("disk.*", &error),
        };
        for name in names.iter().take(DISKS_MAX) {
            let folder = format!("/sys/block/{name}");
            let sectors = view.root.number(&format!("{folder}/size")).unwrap_or(0);
            // Loop devices and RAM discs that nobody uses.
            if sectors <= 0 {
                continue;
            }
            let disk = format!("disk.{}", name.replace('.', "/"));
            out.int(format!("{disk}.size_bytes"), sectors.saturating_mul(SECTOR_BYTES));
            if let Ok(rotational) = view.root.number(&format!("{folder}/queue/rotational")) {
                out.flag(format!("{disk}.rotational"), rotational != 0);
            }
            for (setting, value) in disk_setting::all(view.root, name) {
                out.put(format!("{disk}.{setting}"), value);
            }
            for (file, fact) in NUMBERS {
                if let Ok(number) = view.root.number(&format!("{folder}/{file}")) {
                    out.int(format!("{disk}.{fact}"), number);
                }
            }
            for (file, fact) in TEXTS {
                if let Ok(text) = view.root.line(&format!("{folder}/{file}")) {
                    out.text(format!("{disk}.{fact}"), text);
                }
            }
            // Behind the dash follows a number that tells nobody anything.
            if let Ok(uuid) = view.root.line(&format!("{folder}/dm/uuid"))
                && let Some((kind, _)) = uuid.split_once('-')
            {
                out.text(format!("{disk}.dm_kind"), kind);
            }
            legs(view.root, name, &folder, out);
            disk_wire::read(view.root, name, &disk, out);
            let parts: Vec<String> = view
                .root
                .list(&folder)
                .unwrap_or_default()
                .into_iter()
                .filter(|p| {
                    p.starts_with(name.as_str())
                        && view.root.number(&format!("{folder}/{p}/partition")).is_ok()
                })
                .collect();
            for part in &parts {
                let sectors = view.root.number(&format!("{folder}/{part}/size")).unwrap_or(0);
                let key = part.replace('.', "/");
                out.int(format!("disk.{key}.size_bytes"), sectors.saturating_mul(SECTOR_BYTES));
                if let Ok(number) = view.root.line(&format!("{folder}/{part}/dev")) {
                    out.text(format!("disk.{key}.number"), number);
                }
            }
            if !parts.is_empty() {
                out.put(format!("disk.{}.partitions", name.replace('.', "/")), FactValue::List(parts));
            }
            let on = view.root.list(&format!("{folder}/slaves")).unwrap_or_default();
            if !on.is_empty() {
                out.put(format!("{disk}.on"), FactValue::List(on));
            }
        }
    }
}

/// What is wrong with the legs of a device.
fn legs(root: &Root, name: &str, folder: &str, out: &mut Readings) {
    let legs = disk_legs::of(root, name, folder);
    let lists =
        [("failed_legs", legs.failed), ("rebuilding_legs", legs.rebuilding), ("checked_legs", legs.checked)];
    for (fact, legs) in lists {
        if !legs.is_empty() {
            out.put(format!("disk.{}.{fact}", name.replace('.', "/")), FactValue::List(legs));
        }
    }
}
