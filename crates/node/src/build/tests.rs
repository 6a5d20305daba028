//! Builds on this machine: steps on real files and with real programs, their journal, and the way back. No
//! device is touched but loop devices.

#![allow(clippy::unwrap_used)]

mod killed;

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use linerate_load::guard;
use linerate_model::step::{DrbdStep, FilesystemStep, LvmKind, LvmStep, Need, StepOperation as _};

use super::*;

fn builds(folder: &Path) -> Builds {
    Builds::new(folder, "here")
}

#[test]
fn a_device_that_is_none_or_holds_something_is_never_given_to_a_program() {
    let folder = tempfile::tempdir().unwrap();
    let builds = builds(folder.path());
    // `/dev/null` is a device, and no block device; the other is nothing.
    for device in ["/dev/null", "/dev/linerate-is-not-there"] {
        let step = Step::Lvm(LvmStep::Drives { devices: vec![device.to_owned()], align_kib: None });
        let error = builds.step("b", &step).unwrap_err();
        assert!(matches!(error, BuildError::InTheWay { .. }), "{error}");
    }
    assert!(builds.journals.list().unwrap().is_empty(), "nothing was begun");
    // Asked before: all that are in the way at once.
    let devices = vec!["/dev/null".to_owned(), "/dev/linerate-is-not-there".to_owned()];
    let seen = builds.look(&HostQuery::Empty { devices }, &AtomicBool::new(false)).unwrap();
    let refused: Vec<DeviceRefusal> = serde_json::from_str(&seen.out).unwrap();
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert_eq!(refused[0], DeviceRefusal { device: "/dev/null".into(), why: "it is no block device".into() });
}

#[test]
fn names_are_checked_before_anything_else() {
    let folder = tempfile::tempdir().unwrap();
    let builds = builds(folder.path());
    let up = |resource: &str| Step::Drbd(DrbdStep::Up { resource: resource.to_owned() });
    for (build, step) in [("../b", up("r0")), ("b", up("-r")), ("b", up("all")), ("", up("r0"))] {
        assert!(matches!(builds.step(build, &step), Err(BuildError::Name(_))));
    }
    let stop = AtomicBool::new(false);
    let look = HostQuery::DrbdGeneration { resource: "r0; reboot".to_owned() };
    assert!(matches!(builds.look(&look, &stop), Err(BuildError::Name(_))));
    assert!(matches!(builds.undo("b", false), Err(BuildError::NoBuild { .. })));
}

#[test]
fn a_step_is_in_the_journal_before_its_program_runs_and_stays_when_that_fails() {
    let folder = tempfile::tempdir().unwrap();
    let builds = builds(folder.path());
    // A group of drives that are none: either LVM is not here, or it refuses.
    let step = Step::Lvm(LvmStep::Group {
        name: "linerate-no-group".to_owned(),
        devices: vec!["/dev/linerate-is-not-there".to_owned()],
    });
    let error = builds.step("b", &step).unwrap_err();
    assert!(matches!(error, BuildError::Failed { .. } | BuildError::Start { .. }), "{error}");
    let entries = super::Builds::new(folder.path(), "here").journals.list().unwrap();
    assert_eq!((entries.len(), entries[0].whole, entries[0].steps.len()), (1, false, 1));
    // Once more is the same step, not another one.
    assert!(builds.step("b", &step).is_err());
    assert_eq!(builds.journals.list().unwrap()[0].steps.len(), 1);
    // What had failed itself is no obstacle on the way back.
    let lines = builds.undo("b", false).unwrap();
    assert_eq!(lines, ["vgremove -- linerate-no-group"]);
    assert!(builds.journals.list().unwrap().is_empty());
}

#[test]
fn a_file_of_somebody_else_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r0.res");
    let need = |text: &str| {
        needs::claim(&[Need::NoOtherFile { path: path.display().to_string(), text: text.to_owned() }])
            .map(drop)
    };
    assert_eq!(need("ours"), Ok(()));
    std::fs::write(&path, "ours").unwrap();
    assert_eq!(need("ours"), Ok(()), "a step that is done again");
    assert!(need("other").unwrap_err().why.contains("is there already"));
}

#[test]
fn a_file_is_put_back_unless_somebody_else_wrote_it_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let builds = builds(folder.path());
    let path = folder.path().join("r0.res");
    let text = |text: &str| Content::Text(text.to_owned());
    let before = text("old");
    std::fs::write(&path, "ours").unwrap();
    builds.put_back(&path, "ours", Some(&before)).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
    builds.put_back(&path, "ours", Some(&before)).unwrap();
    std::fs::write(&path, "theirs").unwrap();
    assert!(builds.put_back(&path, "ours", Some(&before)).is_err());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "theirs");
    std::fs::write(&path, "ours").unwrap();
    builds.put_back(&path, "ours", None).unwrap();
    assert!(!path.exists());
}

/// As mkfs.xfs 6.1 ended on a volume that was too small: the reason, and 14 lines of its options.
#[test]
fn the_usage_of_a_program_is_no_reason() {
    let printed = "Log size must be at least 64MB.\nUsage: mkfs.xfs\n/* blocksize */\t\t[-b size=num]\n";
    assert_eq!(run::words(printed), "Log size must be at least 64MB.");
    assert_eq!(run::words("  one\n  two  \n\n"), "one;   two");
    assert_eq!(run::words("usage: x FILE\nmore"), "usage: x FILE; more", "the only words there are");
    assert_eq!(run::words(""), "");
    assert_eq!(run::words(&"\u{e9}".repeat(2000)).chars().count(), 600);
}

#[test]
fn a_program_is_bounded_and_its_words_are_kept() {
    let stop = AtomicBool::new(false);
    let argv = |words: &[&str]| -> Argv { words.iter().map(|word| (*word).to_owned()).collect() };
    let seen = run::run(&argv(&["ls", "/linerate-is-not-there"]), LOOK_LIMIT, Until::Stopped(&stop))
        .unwrap()
        .unwrap();
    assert!(!seen.is_good() && seen.err.contains("linerate-is-not-there"), "{seen:?}");
    let late = run::run(&argv(&["sleep", "60"]), Duration::from_millis(30), Until::Stopped(&stop)).unwrap();
    assert_eq!(late, None);
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(run::run(&argv(&["sleep", "60"]), LOOK_LIMIT, Until::Stopped(&stop)).unwrap(), None);
    let folder = tempfile::tempdir().unwrap();
    let running = Running::take(&folder.path().join("lock"), Duration::ZERO).unwrap().unwrap();
    let until = Until::Ended(&running);
    assert!(run::run(&argv(&["linerate-is-not-there"]), LOOK_LIMIT, until).is_err());
    // Its input is empty.
    let seen = run::run(&argv(&["cat"]), LOOK_LIMIT, until).unwrap().unwrap();
    assert!(seen.is_good() && seen.out.is_empty() && seen.err.is_empty(), "{seen:?}");
    // What a shell would take for a command is one word.
    let seen = run::run(&argv(&["echo", "$(id); `id`"]), LOOK_LIMIT, until).unwrap().unwrap();
    assert_eq!(seen.out, "$(id); `id`\n");
}

#[test]
fn a_journal_is_private_and_one_that_another_user_could_have_written_is_not_used() {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let builds = builds(&state);
    let step = Step::Lvm(LvmStep::Group {
        name: "linerate-no-group".to_owned(),
        devices: vec!["/dev/linerate-is-not-there".to_owned()],
    });
    assert!(builds.step("b", &step).is_err(), "there is no such device");
    let path = state.join("builds/b.json");
    assert_eq!((mode(&state), mode(&state.join("builds")), mode(&path)), (0o700, 0o700, 0o600));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    let error = builds.undo("b", false).unwrap_err();
    assert!(error.to_string().contains("b.json is writable by other users"), "{error}");
    assert!(error.to_string().contains("`ls -ld "), "{error}");
}

#[test]
fn a_journal_of_another_build_or_with_a_step_that_is_none_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let builds = builds(&state);
    let path = state.join("builds/b.json");
    let step = |resource: &str| Step::Drbd(DrbdStep::Down { resource: resource.to_owned() });
    for (build, resource, named) in [
        ("../../b", "r0", "it names another build, `../../b`"),
        ("c", "r0", "it names another build, `c`"),
        ("b", "--force", "it names a step that cannot be done"),
        ("b", "../r0", "it names a step that cannot be done"),
    ] {
        let done = Done {
            step: step(resource),
            before: None,
            was_there: false,
            whole: true,
            stamps: BTreeMap::new(),
        };
        let mut journal = Journal::new("here", "b", 0);
        journal.steps.push(done);
        builds.journals.write(&journal).unwrap();
        journal.build = build.to_owned();
        let text = serde_json::to_string(&journal).unwrap();
        std::fs::write(&path, &text).unwrap();
        for error in [builds.undo("b", false).unwrap_err(), builds.step("b", &step("r0")).unwrap_err()] {
            assert!(error.to_string().contains(named), "{error}");
            assert!(error.to_string().contains("`mv "), "{error}");
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "{named}");
    }
    assert_eq!(std::fs::read_dir(&state).unwrap().count(), 1, "nothing outside the folder of builds");
}

/// A loop device as the volume `/dev/GROUP/data` of a build that stands in a journal; gone at the end, also
/// after a failure.
struct Volume {
    folder: tempfile::TempDir,
    device: String,
    group: String,
}

impl Volume {
    const BYTES: u64 = 64 << 20;

    fn new(test: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("drive");
        File::create(&image).unwrap().set_len(Self::BYTES).unwrap();
        let made = Command::new("losetup").args(["--find", "--show"]).arg(&image).output();
        let Some(made) = made.ok().filter(|made| made.status.success()) else {
            println!("SKIPPED {test}: no loop device");
            return None;
        };
        let device = String::from_utf8(made.stdout).unwrap().trim().to_owned();
        let group = format!("linerate-test-{}-{}", std::process::id(), device.trim_start_matches("/dev/"));
        let volume = Self { folder, device, group };
        std::fs::create_dir(volume.link().parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(&volume.device, volume.link()).unwrap();
        Volume::settle();
        if let Err(why) = guard::empty(&volume.link()) {
            println!("SKIPPED {test}: {why}");
            return None;
        }
        Some(volume)
    }

    fn link(&self) -> PathBuf {
        Path::new("/dev").join(&self.group).join("data")
    }

    /// Waits until the device manager has looked at what changed, where there is one.
    fn settle() {
        let _ = Command::new("udevadm").args(["settle", "--timeout=60"]).output();
    }

    fn write(&self, at: u64, content: &[u8]) {
        let file = File::options().write(true).open(&self.device).unwrap();
        file.write_all_at(content, at).unwrap();
        file.sync_data().unwrap();
    }

    fn run(&self, program: &str, arguments: &[&str]) -> bool {
        let done = Command::new(program).args(arguments).arg(&self.device).output();
        done.is_ok_and(|done| done.status.success())
    }

    /// The journal of a build that ended well, with a filesystem or without.
    fn build(&self, has_filesystem: bool) -> Builds {
        let builds = builds(self.folder.path());
        let mut journal = Journal::new("here", "disk-data", 1);
        let mut steps = vec![Step::Lvm(LvmStep::Volume {
            group: self.group.clone(),
            name: "data".to_owned(),
            kind: LvmKind::Raid10,
            chunk_kib: 64,
            devices: vec!["/dev/linerate-a".to_owned(), "/dev/linerate-b".to_owned()],
            extents: None,
        })];
        if has_filesystem {
            let device = self.link().display().to_string();
            steps.push(Step::Filesystem(FilesystemStep::Xfs {
                device,
                chunk_kib: 64,
                stripes: 4,
                groups: None,
                log_unit_kib: None,
            }));
        }
        let done = |step| Done { step, before: None, was_there: false, whole: true, stamps: BTreeMap::new() };
        journal.steps = steps.into_iter().map(done).collect();
        builds.journals.write(&journal).unwrap();
        builds
    }

    /// Nothing but zeros again, whatever is there.
    fn empty(&self) {
        self.write(0, &vec![0; Self::BYTES as usize]);
        Self::settle();
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.link());
        let _ = std::fs::remove_dir(self.link().parent().unwrap());
        let _ = Command::new("losetup").args(["-d", &self.device]).output();
    }
}

/// What others made of a volume, by a program (where it is installed) or by its mark, and what the undo
/// reports.
type Made = (&'static str, fn(&Volume) -> bool, &'static str);

/// Each row is data of others on a volume that is not mounted.
const MADE: &[Made] = &[
    ("ext4", |v| v.run("mkfs.ext4", &["-q", "-F"]), "it has the mark of ext2, ext3 or ext4 at byte 1080"),
    ("swap", |v| v.run("mkswap", &[]), "it has the mark of swap at byte 4086"),
    ("btrfs", |v| v.marked(65_600, b"_BHRfS_M"), "it has the mark of btrfs at byte 65600"),
    ("LUKS", |v| v.marked(0, b"LUKS\xba\xbe"), "it has the mark of LUKS at byte 0"),
    (
        "a physical volume that is not active",
        |v| v.marked(512, b"LABELONE"),
        "it has the mark of LVM at byte 512",
    ),
    (
        "the disk of a replica that is down",
        |v| v.marked(Volume::BYTES - 4096 + 60, b"\x83\x74\x02\x6d"),
        "it has the mark of DRBD at byte 67104828",
    ),
    ("a partition table", |v| v.marked(512, b"EFI PART"), "it has the mark of GPT at byte 512"),
    ("a database on the bare volume", |v| v.marked(0, b"page 0"), "there is data at byte 0"),
    ("one that begins later", |v| v.marked(Volume::BYTES / 4096 * 777, b"page"), "there is data at byte "),
    ("one at the end", |v| v.marked(Volume::BYTES - 8, b"the end."), "there is data at byte 67108856"),
];

impl Volume {
    fn marked(&self, at: u64, mark: &[u8]) -> bool {
        self.write(at, mark);
        true
    }
}

#[test]
fn a_volume_on_which_others_made_something_is_not_undone_until_that_is_given_up() {
    let Some(volume) = Volume::new("a_volume_on_which_others_made_something_is_not_undone") else { return };
    for has_filesystem in [false, true] {
        let builds = volume.build(has_filesystem);
        for (name, make, answer) in MADE {
            if !make(&volume) {
                println!("SKIPPED {name}: its program is not here");
                continue;
            }
            Volume::settle();
            let mut before = vec![0; 2 << 20];
            File::open(&volume.device).unwrap().read_exact_at(&mut before, 0).unwrap();
            let refused = builds.undo("disk-data", false).unwrap_err();
            assert!(matches!(refused, BuildError::Stands { .. }), "{name}: {refused}");
            let expected =
                format!("here: build `disk-data` is left as it is: {}: {answer}", volume.link().display());
            assert!(refused.to_string().starts_with(&expected), "{name}: {refused}");
            assert!(refused.to_string().ends_with("give up what may go: --discard data"), "{refused}");
            let mut after = vec![0; 2 << 20];
            File::open(&volume.device).unwrap().read_exact_at(&mut after, 0).unwrap();
            assert!(before == after, "{name}: nothing was written");
            assert_eq!(
                builds.journals.list().unwrap()[0].steps.len(),
                1 + usize::from(has_filesystem),
                "{name}"
            );
            volume.empty();
        }
    }
    // Given up: it gets as far as the command that removes the volume, which is none of LVM.
    let builds = volume.build(true);
    volume.write(0, b"page 0");
    Volume::settle();
    let failed = builds.undo("disk-data", true).unwrap_err();
    assert!(
        matches!(failed, BuildError::NotUndone { .. }) && failed.to_string().contains("lvremove"),
        "{failed}"
    );
}

/// What is in use is not given up by a name.
#[test]
fn a_volume_in_use_is_not_undone_whatever_is_typed() {
    let Some(volume) = Volume::new("a_volume_in_use_is_not_undone_whatever_is_typed") else { return };
    let builds = volume.build(false);
    let other = File::open(&volume.device).unwrap();
    for discard in [false, true] {
        let refused = builds.undo("disk-data", discard).unwrap_err();
        assert!(matches!(refused, BuildError::Stands { .. }), "{refused}");
        assert!(refused.line().ends_with(" open (open)"), "{refused}");
        assert!(refused.to_string().contains("undo again"), "{refused}");
    }
    drop(other);
    Volume::settle();
    // A volume that is not in use and that holds nothing goes as far as LVM.
    assert!(matches!(builds.undo("disk-data", false), Err(BuildError::NotUndone { .. })));
}

#[test]
fn volumes_of_others_in_the_group_and_changed_files_are_obstacles() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r0.res");
    let group =
        |name: &str| Step::Lvm(LvmStep::Group { name: name.to_owned(), devices: vec!["/dev/a".to_owned()] });
    let mut journal = Journal::new("here", "disk-data", 1);
    let done = |step| Done { step, before: None, was_there: false, whole: true, stamps: BTreeMap::new() };
    journal.steps.push(done(group("linerate-no-group")));
    let listed = |out: &str, code| {
        let seen = QueryOutput { out: out.to_owned(), code, ..QueryOutput::default() };
        let all = remains::obstacles(&journal, &|_| Some(seen.clone()), &|_| None);
        all.into_iter().map(|one| (one.what, one.discardable)).collect::<Vec<_>>()
    };
    assert_eq!(listed("  data\n  old\n", 0).len(), 1);
    let (what, discardable) = listed("  old\n", 0).remove(0);
    assert!(what.contains("holds old, which this build did not make") && !discardable, "{what}");
    assert_eq!((listed("", 0), listed("no such group", 5)), (vec![], vec![]));
    // A resource file that was changed since.
    let now = |text: &str| Content::Text(text.to_owned());
    assert!(check_own(&path, Some(&now("ours")), "ours", None).is_ok());
    assert!(check_own(&path, None, "ours", None).is_ok(), "put back before");
    let other = check_own(&path, Some(&now("theirs")), "ours", None);
    assert!(matches!(other, Err(BuildError::Overwritten { .. })), "{other:?}");
}

/// The device of a step is held until its program is executed, and is then the program's.
#[test]
fn a_device_is_held_until_the_program_of_a_step_has_it() {
    let Some(volume) = Volume::new("a_device_is_held_until_the_program_of_a_step_has_it") else { return };
    let need = Need::Empty { device: volume.device.clone() };
    let claims = needs::claim(std::slice::from_ref(&need)).unwrap();
    let second = needs::claim(std::slice::from_ref(&need)).unwrap_err();
    assert!(second.why.ends_with(" open (open)"), "{second:?}");
    claims.again().unwrap();
    // It claims the device itself, as mkfs, mdadm and pvcreate do.
    let opened = ["python3", "-c", "import os, sys; os.close(os.open(sys.argv[1], os.O_RDWR | os.O_EXCL))"];
    let argv: Argv = opened.iter().map(|word| (*word).to_owned()).chain([volume.device.clone()]).collect();
    match run::run_with(&argv, STEP_LIMIT, Until::Limit, claims.into_files()) {
        Ok(seen) => assert!(seen.clone().unwrap().is_good(), "{seen:?}"),
        Err(error) => {
            println!("SKIPPED a_device_is_held_until_the_program_of_a_step_has_it: python3: {error}");
        }
    }
    Volume::settle();
    assert!(needs::claim(&[need]).is_ok());
}

/// A name below `/dev` for a file; gone at the end, also after a failure.
struct Named(PathBuf);

impl Named {
    fn new(file: &Path) -> std::io::Result<Self> {
        let path = PathBuf::from(format!("/dev/linerate-test-{}-drive", std::process::id()));
        std::os::unix::fs::symlink(file, &path)?;
        Ok(Self(path))
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Names of devices change: the drive of a replica is another one now, whose metadata are not wiped.
#[test]
fn metadata_of_another_replica_are_not_wiped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("drive");
    let file = File::options().create_new(true).read(true).write(true).open(&path).unwrap();
    file.set_len(8 << 20).unwrap();
    let superblock = |identifier: u8| {
        file.write_all_at(&[identifier; 8], (8 << 20) - 4096 + 40).unwrap();
        file.write_all_at(b"\x83\x74\x02\x6b", (8 << 20) - 4096 + 60).unwrap();
    };
    superblock(1);
    let named = match Named::new(&path) {
        Ok(named) => named,
        Err(error) => return println!("SKIPPED metadata_of_another_replica_are_not_wiped: /dev: {error}"),
    };
    let metadata = DrbdStep::Metadata {
        resource: "r0".to_owned(),
        device: named.0.display().to_string(),
        filesystem_max_bytes: None,
        overwritten: None,
    };
    let stamps = stamps::read(&metadata.stamp().unwrap());
    assert_eq!(stamps.len(), 1);
    let mut journal = Journal::new("here", "drbd-r0", 1);
    journal.steps.push(Done {
        step: Step::Drbd(metadata),
        before: None,
        was_there: false,
        whole: true,
        stamps,
    });
    let obstacles = || remains::obstacles(&journal, &|_| None, &|_| None);
    assert_eq!(obstacles(), []);
    superblock(2);
    assert!(obstacles()[0].discardable, "{:?}", obstacles());
    let builds = builds(folder.path());
    builds.journals.write(&journal).unwrap();
    assert!(matches!(builds.undo("drbd-r0", false), Err(BuildError::Stands { .. })));
    // The name was typed: it stays as it is, and the journal is closed.
    let lines = builds.undo("drbd-r0", true).unwrap();
    assert!(lines.len() == 1 && lines[0].starts_with("left as it is: "), "{lines:?}");
    assert!(builds.journals.list().unwrap().is_empty());
}

/// A step that no host lets through.
fn metadata(device: &str) -> Step {
    let (resource, device) = ("linerate-no-resource".to_owned(), device.to_owned());
    Step::Drbd(DrbdStep::Metadata { resource, device, filesystem_max_bytes: None, overwritten: None })
}

#[test]
fn what_follows_waits_for_the_program_of_a_node_that_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let builds = builds(folder.path());
    std::fs::create_dir_all(builds.journals.folder()).unwrap();
    // The program lives on with the lock as its input; the node that started it has closed its own copy.
    let running = Running::take(&builds.journals.folder().join(".running"), Duration::ZERO).unwrap().unwrap();
    let mut program =
        std::process::Command::new("sleep").arg("600").stdin(running.input().unwrap()).spawn().unwrap();
    drop(running);
    let taken = Running::take(&builds.journals.folder().join(".running"), Duration::ZERO).unwrap();
    let refused = [builds.step("b", &metadata("/dev/null")).err(), builds.undo("b", false).err()];
    program.kill().unwrap();
    program.wait().unwrap();
    assert!(taken.is_none());
    for error in refused {
        let error = error.unwrap();
        assert!(
            matches!(error, BuildError::StillRuns { .. }) && error.to_string().contains("ps -ef"),
            "{error}"
        );
    }
    assert!(builds.journals.list().unwrap().is_empty(), "nothing was begun");
    assert!(
        matches!(builds.undo("b", false), Err(BuildError::NoBuild { .. })),
        "it goes on when the program has ended"
    );
}
