//! Settings `disk.*`: how the kernel queues, reads ahead, holds writes back and caches for a block device,
//! and the rate of a check or rebuild of md.
//!
//! In: a key and a value. Out: one write to a file of `/sys`, read back. A value survives a reboot by a rule
//! of udev that finds the drive by its world-wide name where it has one, for names of the kernel move.

use std::path::PathBuf;

use linerate_model::fact::FactValue;
use linerate_model::writable::writable;
use linerate_sys::root::{ReadError, Root};

use super::readings::{flawed, number_of, text_of};
use crate::change::setting::{FileSyntax, Persist, Setting, SettingError};

/// The settings.
pub(super) struct DiskSettings;

/// Form of the value of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A whole number.
    Number,
    /// One of the words that the file lists; the one in force stands in brackets.
    Choice,
    /// One of these.
    Words(&'static [&'static str]),
    /// A number of its own, or `system` for that of all arrays: `1000 (system)`, `5000 (local)`.
    OrSystem,
}

/// One setting.
struct DiskSetting {
    /// The end of its key.
    name: &'static str,
    /// Its file below the folder of the device.
    file: &'static str,
    form: Form,
}

const fn setting(name: &'static str, file: &'static str, form: Form) -> DiskSetting {
    DiskSetting { name, file, form }
}

const CACHE: Form = Form::Words(&["write back", "write through"]);
/// Value of an array that follows the limit of all arrays.
const SYSTEM: &str = "system";
/// Folder in which a SCSI drive has its cache, below its device; the folder below has the address for a name.
const SCSI_DISK: &str = "device/scsi_disk";

const ALL: [DiskSetting; 11] = [
    setting("scheduler", "queue/scheduler", Form::Choice),
    setting("nr_requests", "queue/nr_requests", Form::Number),
    setting("read_ahead_kb", "queue/read_ahead_kb", Form::Number),
    setting("wbt_lat_usec", "queue/wbt_lat_usec", Form::Number),
    setting("rq_affinity", "queue/rq_affinity", Form::Number),
    setting("nomerges", "queue/nomerges", Form::Number),
    setting("write_cache", "queue/write_cache", CACHE),
    setting("drive_cache", SCSI_DISK, CACHE),
    setting("queue_depth", "device/queue_depth", Form::Number),
    setting("md_sync_speed_min", "md/sync_speed_min", Form::OrSystem),
    setting("md_sync_speed_max", "md/sync_speed_max", Form::OrSystem),
];

/// What a rule of udev asks for, for a whole block device.
const WHOLE: &str = "SUBSYSTEM==\"block\", ENV{DEVTYPE}==\"disk\"";

/// Files that a change of the scheduler sets anew.
const OF_SCHEDULER: [&str; 2] = ["nr_requests", "wbt_lat_usec"];

pub(super) fn is_setting(key: &str) -> bool {
    split(key).is_some() && writable(key).is_some()
}

/// `disk.sda.scheduler` -> (`sda`, its setting)
fn split(key: &str) -> Option<(String, &'static DiskSetting)> {
    let (device, name) = key.strip_prefix("disk.")?.split_once('.')?;
    let setting = ALL.iter().find(|setting| setting.name == name)?;
    let device = device.replace('/', ".");
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.!".contains(c);
    (!device.is_empty() && !device.starts_with('.') && device.chars().all(plain)).then_some((device, setting))
}

/// The file of a setting, below `/sys/block/<device>`.
fn file(root: &Root, device: &str, setting: &DiskSetting) -> Result<String, ReadError> {
    if setting.file != SCSI_DISK {
        return Ok(setting.file.to_owned());
    }
    let address = root.list(&format!("/sys/block/{device}/{SCSI_DISK}"))?.into_iter().next();
    Ok(format!("{SCSI_DISK}/{}/cache_type", address.ok_or(ReadError::Missing)?))
}

fn value(form: Form, text: &str) -> Result<FactValue, SettingError> {
    let number = |text: &str| {
        text.trim()
            .parse()
            .map(FactValue::Int)
            .map_err(|_| flawed(&text, "not a whole number of this kernel"))
    };
    match form {
        Form::Number => number(text),
        Form::Choice => {
            let chosen =
                text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(word, _)| word);
            Ok(FactValue::Text(chosen.unwrap_or(text).trim().to_owned()))
        }
        Form::Words(_) => Ok(FactValue::Text(text.trim().to_owned())),
        Form::OrSystem => match text.trim().split_once(' ') {
            Some((_, "(system)")) => Ok(FactValue::Text(SYSTEM.to_owned())),
            Some((own, _)) => number(own),
            None => number(text),
        },
    }
}

/// Text for the file.
fn written(form: Form, wanted: &FactValue) -> Result<String, SettingError> {
    match form {
        Form::OrSystem if matches!(wanted, FactValue::Text(text) if text == SYSTEM) => Ok(SYSTEM.to_owned()),
        Form::Number | Form::OrSystem => Ok(number_of(wanted)?.to_string()),
        Form::Choice => {
            let word = text_of(wanted)?;
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
            if word.is_empty() || !word.chars().all(plain) {
                return Err(flawed(&word, "no name of a scheduler"));
            }
            Ok(word)
        }
        Form::Words(words) => {
            let word = text_of(wanted)?;
            if words.contains(&word.as_str()) {
                Ok(word)
            } else {
                Err(flawed(&word, "neither write back nor write through"))
            }
        }
    }
}

/// All settings that this kernel has for a device, by the end of their key.
pub(super) fn all(root: &Root, device: &str) -> Vec<(&'static str, FactValue)> {
    let read = |setting: &'static DiskSetting| {
        let file = file(root, device, setting).ok()?;
        let text = root.line(&format!("/sys/block/{device}/{file}")).ok()?;
        Some((setting.name, value(setting.form, &text).ok()?))
    };
    ALL.iter().filter_map(read).collect()
}

impl Setting for DiskSettings {
    fn read(&self, root: &Root, key: &str) -> Result<FactValue, SettingError> {
        let (device, setting) = split(key).ok_or(SettingError::NotAKey("not a setting of a block device"))?;
        let file = file(root, &device, setting)?;
        value(setting.form, &root.line(&format!("/sys/block/{device}/{file}"))?)
    }

    fn write(&self, root: &Root, key: &str, wanted: &FactValue) -> Result<(), SettingError> {
        let (device, setting) = split(key).filter(|_| is_setting(key)).ok_or(SettingError::ReadOnly)?;
        let text = written(setting.form, wanted)?;
        if !root.is_live() {
            return Err(ReadError::Recorded.into());
        }
        // Some files, that of the scheduler among them, empty the queue even for the value that they have.
        if Setting::read(self, root, key).is_ok_and(|now| now.is_same(wanted)) {
            return Ok(());
        }
        let file = file(root, &device, setting)?;
        root.write(&format!("/sys/block/{device}/{file}"), &text)?;
        // The kernel takes the nearest value that a drive can, without an error.
        let now = Setting::read(self, root, key)?;
        if now.is_same(wanted) {
            return Ok(());
        }
        Err(SettingError::Value { value: wanted.to_string(), flaw: "not a value that this device takes" })
    }

    fn related(&self, key: &str) -> Vec<String> {
        match split(key) {
            Some((device, DiskSetting { name: "scheduler", .. })) => {
                let head = format!("disk.{}", device.replace('.', "/"));
                OF_SCHEDULER.iter().map(|name| format!("{head}.{name}")).collect()
            }
            _ => Vec::new(),
        }
    }

    fn persist(&self, key: &str, wanted: &FactValue) -> Persist {
        let impossible = |reason: String| Persist::Impossible { reason };
        let Some((device, setting)) = split(key) else {
            return impossible("not a setting of a block device".to_owned());
        };
        let root = Root::live();
        let (text, file) = match (written(setting.form, wanted), file(&root, &device, setting)) {
            (Ok(text), Ok(file)) => (text, file),
            (Err(error), _) => return impossible(error.to_string()),
            (_, Err(error)) => return impossible(format!("{key}: {error}")),
        };
        // A scheduler sets others anew: rules are read in the order of their names.
        let order = usize::from(setting.name != "scheduler");
        let (subsystem, drive, file) = match (setting.file == SCSI_DISK, wide_name(&root, &device)) {
            // The address in the path of the file moves; the cache is a device of its own below the drive.
            (true, Some((_, name))) => {
                ("SUBSYSTEM==\"scsi_disk\"", format!("ATTRS{{wwid}}==\"{name}\""), "cache_type".to_owned())
            }
            (true, None) => return impossible(format!("{device} has no world-wide name")),
            (false, Some((word, name))) => (WHOLE, format!("{word}==\"{name}\""), file),
            (false, None) => (WHOLE, format!("KERNEL==\"{device}\""), file),
        };
        Persist::File {
            path: PathBuf::from(format!("udev/rules.d/90-linerate-{device}-{order}-{}.rules", setting.name)),
            preamble: "# Written by linerate; `linerate undo` takes its line out.\n".to_owned(),
            section: None,
            syntax: FileSyntax::Assign,
            name: "ACTION".to_owned(),
            line: format!("ACTION==\"add|change\", {subsystem}, {drive}, ATTR{{{file}}}=\"{text}\""),
        }
    }
}

/// The name of a drive or array that does not move, with the word by which a rule of udev asks for it.
fn wide_name(root: &Root, device: &str) -> Option<(&'static str, String)> {
    // Characters that mean something in a rule are in no name that we take.
    let plain = |name: &String| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || " -_.:".contains(c))
    };
    let by = [("wwid", "ATTR{wwid}"), ("device/wwid", "ATTR{device/wwid}"), ("md/uuid", "ATTR{md/uuid}")];
    by.into_iter().find_map(|(file, word)| {
        let name = root.line(&format!("/sys/block/{device}/{file}")).ok().filter(plain)?;
        Some((word, name))
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::change::setting::conformance::check;

    fn text(text: &str) -> FactValue {
        FactValue::Text(text.to_owned())
    }

    #[test]
    fn files_of_every_form_are_understood() {
        assert_eq!(value(Form::Choice, "none [mq-deadline] kyber bfq"), Ok(text("mq-deadline")));
        assert_eq!(value(Form::Choice, "none"), Ok(text("none")));
        assert_eq!(value(Form::OrSystem, "1000 (system)"), Ok(text("system")));
        assert_eq!(value(Form::OrSystem, "5000 (local)"), Ok(FactValue::Int(5000)));
        assert_eq!(value(Form::Number, "128"), Ok(FactValue::Int(128)));
        assert!(value(Form::Number, "many").is_err());
        assert_eq!(written(Form::OrSystem, &text("system")), Ok("system".to_owned()));
        assert_eq!(written(CACHE, &text("write back")), Ok("write back".to_owned()));
        for bad in ["temporary write back", "", "none\n", "x"] {
            assert!(written(CACHE, &text(bad)).is_err(), "{bad}");
        }
        for bad in ["a b", "", "$(x)", "none\"", "none\n"] {
            assert!(written(Form::Choice, &text(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn only_settings_of_the_list_are_settings_and_no_name_leads_elsewhere() {
        for setting in &ALL {
            assert!(is_setting(&format!("disk.sda.{}", setting.name)), "{}", setting.name);
        }
        for key in
            ["disk.sda.size_bytes", "disk...scheduler", "disk.a/..scheduler", "disk.sda", "disk.a b.nomerges"]
        {
            assert!(!is_setting(key), "{key}");
        }
        assert_eq!(
            DiskSettings.related("disk.sda.scheduler"),
            ["disk.sda.nr_requests", "disk.sda.wbt_lat_usec"]
        );
        assert!(DiskSettings.related("disk.sda.nr_requests").is_empty());
    }

    #[test]
    fn a_drive_is_found_by_its_own_name_where_a_rule_can_hold_it() {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("sda/device/wwid", "naa.5000c500a1b2c3d4\n"),
            ("sdb/device/wwid", "t10.ATA \"odd\" *\n"),
            ("nvme0n1/wwid", "eui.0025385b71b0a3f1\n"),
        ] {
            let path = folder.path().join("sys/block").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = Root::recorded(folder.path());
        let found = |device: &str| wide_name(&root, device);
        assert_eq!(found("sda"), Some(("ATTR{device/wwid}", "naa.5000c500a1b2c3d4".to_owned())));
        assert_eq!(found("sdb"), None);
        assert_eq!(found("nvme0n1"), Some(("ATTR{wwid}", "eui.0025385b71b0a3f1".to_owned())));
    }

    /// On a loop device of its own.
    #[test]
    fn settings_of_a_device_are_written_and_undone() {
        let test = "settings_of_a_device_are_written_and_undone";
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("image");
        std::fs::File::create(&image).and_then(|file| file.set_len(1 << 20)).unwrap();
        let made = Command::new("losetup").args(["--find", "--show"]).arg(&image).output();
        let device = match made {
            Ok(made) if made.status.success() => String::from_utf8_lossy(&made.stdout).trim().to_owned(),
            Ok(made) => return println!("SKIPPED {test}: {}", String::from_utf8_lossy(&made.stderr)),
            Err(error) => return println!("SKIPPED {test}: losetup: {error}"),
        };
        let name = device.trim_start_matches("/dev/").to_owned();
        let done = std::panic::catch_unwind(|| {
            let root = Root::live();
            let key = |setting: &str| format!("disk.{name}.{setting}");
            let now = Setting::read(&DiskSettings, &root, &key("scheduler")).unwrap();
            let other = if now == text("none") { "mq-deadline" } else { "none" };
            check(&DiskSettings, &root, &key("read_ahead_kb"), &FactValue::Int(1024));
            check(&DiskSettings, &root, &key("nomerges"), &FactValue::Int(2));
            if DiskSettings.write(&root, &key("scheduler"), &text(other)).is_ok() {
                DiskSettings.write(&root, &key("scheduler"), &now).unwrap();
                check(&DiskSettings, &root, &key("scheduler"), &text(other));
            }
            assert!(DiskSettings.write(&root, &key("scheduler"), &text("no-such-one")).is_err());
            assert!(DiskSettings.write(&root, &key("nomerges"), &FactValue::Int(7)).is_err());
            let Persist::File { path, line, .. } =
                DiskSettings.persist(&key("read_ahead_kb"), &FactValue::Int(1024))
            else {
                panic!("no file")
            };
            assert_eq!(path, PathBuf::from(format!("udev/rules.d/90-linerate-{name}-1-read_ahead_kb.rules")));
            assert!(
                line.ends_with(&format!("KERNEL==\"{name}\", ATTR{{queue/read_ahead_kb}}=\"1024\"")),
                "{line}"
            );
        });
        let ended = Command::new("losetup").args(["-d", &device]).status();
        assert!(ended.is_ok_and(|status| status.success()), "{device} is still there");
        done.unwrap();
    }
}
