//! Steps: one command each that makes something on a host (a volume, a filesystem, a replica), with the commands that take it back.
//!
//! A step carries its own command, so that what a plan shows is what a host runs. What comes in: names and sizes. What goes out: programs with
//! their arguments, never a line for a shell. Nothing here runs anything.

mod drbd;
mod drbd_option;
mod filesystem;
mod look;
mod lvm;
mod md;

pub use drbd::DrbdStep;
pub use drbd_option::{
    DRBD_OPTIONS, DrbdForm, DrbdOption, DrbdSection, DrbdSubject, drbd_option, drbd_peer, drbd_show,
};
pub use filesystem::FilesystemStep;
pub use look::{Contents, Look, LookAct, Refused, Seen, Space};
pub use lvm::{LvmKind, LvmStep};
pub use md::{MdLevel, MdStep};

use serde::{Deserialize, Serialize};

/// A program and its arguments, as they are given to the kernel.
pub type Argv = Vec<String>;

/// One step on one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Volumes of LVM.
    Lvm(LvmStep),
    /// Arrays of md.
    Md(MdStep),
    /// Filesystems.
    Filesystem(FilesystemStep),
    /// Replicas of DRBD.
    Drbd(DrbdStep),
}

/// What a step does to the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Runs a program.
    Run(Argv),
    /// Writes a file; what was there before goes into the journal.
    Write {
        /// Absolute.
        path: String,
        /// All of it.
        text: String,
    },
}

/// What has to be true of a device before a step may touch it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    /// It holds nothing at all.
    Empty {
        /// Path of the device.
        device: String,
    },
    /// A volume that the steps before made: it is not in use, and still holds nothing.
    Volume {
        /// Path of the device.
        device: String,
    },
    /// The filesystem at its beginning ends before this byte.
    Shrunk {
        /// Path of the device.
        device: String,
        /// Bytes that the filesystem may have.
        filesystem_max_bytes: u64,
    },
    /// There is no file of this name, or one with just this text: somebody else's is not replaced.
    NoOtherFile {
        /// Absolute.
        path: String,
        /// What the step writes.
        text: String,
    },
}

/// What a step leaves on devices that held nothing before, and that no command takes away: filled with zeros when the step is taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Clear {
    /// The beginning of devices, where volume managers and arrays keep what they know.
    Head {
        /// Paths.
        devices: Vec<String>,
        /// How much of each.
        bytes: u64,
    },
    /// What `mkfs.xfs` writes all over a device: headers of its allocation groups, and the log.
    Xfs {
        /// Path.
        device: String,
    },
    /// What `mkfs.ext4` writes all over a device: its superblocks and tables, the journal and the first
    /// directories.
    Ext {
        /// Path.
        device: String,
    },
}

/// What is looked at before a step is undone: nothing may stand there that the build did not make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remains {
    /// A volume that the step made: once the steps behind it are undone, it holds nothing.
    Volume {
        /// Path.
        device: String,
        /// What fails when there is no such volume any more, where a program knows.
        listed: Option<Argv>,
        /// What makes a volume visible that is not active.
        activate: Argv,
    },
    /// A group, in which no volume of others may be.
    Group {
        /// Its name.
        name: String,
        /// What prints the names of its volumes.
        list: Argv,
    },
}

/// Where a step leaves an identifier that it has made for its devices alone. Names of devices change over a reboot, and drives are exchanged:
/// before a step is taken back, what stands there is compared with what stood there right after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// Paths.
    pub devices: Vec<String>,
    /// Byte on each device.
    pub at: u64,
    /// That byte counts from the begin of the last whole 4 KiB.
    pub in_last_page: bool,
    /// Length, bytes.
    pub bytes: usize,
    /// Beginnings of the marks that the step itself leaves, in the words of the guard.
    pub marks: &'static [&'static str],
    /// How such a mark is known where the step was killed before the journal had its identifier.
    pub own: Own,
}

/// What tells the mark of a step from one that others left since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Own {
    /// The name that the step gives stands at this byte: behind `HOST:` or alone, cut to fit, and ended by a
    /// zero byte.
    Named {
        /// Byte on the device.
        at: u64,
        /// Length with the zero byte at its end.
        bytes: usize,
        /// Name.
        name: String,
    },
    /// Nothing does. The first bytes of the device are zeros but for these ranges (start and end, multiples of
    /// 512), so that nothing is lost with it.
    Alone {
        /// Where the step writes.
        ranges: &'static [(u64, u64)],
        /// How much of the device.
        bytes: u64,
    },
    /// Nothing does.
    Any,
}

/// A command that lists things of a kind on a host, and the names of those that a step made. An undo that was
/// killed may have removed them before its journal said so: a step none of whose names is listed has nothing
/// left to remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// Program and arguments. It only reads, and succeeds when there is nothing to list.
    pub argv: Argv,
    /// Words of its output.
    pub names: Vec<String>,
}

impl Listing {
    /// Whether the output of the command has one of the names.
    #[must_use]
    pub fn is_in(&self, output: &str) -> bool {
        output.split_whitespace().any(|word| self.names.iter().any(|name| name == word))
    }
}

impl Clear {
    /// In plain words, without a stop.
    #[must_use]
    pub fn says(&self) -> String {
        match self {
            Self::Head { devices, bytes } => {
                format!("zeros into the first {} MiB of {} drives", bytes >> 20, devices.len())
            }
            Self::Xfs { device } => format!("zeros over what mkfs.xfs wrote on {device}"),
            Self::Ext { device } => format!("zeros over what mkfs.ext4 wrote on {device}"),
        }
    }
}

/// What all kinds of steps can say of themselves.
pub trait Deed {
    /// In plain words, without a stop.
    fn says(&self) -> String;
    /// What it does.
    fn act(&self) -> Act;
    /// Commands that take it back, in order. None for a step that leaves nothing behind. A file is put back without a command.
    fn undo(&self) -> Vec<Argv>;
    /// What is filled with zeros when all of these commands went well.
    fn clear(&self) -> Vec<Clear> {
        Vec::new()
    }
    /// What may stand on what it made.
    fn remains(&self) -> Vec<Remains> {
        Vec::new()
    }
    /// Where it leaves an identifier of its own.
    fn stamp(&self) -> Option<Stamp> {
        None
    }
    /// Path of the device that it makes, which is gone when it is taken back.
    fn makes(&self) -> Option<String> {
        None
    }
    /// Which command of the host lists what it made.
    fn listing(&self) -> Option<Listing> {
        None
    }
    /// What has to be true before.
    fn needs(&self) -> Vec<Need>;
    /// Whether all names in it are names and nothing else.
    ///
    /// # Errors
    /// The first one that is not.
    fn check(&self) -> Result<(), StepError>;
}

impl Step {
    /// What it can say of itself.
    #[must_use]
    pub fn deed(&self) -> &dyn Deed {
        match self {
            Self::Lvm(step) => step,
            Self::Md(step) => step,
            Self::Filesystem(step) => step,
            Self::Drbd(step) => step,
        }
    }
}

/// Devices that steps were given: those that have to hold nothing before, without the ones that the steps
/// themselves made.
#[must_use]
pub fn given(steps: &[Step]) -> Vec<String> {
    let made: Vec<String> = steps.iter().filter_map(|step| step.deed().makes()).collect();
    let needs = steps.iter().flat_map(|step| step.deed().needs());
    let devices = needs.filter_map(|need| match need {
        Need::Empty { device } => Some(device),
        Need::Volume { .. } | Need::Shrunk { .. } | Need::NoOtherFile { .. } => None,
    });
    devices.filter(|device| !made.contains(device)).collect()
}

/// A name that cannot be given to a program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} '{seen}' is not {allowed}")]
pub struct StepError {
    /// What the name is for.
    pub what: &'static str,
    /// As far as it can be shown.
    pub seen: String,
    /// What would do.
    pub allowed: &'static str,
}

/// Longest name of a volume, an array or a resource, in bytes; the device mapper takes 127 for group and volume together.
const NAME_BYTES_MAX: usize = 60;
/// Longest path of a device, in bytes.
const PATH_BYTES_MAX: usize = 200;
/// Most devices of a step.
const DEVICES_MAX: usize = 512;

/// Checks the name of a volume, an array or a resource.
///
/// # Errors
/// It is empty, long, begins with `-` or `.`, or has other signs than letters, digits, `_`, `-` and `.`.
pub fn check_name(what: &'static str, name: &str) -> Result<(), StepError> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"_-.".contains(&b);
    let good = (1..=NAME_BYTES_MAX).contains(&name.len())
        && name.bytes().all(plain)
        && !name.starts_with(['-', '.']);
    let allowed = "1 to 60 letters, digits, '_', '-' and '.', no '-' or '.' first";
    if good { Ok(()) } else { Err(StepError { what, seen: shown(name), allowed }) }
}

/// Checks the path of a device.
///
/// # Errors
/// It is not below `/dev/`, has `..` in it, or signs that no device has.
pub fn check_device(path: &str) -> Result<(), StepError> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"_-.:+/".contains(&b);
    let good = path.len() <= PATH_BYTES_MAX
        && path.strip_prefix("/dev/").is_some_and(|name| !name.is_empty() && !name.starts_with('/'))
        && path.bytes().all(plain)
        && !path.split('/').any(|part| part == "..");
    if good {
        Ok(())
    } else {
        Err(StepError { what: "the device", seen: shown(path), allowed: "a path below /dev/" })
    }
}

fn check_devices(devices: &[String], least: usize) -> Result<(), StepError> {
    if !(least..=DEVICES_MAX).contains(&devices.len()) {
        let seen = devices.len().to_string();
        return Err(StepError {
            what: "the number of devices",
            seen,
            allowed: "between 1 and 512: two or more for a mirror, three for RAID5, four (LVM: five) for RAID6",
        });
    }
    for (at, device) in devices.iter().enumerate() {
        check_device(device)?;
        if devices[..at].contains(device) {
            return Err(StepError { what: "the device", seen: shown(device), allowed: "named only once" });
        }
    }
    Ok(())
}

/// Checks an amount that may be left out.
fn check_above_zero(what: &'static str, amount: Option<u64>) -> Result<(), StepError> {
    match amount {
        Some(0) => Err(StepError { what, seen: "0".to_owned(), allowed: "above zero" }),
        _ => Ok(()),
    }
}

fn shown(text: &str) -> String {
    text.chars().take(80).flat_map(char::escape_default).collect()
}

fn argv(program: &str, arguments: &[&str], rest: &[String]) -> Argv {
    let first = std::iter::once(program).chain(arguments.iter().copied()).map(str::to_owned);
    first.chain(rest.iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Step> {
        let devices = || ["a", "b", "c", "d", "e"].map(|letter| format!("/dev/sd{letter}")).to_vec();
        let (chunk_kib, stripes) = (64, 18);
        let device = || "/dev/sda".to_owned();
        let mut all = vec![
            Step::Lvm(LvmStep::Drives { devices: devices(), align_kib: None }),
            Step::Lvm(LvmStep::Drives { devices: devices(), align_kib: Some(1152) }),
            Step::Lvm(LvmStep::Group { name: "vg0".into(), devices: devices() }),
            Step::Filesystem(FilesystemStep::Xfs {
                device: device(),
                chunk_kib,
                stripes,
                groups: None,
                log_unit_kib: None,
            }),
            Step::Filesystem(FilesystemStep::Xfs {
                device: device(),
                chunk_kib,
                stripes,
                groups: Some(4),
                log_unit_kib: Some(32),
            }),
            Step::Filesystem(FilesystemStep::Ext4 { device: device(), chunk_kib, stripes }),
        ];
        for level in [MdLevel::Raid10, MdLevel::Raid5, MdLevel::Raid6] {
            all.push(Step::Md(MdStep { name: "data".into(), level, chunk_kib, devices: devices() }));
        }
        let kinds = [LvmKind::Raid10, LvmKind::MirrorOverStripes, LvmKind::Raid5, LvmKind::Raid6];
        for (kind, extents) in
            kinds.map(|kind| (kind, None)).into_iter().chain([(LvmKind::Linear, Some(500))])
        {
            all.push(Step::Lvm(LvmStep::Volume {
                group: "vg0".into(),
                name: "data".into(),
                kind,
                chunk_kib,
                devices: devices(),
                extents,
            }));
        }
        all.extend(drbd::examples().into_iter().map(Step::Drbd));
        all
    }

    #[test]
    fn every_step_says_what_it_does_and_names_no_shell() {
        for step in all() {
            let deed = step.deed();
            assert_eq!(deed.check(), Ok(()), "{step:?}");
            assert!(!deed.says().is_empty() && !deed.says().ends_with('.'), "{step:?}");
            let mut commands = deed.undo();
            if let Act::Run(argv) = deed.act() {
                commands.push(argv);
            }
            for argv in commands {
                assert!(argv.len() >= 2 && argv[0] != "sh" && !argv.contains(&"-c".to_owned()), "{argv:?}");
            }
            for remains in deed.remains() {
                let (named, argv) = match remains {
                    Remains::Volume { device, activate, .. } => (device.starts_with("/dev/"), activate),
                    Remains::Group { name, list } => (!name.is_empty(), list),
                };
                assert!(named && argv.len() >= 2 && argv[0] != "sh", "{argv:?}");
            }
            for clear in deed.clear() {
                assert!(clear.says().starts_with("zeros ") && !clear.says().ends_with('.'), "{clear:?}");
            }
            let text = serde_json::to_string(&step).unwrap();
            assert_eq!(serde_json::from_str::<Step>(&text).unwrap(), step);
        }
    }

    #[test]
    fn a_name_that_is_an_option_or_a_path_is_none() {
        for bad in ["", "-f", "..", "a b", "a;b", "a/b", "a\n", "$(x)", &"x".repeat(61)] {
            assert!(check_name("the name", bad).is_err(), "{bad}");
        }
        for bad in
            ["", "sda", "/dev/", "/dev//x", "/dev/../etc/passwd", "/etc/x", "/dev/a b", "--force", "/dev/$x"]
        {
            assert!(check_device(bad).is_err(), "{bad}");
        }
        assert!(check_device("/dev/disk/by-id/wwn-0x5000c500a:b").is_ok());
    }

    /// Journals on hosts outlive the program that wrote them.
    #[test]
    fn steps_of_older_journals_are_read() {
        let read = |text: &str| serde_json::from_str::<Step>(text).unwrap().deed().act();
        let words = |text: &str| match read(text) {
            Act::Run(argv) => argv.join(" "),
            Act::Write { .. } => String::new(),
        };
        let md = r#"{"md":{"name":"data","chunk_kib":64,"devices":["/dev/sda","/dev/sdb"]}}"#;
        assert!(words(md).contains("--level=10 --layout=n2"), "{}", words(md));
        let xfs = r#"{"filesystem":{"xfs":{"device":"/dev/sda","chunk_kib":64,"stripes":18}}}"#;
        assert_eq!(words(xfs), "mkfs.xfs -d su=64k,sw=18 /dev/sda");
        let volume = r#"{"lvm":{"volume":{"group":"vg0","name":"data","kind":"raid10","chunk_kib":64,"devices":["/dev/sda","/dev/sdb"]}}}"#;
        assert!(words(volume).contains("--extents 100%FREE"), "{}", words(volume));
    }

    #[test]
    fn what_steps_made_themselves_was_not_given_to_them() {
        let devices = || vec!["/dev/sda".to_owned(), "/dev/sdb".to_owned()];
        let array = MdStep { name: "data".into(), level: MdLevel::Raid10, chunk_kib: 64, devices: devices() };
        let on_it = vec![array.path()];
        let (group, name) = ("vg0".to_owned(), "data".to_owned());
        let volume = LvmStep::Volume {
            group,
            name,
            kind: LvmKind::Linear,
            chunk_kib: 64,
            devices: on_it.clone(),
            extents: Some(9),
        };
        let ext4 = FilesystemStep::Ext4 { device: "/dev/vg0/data".into(), chunk_kib: 64, stripes: 1 };
        let on_array = Step::Lvm(LvmStep::Drives { devices: on_it, align_kib: None });
        let steps = [Step::Md(array), on_array, Step::Lvm(volume), Step::Filesystem(ext4)];
        assert_eq!(given(&steps), devices());
        // A filesystem stands on a volume, which is no drive.
        assert!(given(&steps[3..]).is_empty());
    }

    #[test]
    fn a_level_needs_its_drives() {
        let devices = |count: usize| (0..count).map(|n| format!("/dev/sd{n}")).collect::<Vec<_>>();
        let md = |level, count| {
            Step::Md(MdStep { name: "data".into(), level, chunk_kib: 64, devices: devices(count) })
        };
        let lvm = |kind, count| {
            let (group, name) = ("vg0".to_owned(), "data".to_owned());
            Step::Lvm(LvmStep::Volume {
                group,
                name,
                kind,
                chunk_kib: 64,
                devices: devices(count),
                extents: None,
            })
        };
        for (fits, few) in [
            (md(MdLevel::Raid5, 3), md(MdLevel::Raid5, 2)),
            (md(MdLevel::Raid6, 4), md(MdLevel::Raid6, 3)),
            (lvm(LvmKind::Raid5, 3), lvm(LvmKind::Raid5, 2)),
            (lvm(LvmKind::Raid6, 5), lvm(LvmKind::Raid6, 4)),
            (lvm(LvmKind::Linear, 1), lvm(LvmKind::Linear, 0)),
        ] {
            assert_eq!(fits.deed().check(), Ok(()), "{fits:?}");
            assert!(few.deed().check().is_err(), "{few:?}");
        }
    }

    #[test]
    fn names_are_checked_in_every_step() {
        let evil = |text: &str| {
            text.replace("/dev/sda", "/dev/sda; rm")
                .replace("vg0", "-vg")
                .replace("\"r0\"", "\"-r\"")
                .replace("\"data\"", "\"da ta\"")
        };
        for step in all() {
            let text = serde_json::to_string(&step).unwrap();
            let bad: Step = serde_json::from_str(&evil(&text)).unwrap();
            assert!(bad.deed().check().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_listing_names_what_its_step_makes_and_nothing_else() {
        for step in all() {
            let Some(listing) = step.deed().listing() else { continue };
            assert!(!listing.is_in(""), "an empty list has none of them");
            for name in &listing.names {
                assert!(listing.is_in(&format!("  keep/files\n  {name}  \n")), "{name}");
                assert!(!listing.is_in(&format!("  {name}2\n  keep/{name}\n")), "{name}");
            }
        }
    }
}
