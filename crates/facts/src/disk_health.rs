//! Facts `disk_health.*`: what drives and the kernel count of their errors, heat and wear.
//!
//! In: the health page of NVMe drives by an admin command, SMART of SATA drives by commands that only read,
//! temperatures by hwmon, error counters of the kernel for SCSI and SATA drives, md and ext4. Out: numbers,
//! never a judgement. These values change by themselves: nothing compares them between two moments. A drive
//! that is asleep is not woken.

use linerate_model::fact::{FactDecl, FactValue};
use linerate_sys::ata::{self, AtaHealth};
use linerate_sys::nvme::{self, NvmeHealth};
use linerate_sys::root::{ReadError, Root};

use super::fact::Fact;
use super::readings::{Readings, fact};
use super::view::View;

/// The topic.
pub(super) struct DiskHealth;

/// Most drives whose health is read.
const DRIVES_MAX: usize = 1024;
/// Bits of the critical warning of an NVMe drive (base specification, SMART / Health Information).
const WARNINGS: [&str; 6] =
    ["spare-low", "temperature", "unreliable", "read-only", "backup-failed", "memory-region-failed"];
/// Counters of the kernel for a SCSI device, in hexadecimal, and their facts.
const SCSI: [(&str, &str); 2] = [("ioerr_cnt", "kernel_errors"), ("iotmo_cnt", "kernel_timeouts")];
/// Files of a hwmon folder in thousandths of a degree, and their facts.
const HWMON: [(&str, &str); 3] = [
    ("temp1_input", "temperature_c"),
    ("temp1_max", "max_temperature_c"),
    ("temp1_crit", "critical_temperature_c"),
];

impl Fact for DiskHealth {
    fn declarations(&self) -> Vec<FactDecl> {
        // What speaks of all others comes last.
        let mut all = Vec::from(of_sata());
        all.extend([
            fact("disk_health.*.temperature_c", "°C", "Temperature of the drive now."),
            fact("disk_health.*.max_temperature_c", "°C", "From which temperature on the drive is too hot."),
            fact(
                "disk_health.*.critical_temperature_c",
                "°C",
                "At which temperature it stops or is in danger.",
            ),
            fact(
                "disk_health.*.warnings",
                "list",
                "Critical warnings of an NVMe drive: spare-low, temperature, unreliable, read-only, backup-failed, memory-region-failed. Needs root.",
            ),
            fact(
                "disk_health.*.media_errors",
                "count",
                "Data that an NVMe drive could not read or verify in its life. Needs root.",
            ),
            fact(
                "disk_health.*.throttled_s",
                "s",
                "Seconds of its life in which an NVMe drive slowed itself because of heat. Needs root.",
            ),
            fact(
                "disk_health.*.kernel_errors",
                "count",
                "Requests to a SCSI or SATA drive that ended with an error since it was found.",
            ),
            fact(
                "disk_health.*.kernel_timeouts",
                "count",
                "Requests to a SCSI or SATA drive that it did not answer in time since it was found.",
            ),
            fact(
                "disk_health.*.md_errors",
                "count",
                "Read errors of the drive that md repaired since the array was started.",
            ),
            fact("disk_health.*.filesystem_errors", "count", "Errors that ext4 noted on the device."),
            fact(
                "disk_health.*.state",
                "text",
                "State of the drive in the kernel: running, live, offline, blocked.",
            ),
            fact(
                "disk_health.*.*",
                "by name",
                "used_percent, spare_percent, spare_min_percent, power_on_hours, unsafe_shutdowns, hot_minutes, critical_minutes of NVMe drives. Need root.",
            ),
        ]);
        all
    }

    fn of_namespace(&self) -> bool {
        false
    }

    fn read(&self, view: &View<'_>, out: &mut Readings) {
        let root = view.root;
        let Ok(names) = root.list("/sys/block") else { return };
        for name in names.iter().take(DRIVES_MAX) {
            of_drive(root, name, out);
        }
    }
}

/// Reads all of one drive. Asks the drive itself, which may not answer.
pub(super) fn of_drive(root: &Root, name: &str, out: &mut Readings) {
    let device = format!("/sys/block/{name}/device");
    let key = format!("disk_health.{}", name.replace('.', "/"));
    if let Ok(state) = root.line(&format!("{device}/state")) {
        out.text(format!("{key}.state"), state);
    }
    for (file, fact) in SCSI {
        let count = root.line(&format!("{device}/{file}")).ok();
        if let Some(count) = count.as_deref().and_then(hexadecimal) {
            out.int(format!("{key}.{fact}"), count);
        }
    }
    if let Some(controller) = controller(name) {
        match root.answer(&format!("nvme-health/{controller}"), || health(controller)) {
            Ok(health) => put_nvme(&key, &health, out),
            Err(reason) => out.gap_of("disk_health.*.media_errors", &reason, name),
        }
    }
    let has_thermometer = temperatures(root, &device, &key, out);
    if is_sata(root, &device) {
        match root.answer(&format!("ata-health/{name}"), || Ok(ata::health(name)?)) {
            Ok(health) => put_ata(&key, &health, has_thermometer, out),
            Err(reason) => out.gap_of("disk_health.*.smart_status", &reason, name),
        }
    }
    if let Ok(errors) = root.number(&format!("/sys/fs/ext4/{name}/errors_count")) {
        out.int(format!("{key}.filesystem_errors"), errors);
    }
    md(root, name, out);
}

/// What SMART of SATA drives has.
fn of_sata() -> [FactDecl; 5] {
    [
        fact(
            "disk_health.*.smart_status",
            "text",
            "Whether a SATA drive expects to fail by its own limits: ok or failing. Needs root.",
        ),
        fact(
            "disk_health.*.reallocated_sectors",
            "count",
            "Sectors that a SATA drive replaced by spare ones (attribute 5). Needs root.",
        ),
        fact(
            "disk_health.*.pending_sectors",
            "count",
            "Sectors that a SATA drive could not read and that wait to be written (197). Needs root.",
        ),
        fact(
            "disk_health.*.uncorrectable_sectors",
            "count",
            "Sectors that the own scan of a SATA drive could not read (198). Needs root.",
        ),
        fact(
            "disk_health.*.link_crc_errors",
            "count",
            "Blocks that the cable of a SATA drive damaged in its life (199). Needs root.",
        ),
    ]
}

fn health(controller: &str) -> Result<NvmeHealth, ReadError> {
    Ok(nvme::health(controller)?)
}

/// `0x1f`
fn hexadecimal(text: &str) -> Option<i64> {
    i64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// `nvme0` of `nvme0n1`: a drive with several paths (`nvme0c1n1`) has its health once.
fn controller(name: &str) -> Option<&str> {
    let digits = name.strip_prefix("nvme")?.find(|c: char| !c.is_ascii_digit())?;
    let (controller, rest) = name.split_at("nvme".len() + digits);
    (digits > 0 && rest.starts_with('n')).then_some(controller)
}

fn put_nvme(key: &str, health: &NvmeHealth, out: &mut Readings) {
    let warnings = (0..).zip(WARNINGS).filter(|(bit, _)| health.warnings & (1 << bit) != 0);
    let warnings: Vec<String> = warnings.map(|(_, word)| word.to_owned()).collect();
    if !warnings.is_empty() {
        out.put(format!("{key}.warnings"), FactValue::List(warnings));
    }
    // 0 K stands for a drive without a thermometer.
    if health.temperature_c > -273 {
        out.int(format!("{key}.temperature_c"), health.temperature_c);
    }
    let counts = [
        ("spare_percent", i64::from(health.spare_percent)),
        ("spare_min_percent", i64::from(health.spare_min_percent)),
        ("used_percent", i64::from(health.used_percent)),
        ("power_on_hours", health.power_on_hours),
        ("unsafe_shutdowns", health.unsafe_shutdowns),
        ("media_errors", health.media_errors),
        ("hot_minutes", i64::from(health.hot_minutes[0])),
        ("critical_minutes", i64::from(health.hot_minutes[1])),
        ("throttled_s", i64::from(health.throttled_s[0]) + i64::from(health.throttled_s[1])),
    ];
    for (fact, count) in counts {
        out.int(format!("{key}.{fact}"), count);
    }
}

/// Whether a drive speaks ATA: the kernel's own translation and that of controllers call its vendor so.
fn is_sata(root: &Root, device: &str) -> bool {
    root.line(&format!("{device}/vendor")).is_ok_and(|vendor| vendor.trim() == "ATA")
}

fn put_ata(key: &str, health: &AtaHealth, has_thermometer: bool, out: &mut Readings) {
    if let Some(failing) = health.failing {
        out.text(format!("{key}.smart_status"), if failing { "failing" } else { "ok" });
    }
    let counts = [
        ("reallocated_sectors", health.reallocated),
        ("pending_sectors", health.pending),
        ("uncorrectable_sectors", health.uncorrectable),
        ("link_crc_errors", health.crc_errors),
        ("temperature_c", health.temperature_c.filter(|_| !has_thermometer)),
    ];
    for (fact, count) in counts {
        if let Some(count) = count {
            out.int(format!("{key}.{fact}"), count);
        }
    }
}

/// What hwmon has of a drive: driver `drivetemp` below `device/hwmon/`, that of NVMe beside the controller.
/// Whether it has its temperature.
fn temperatures(root: &Root, device: &str, key: &str, out: &mut Readings) -> bool {
    let below = |folder: String| {
        let names = root.list(&folder).unwrap_or_default();
        names
            .into_iter()
            .find(|name| name.starts_with("hwmon") && *name != "hwmon")
            .map(|n| format!("{folder}/{n}"))
    };
    let Some(folder) = below(format!("{device}/hwmon")).or_else(|| below(device.to_owned())) else {
        return false;
    };
    for (file, fact) in HWMON {
        if let Ok(thousandths) = root.number(&format!("{folder}/{file}")) {
            out.int(format!("{key}.{fact}"), thousandths.div_euclid(1000));
        }
    }
    root.number(&format!("{folder}/{}", HWMON[0].0)).is_ok()
}

/// Errors that an array has repaired, for each of its drives.
fn md(root: &Root, array: &str, out: &mut Readings) {
    let folder = format!("/sys/block/{array}/md");
    let Ok(names) = root.list(&folder) else { return };
    for leg in names.iter().filter_map(|name| name.strip_prefix("dev-")) {
        if let Ok(errors) = root.number(&format!("{folder}/dev-{leg}/errors")) {
            out.int(format!("disk_health.{}.md_errors", leg.replace('.', "/")), errors);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, BTreeMap<String, String>) {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = Root::recorded(folder.path());
        let mut out = Readings::default();
        DiskHealth.read(&View::new(&root, None, &[]), &mut out);
        let facts = out.finish();
        let seen = facts.readings.iter().map(|(k, v)| (k.clone(), v.to_string())).collect();
        (folder, seen)
    }

    #[test]
    fn what_kernel_and_drives_count_is_read() {
        let health = NvmeHealth { warnings: 2, temperature_c: 81, media_errors: 4, ..NvmeHealth::default() };
        let health = serde_json::to_string(&health).unwrap();
        let smart = AtaHealth {
            failing: Some(true),
            reallocated: Some(12),
            pending: Some(8),
            temperature_c: Some(44),
            ..AtaHealth::default()
        };
        let smart = serde_json::to_string(&smart).unwrap();
        let (_folder, seen) = tree(&[
            ("sys/block/sda/device/vendor", "ATA     \n"),
            ("sys/block/sdb/device/vendor", "ATA     \n"),
            ("sys/block/sdc/device/vendor", "SEAGATE \n"),
            ("linerate/ata-health/sda.json", &smart),
            ("linerate/ata-health/sdb.json", &smart),
            ("linerate/ata-health/sdc.json", &smart),
            ("sys/block/sda/device/state", "running\n"),
            ("sys/block/sda/device/ioerr_cnt", "0x1f\n"),
            ("sys/block/sda/device/iotmo_cnt", "0x0\n"),
            ("sys/block/sda/device/hwmon/hwmon3/temp1_input", "46000\n"),
            ("sys/block/sda/device/hwmon/hwmon3/temp1_max", "60000\n"),
            ("sys/block/nvme0n1/device/hwmon1/temp1_max", "81850\n"),
            ("sys/block/nvme0n1/device/state", "live\n"),
            ("linerate/nvme-health/nvme0.json", &health),
            ("sys/block/md0/md/dev-sda/errors", "12\n"),
            ("sys/fs/ext4/md0/errors_count", "0\n"),
        ]);
        let wanted = [
            ("disk_health.sda.state", "running"),
            ("disk_health.sda.kernel_errors", "31"),
            ("disk_health.sda.kernel_timeouts", "0"),
            ("disk_health.sda.temperature_c", "46"),
            ("disk_health.sda.max_temperature_c", "60"),
            ("disk_health.sda.md_errors", "12"),
            ("disk_health.sda.smart_status", "failing"),
            ("disk_health.sda.reallocated_sectors", "12"),
            ("disk_health.sdb.pending_sectors", "8"),
            ("disk_health.sdb.temperature_c", "44"),
            ("disk_health.md0.filesystem_errors", "0"),
            ("disk_health.nvme0n1.warnings", "temperature"),
            ("disk_health.nvme0n1.temperature_c", "81"),
            ("disk_health.nvme0n1.max_temperature_c", "81"),
            ("disk_health.nvme0n1.media_errors", "4"),
        ];
        for (key, value) in wanted {
            assert_eq!(seen.get(key).map(String::as_str), Some(value), "{key} in {seen:?}");
        }
        assert!(!seen.keys().any(|key| key.starts_with("disk_health.sdc")), "no ATA drive: {seen:?}");
        assert!(!seen.contains_key("disk_health.sdb.link_crc_errors"), "it has no such attribute");
    }

    #[test]
    fn a_drive_has_the_health_of_its_controller_once() {
        assert_eq!(controller("nvme12n1"), Some("nvme12"));
        assert_eq!(
            (controller("nvme0c1n1"), controller("sda"), controller("nvme"), controller("nvmen1")),
            (None, None, None, None)
        );
        assert_eq!((hexadecimal("0xA"), hexadecimal("10"), hexadecimal("0xzz")), (Some(10), None, None));
    }
}
