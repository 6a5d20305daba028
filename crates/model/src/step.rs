//! Steps: one command each that makes something on a host (a volume, a filesystem, a replica), with the
//! commands that take it back.
//!
//! A step carries its own command, so that what a plan shows is what a host runs. What comes in: names and
//! sizes. What goes out: programs with their arguments, never a line for a shell. Nothing here runs anything.

mod check;
mod drbd;
mod drbd_option;
mod filesystem;
mod firewall;
mod install;
mod look;
mod lvm;
mod md;
mod operation;

pub use check::{StepError, check_device, check_name};
pub use drbd::DrbdStep;
pub use drbd_option::{
    DRBD_OPTIONS, DrbdForm, DrbdOption, DrbdSection, DrbdSubject, drbd_option, drbd_peer, drbd_show,
};
pub use filesystem::FilesystemStep;
pub use firewall::legacy_rules;
pub use install::{CHECK_PROGRAM, InstallStep, InstalledFile, InstalledUnit, KEPT_FILE};
pub use look::{Contents, DeviceRefusal, HostQuery, QueryEffect, QueryOutput, Space};
pub use lvm::{LvmKind, LvmStep};
pub use md::{MdLevel, MdStep};
pub use operation::{Act, Argv, Clear, Listing, Need, Own, Remains, Stamp, StepOperation};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One step on one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    /// Health checks.
    Install(InstallStep),
}

impl Step {
    /// What it can say of itself.
    #[must_use]
    pub fn operation(&self) -> &dyn StepOperation {
        match self {
            Self::Lvm(step) => step,
            Self::Md(step) => step,
            Self::Filesystem(step) => step,
            Self::Drbd(step) => step,
            Self::Install(step) => step,
        }
    }
}

/// Devices that steps were given: those that have to hold nothing before, without the ones that the steps
/// themselves made.
#[must_use]
pub fn given(steps: &[Step]) -> Vec<String> {
    let made: Vec<String> = steps.iter().filter_map(|step| step.operation().makes()).collect();
    let needs = steps.iter().flat_map(|step| step.operation().needs());
    let devices = needs.filter_map(|need| match need {
        Need::Empty { device } => Some(device),
        Need::Volume { .. }
        | Need::Shrunk { .. }
        | Need::NoOtherFile { .. }
        | Need::NoOtherProgram { .. } => None,
    });
    devices.filter(|device| !made.contains(device)).collect()
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
        all.extend(install::examples().into_iter().map(Step::Install));
        all
    }

    #[test]
    fn every_step_says_what_it_does_and_names_no_shell() {
        for step in all() {
            let operation = step.operation();
            assert_eq!(operation.check(), Ok(()), "{step:?}");
            assert!(!operation.says().is_empty() && !operation.says().ends_with('.'), "{step:?}");
            let mut commands = operation.undo();
            if let Act::Run(argv) = operation.act() {
                commands.push(argv);
            }
            for argv in commands {
                assert!(argv.len() >= 2 && argv[0] != "sh" && !argv.contains(&"-c".to_owned()), "{argv:?}");
            }
            for remains in operation.remains() {
                let (named, argv) = match remains {
                    Remains::Volume { device, activate, .. } => (device.starts_with("/dev/"), activate),
                    Remains::Group { name, list } => (!name.is_empty(), list),
                };
                assert!(named && argv.len() >= 2 && argv[0] != "sh", "{argv:?}");
            }
            for clear in operation.clear() {
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
        let read = |text: &str| serde_json::from_str::<Step>(text).unwrap().operation().act();
        let words = |text: &str| match read(text) {
            Act::Run(argv) => argv.join(" "),
            Act::Write { .. } | Act::Copy { .. } => String::new(),
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
            assert_eq!(fits.operation().check(), Ok(()), "{fits:?}");
            assert!(few.operation().check().is_err(), "{few:?}");
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
        // The files of an installation have names of their own.
        for step in all().into_iter().filter(|step| !matches!(step, Step::Install(_))) {
            let text = serde_json::to_string(&step).unwrap();
            let bad: Step = serde_json::from_str(&evil(&text)).unwrap();
            assert!(bad.operation().check().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_listing_names_what_its_step_makes_and_nothing_else() {
        for step in all() {
            let Some(listing) = step.operation().listing() else { continue };
            assert!(!listing.is_in(""), "an empty list has none of them");
            for name in &listing.names {
                assert!(listing.is_in(&format!("  keep/files\n  {name}  \n")), "{name}");
                assert!(!listing.is_in(&format!("  {name}2\n  keep/{name}\n")), "{name}");
            }
        }
    }
}
