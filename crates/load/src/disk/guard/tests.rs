//! How people destroy disks with other tools, each a test: trees as the kernel shows them, and real loop
//! devices.
#![allow(clippy::unwrap_used)]

mod users;

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use linerate_sys::block::{self, DeviceNode, Number};
use linerate_sys::pages::Buffer;
use linerate_sys::root::Root;
use linerate_sys::uring::Ring;

use super::candidate::{Candidate, candidate, find};
use super::programs::{self, Reach};
use super::signatures::{SIGNATURES, byte_of};
use super::{
    DeviceClaim, WantedContent, WriteRefusal, again, check_users, claim, content, empty, named, unused, users,
};
use crate::job::LoadError;

const SIZE: u64 = 64 << 20;
const NUMBER: Number = Number { major: 8, minor: 16 };

/// A tree with the unused drive `sdb`, and `sda` with the system on it.
struct Tree(tempfile::TempDir);

impl Tree {
    fn new() -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        for (device, number, parts) in [("sda", "8:0", 2), ("sdb", "8:16", 0)] {
            let folder = format!("sys/block/{device}");
            tree.file(&format!("{folder}/dev"), number);
            tree.file(&format!("{folder}/ro"), "0");
            tree.folder(&format!("{folder}/holders"));
            tree.folder(&format!("{folder}/queue"));
            for part in 1..=parts {
                tree.partition(device, part, &format!("8:{part}"));
            }
        }
        tree.folder("sys/block/loop0");
        tree.file("proc/swaps", "Filename Type Size Used Priority\n/dev/sda2 partition 1 0 -2\n");
        tree.file("proc/1/mountinfo", "25 1 8:1 / / rw - ext4 /dev/sda1 rw\n");
        tree
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn folder(&self, path: &str) {
        fs::create_dir_all(self.path(path)).unwrap();
    }

    fn file(&self, path: &str, text: &str) {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        fs::write(self.path(path), format!("{text}\n")).unwrap();
    }

    fn partition(&self, device: &str, part: u32, number: &str) {
        let folder = format!("sys/block/{device}/{device}{part}");
        self.file(&format!("{folder}/partition"), &part.to_string());
        self.file(&format!("{folder}/dev"), number);
        self.file(&format!("{folder}/ro"), "0");
        self.folder(&format!("{folder}/holders"));
    }

    /// A file that exists and cannot be read, for this reason.
    fn refused(&self, path: &str, reason: &str) {
        let notes = format!("{{\"refused\": {{\"{path}\": \"{reason}\"}}}}");
        self.file("linerate/files.json", &notes);
    }

    fn asked(&self, path: &str, number: Number, typed: &str) -> Result<(), WriteRefusal> {
        let root = Root::recorded(self.0.path());
        let candidate = find(&root, PathBuf::from(path), number)?;
        check_users(&candidate)?;
        named(&candidate, typed)
    }

    fn asked_for_sdb(&self) -> Result<(), WriteRefusal> {
        self.asked("/dev/sdb", NUMBER, "sdb")
    }
}

/// What was done before, what the guard answers.
type Case = (&'static str, fn(&Tree), &'static str);

/// Each row is a known data loss with tools that write to any given path (axboe/fio issues 1007, 1382, 1550
/// and 1637; mkfs and dd on a wrong name; names that changed over a reboot).
const CASES: &[Case] = &[
    (
        "the drive is mounted",
        |t| t.file("proc/1/mountinfo", "25 1 8:16 / /data rw - xfs /dev/sdb rw"),
        "sdb is mounted on /data (seen by process 1) (mounted)",
    ),
    (
        "it is mounted in a container only",
        |t| t.file("proc/4711/mountinfo", "99 1 8:16 / /var/lib/inside rw - ext4 /dev/sdb rw"),
        "sdb is mounted on /var/lib/inside (seen by process 4711)",
    ),
    (
        "btrfs shows a number without a device",
        |t| t.file("proc/1/mountinfo", "25 1 0:45 / /pool rw - btrfs /dev/sdb rw"),
        "sdb is mounted on /pool",
    ),
    (
        "a partition of it is mounted (fio #1382)",
        |t| {
            t.partition("sdb", 1, "8:17");
            t.file("proc/1/mountinfo", "25 1 8:17 / /home rw - xfs /dev/sdb1 rw");
        },
        "sdb1 is mounted on /home",
    ),
    ("it has partitions that are not in use", |t| t.partition("sdb", 1, "8:17"), "it has partitions: sdb1"),
    (
        "LVM, md, multipath or DRBD stands on it",
        |t| t.folder("sys/block/sdb/holders/dm-0"),
        "dm-0 stands on sdb (held)",
    ),
    (
        "something stands on a partition of it",
        |t| {
            t.partition("sdb", 2, "8:18");
            t.folder("sys/block/sdb/sdb2/holders/md0");
        },
        "md0 stands on sdb2",
    ),
    (
        "the kernel swaps to it",
        |t| t.file("proc/swaps", "Filename Type Size Used Priority\n/dev/sdb partition 1 0 -2"),
        "the kernel swaps to sdb (swap)",
    ),
    (
        "a loop device stands on it",
        |t| t.file("sys/block/loop0/loop/backing_file", "/dev/sdb"),
        "loop0 stands on it",
    ),
    (
        "an NVMe target exports it, which the kernel calls no holder",
        |t| {
            let space = "sys/kernel/config/nvmet/subsystems/nqn.2026-01.example:store/namespaces/1";
            t.folder(space);
            t.file(&format!("{space}/device_path"), "/dev/sdb");
        },
        "the NVMe target nqn.2026-01.example:store exports it (exported)",
    ),
    (
        "an NVMe target exports a partition of it",
        |t| {
            t.partition("sdb", 1, "8:17");
            let space = "sys/kernel/config/nvmet/subsystems/n/namespaces/7";
            t.folder(space);
            t.file(&format!("{space}/device_path"), "/dev/sdb1");
        },
        "it has partitions: sdb1",
    ),
    ("it is read-only", |t| t.file("sys/block/sdb/ro", "1"), "it is read-only"),
    (
        "holders cannot be seen",
        |t| fs::remove_dir(t.path("sys/block/sdb/holders")).unwrap(),
        "what stands on it cannot be seen",
    ),
    (
        "whether it has a partition cannot be read (EIO)",
        |t| t.refused("/sys/block/sdb/queue/partition", "input/output error"),
        "its partitions cannot be seen: /sys/block/sdb/queue/partition: input/output error",
    ),
    (
        "mounts of a process cannot be read for want of descriptors (EMFILE)",
        |t| {
            t.file("proc/1/stat", "1 (init) S 0 1 1 0 -1 4194560 0");
            t.refused("/proc/1/mountinfo", "too many open files");
        },
        "mounts of process 1 cannot be seen: too many open files (mounted)",
    ),
    (
        "mounts of a process may not be read",
        |t| {
            t.file("proc/1/stat", "1 (init) S 0 1 1 0 -1 4194560 0");
            t.refused("/proc/1/mountinfo", "permission denied");
        },
        "mounts of process 1 cannot be seen: permission denied (mounted)",
    ),
    (
        "what a loop device stands on cannot be read",
        |t| t.refused("/sys/block/loop0/loop/backing_file", "input/output error"),
        "what loop0 stands on cannot be seen: input/output error",
    ),
    (
        "a loop device stands on a partition",
        |t| {
            t.partition("sdb", 1, "8:17");
            t.file("sys/block/loop0/loop/backing_file", "/dev/sdb1");
        },
        "it has partitions: sdb1",
    ),
    ("processes cannot be seen", |t| fs::remove_dir_all(t.path("proc")).unwrap(), "processes cannot be seen"),
];

#[test]
fn what_somebody_uses_is_not_written() {
    assert!(Tree::new().asked_for_sdb().is_ok(), "the tree by itself is free");
    for (name, make, answer) in CASES {
        let tree = Tree::new();
        make(&tree);
        let refused = tree.asked_for_sdb().expect_err(name).to_string();
        assert!(refused.starts_with(answer), "{name}: {refused}");
    }
}

/// A process that ended has no mounts, whatever error reading them returns; another one of its namespace is
/// read instead.
#[test]
fn a_process_that_ended_is_no_reason() {
    let tree = Tree::new();
    tree.refused("/proc/1/mountinfo", "invalid argument");
    for stat in ["1 (a) b) Z 0 1 1 0 -1 4194560 0", "1 (init) R 0 1 1 0 -1 4194564 0"] {
        tree.file("proc/1/stat", stat);
        assert!(tree.asked_for_sdb().is_ok(), "{stat}");
    }
    tree.file("proc/2/mountinfo", "25 1 8:16 / /data rw - xfs /dev/sdb rw");
    assert!(tree.asked_for_sdb().unwrap_err().to_string().contains("mounted on /data (seen by process 2)"));
}

fn reach(tree: &Tree, path: &str, number: Number) -> Result<Reach, WriteRefusal> {
    Reach::of(&find(&Root::recorded(tree.0.path()), PathBuf::from(path), number)?)
}

fn numbers(list: &[(Number, String)]) -> Vec<String> {
    list.iter().map(|(number, name)| format!("{name} {number}")).collect()
}

/// A virtual machine or a tool that has the drive in hand past the block layer.
#[test]
fn character_devices_of_the_same_drive_count() {
    let tree = Tree::new();
    tree.file("sys/block/sdb/device/scsi_generic/sg3/dev", "21:3");
    tree.file("sys/block/sdb/device/bsg/0:0:1:0/dev", "248:3");
    tree.partition("sdb", 1, "8:17");
    let drive = reach(&tree, "/dev/sdb", NUMBER).unwrap();
    assert_eq!(numbers(&drive.block), ["sdb 8:16", "sdb1 8:17"]);
    assert_eq!(numbers(&drive.character), ["sg3 21:3", "0:0:1:0 248:3"]);
    let part = reach(&tree, "/dev/sdb1", Number { major: 8, minor: 17 }).unwrap();
    assert_eq!(numbers(&part.block), ["sdb1 8:17", "sdb 8:16"]);
    assert_eq!(part.character, drive.character);
    tree.refused("/sys/block/sdb/device/scsi_generic/sg3/dev", "input/output error");
    assert!(reach(&tree, "/dev/sdb", NUMBER).unwrap_err().to_string().contains("input/output error"));

    // NVMe: the controller, or all controllers of the subsystem, and the generic device of this namespace
    // alone.
    let number = Number { major: 259, minor: 0 };
    for (files, expected) in [
        (
            vec![("dev", "239:0"), ("ng0n1/dev", "240:0"), ("ng0n2/dev", "240:1")],
            vec!["ng0n1 240:0", "nvme0 239:0"],
        ),
        (
            vec![
                ("nvme1/dev", "239:1"),
                ("nvme2/dev", "239:2"),
                ("ng0n1/dev", "240:0"),
                ("nvme0n2/dev", "259:1"),
            ],
            vec!["ng0n1 240:0", "nvme1 239:1", "nvme2 239:2"],
        ),
    ] {
        let tree = Tree::new();
        tree.file("sys/block/nvme0n1/dev", "259:0");
        for (file, number) in files {
            tree.file(&format!("sys/block/nvme0n1/device/{file}"), number);
        }
        assert_eq!(numbers(&reach(&tree, "/dev/nvme0n1", number).unwrap().character), expected);
    }
}

#[test]
fn an_open_character_device_is_a_user() {
    if !sees_all("an_open_character_device_is_a_user") {
        return;
    }
    let number = Number { major: 1, minor: 7 };
    let reach = || [Reach { block: Vec::new(), character: vec![(number, "sg3".to_owned())] }];
    let users = |own: &[_]| programs::users(&Root::live(), &reach(), own).unwrap().remove(0);
    let file = File::open("/dev/full").unwrap();
    let this = format!("process {} ", std::process::id());
    let user = users(&[]).unwrap().to_string();
    assert!(user.starts_with(&this) && user.ends_with("has sg3 open"), "{user}");
    assert!(users(&[file.as_raw_fd()]).is_none(), "the own file does not count");
}

#[test]
fn files_of_an_io_uring_are_read_from_what_the_kernel_lists() {
    let text = "pos:\t0\nSqMask:\t0x7\nUserFiles:\t3\n    0: /dev/sdb\n    2: /var/lib/a\\040b\nUserBufs:\t0\n    0: 4/4\n";
    assert_eq!(programs::parse_fixed_files(text).unwrap(), ["/dev/sdb", "/var/lib/a\\040b"]);
    assert_eq!(programs::parse_fixed_files("UserFiles:\t0\n"), Some(Vec::new()));
    assert_eq!(programs::parse_fixed_files("pos:\t0\nSqMask:\t0x7\n"), None, "left out while it is busy");
}

#[test]
fn mappings_are_read_as_the_kernel_writes_them() {
    let file =
        |line: &str| programs::mapped_file(line.as_bytes()).map(|(range, file)| (range, file.to_vec()));
    let found =
        file("00400000-7f0000001000 rw-s 00000000 00:06 321                        /dev/loop0\n").unwrap();
    assert_eq!(found.0, "400000-7f0000001000");
    assert!(found.1.starts_with(b"00:06 321") && found.1.ends_with(b"/dev/loop0\n"));
    for line in [
        "7ffd0000-7ffd1000 rw-p 00000000 00:00 0   [stack]\n",
        "7ffd0000-7ffd1000 rw-p 00000000 00:00 0\n",
        "",
        "x\n",
    ] {
        assert_eq!(file(line), None, "{line}");
    }
}

#[test]
fn a_wrong_name_is_not_written() {
    let tree = Tree::new();
    for typed in ["", "sda", "sdb1", "SDB", "/dev/sda", "sd", "yes", "/dev/disk/by-id/x"] {
        let refused = tree.asked("/dev/sdb", NUMBER, typed).expect_err(typed).to_string();
        assert!(refused.starts_with("its name is sdb, and "), "{typed}: {refused}");
    }
    assert!(tree.asked("/dev/disk/by-id/x", NUMBER, "/dev/sdb").is_ok(), "a link, and the real name typed");
    let gone = tree.asked("/dev/sdz", Number { major: 65, minor: 144 }, "sdz").unwrap_err().to_string();
    assert!(gone.starts_with("the kernel lists no block device 65:144"), "{gone}");
}

#[test]
fn a_partition_beside_one_in_use_is_not_written() {
    let tree = Tree::new();
    tree.partition("sda", 3, "8:3");
    let third = Number { major: 8, minor: 3 };
    let refused = tree.asked("/dev/sda3", third, "sda3").unwrap_err().to_string();
    assert!(refused.starts_with("sda1, another partition of the same drive, is in use"), "{refused}");
    tree.file("proc/1/mountinfo", "25 1 0:30 / / rw - tmpfs tmpfs rw");
    let refused = tree.asked("/dev/sda3", third, "sda3").unwrap_err().to_string();
    assert!(refused.starts_with("sda2, another"), "swap: {refused}");
    tree.file("proc/swaps", "Filename Type Size Used Priority");
    assert!(tree.asked("/dev/sda3", third, "sda3").is_ok());
    tree.folder("sys/block/sda/holders/mpatha");
    let refused = tree.asked("/dev/sda3", third, "sda3").unwrap_err().to_string();
    assert!(refused.starts_with("mpatha stands on sda"), "{refused}");
}

fn go_on() -> impl FnMut() -> Result<(), LoadError> {
    || Ok(())
}

fn device() -> File {
    let file = tempfile::tempfile().unwrap();
    file.set_len(SIZE).unwrap();
    file
}

fn holds_nothing(file: &File, size: u64, part: (u64, u64)) -> Result<(), WriteRefusal> {
    content::check_empty(file, size)?;
    content::is_zero(file, size, part, &mut go_on())
}

fn held(file: &File) -> Result<(), WriteRefusal> {
    holds_nothing(file, SIZE, (1 << 20, 8 << 20))
}

/// Every owner's mark, alone on a device that is otherwise empty.
#[test]
fn every_mark_is_found_by_its_owner() {
    assert!(held(&device()).is_ok());
    for signature in SIGNATURES {
        let file = device();
        let byte = byte_of(signature.offset, SIZE).unwrap();
        file.write_all_at(signature.mark, byte).unwrap();
        let refused = held(&file).expect_err(signature.owner).to_string();
        assert_eq!(refused, format!("it has the mark of {} at byte {byte}", signature.owner));
    }
}

/// Marks are found whatever the size of the device: the last ones are aligned.
#[test]
fn marks_at_the_end_are_found_on_odd_sizes() {
    for size in [SIZE + 512, SIZE + 4096, SIZE + 65_536 - 512, SIZE + 7 * 512] {
        for signature in SIGNATURES {
            let file = tempfile::tempfile().unwrap();
            file.set_len(size).unwrap();
            file.write_all_at(signature.mark, byte_of(signature.offset, size).unwrap()).unwrap();
            let refused = content::check_empty(&file, size);
            assert!(
                refused.is_err_and(|r| r.to_string().contains(signature.owner)),
                "{} at {size}",
                signature.owner
            );
        }
    }
}

#[test]
fn a_byte_anywhere_that_matters_is_found() {
    // The start, the end, a sampled offset, and every offset that would be written.
    for byte in [0, 4095, (1 << 20) - 1, SIZE - 1, SIZE - (1 << 20), SIZE / 256 * 200, 1 << 20, (9 << 20) - 1]
    {
        let file = device();
        file.write_all_at(&[1], byte).unwrap();
        assert_eq!(held(&file).unwrap_err().to_string(), format!("there is data at byte {byte}"));
    }
    let refused = |part| holds_nothing(&device(), SIZE, part).unwrap_err().to_string();
    for part in [(0, 8 << 20), (1 << 20, SIZE), (1 << 20, u64::MAX), (SIZE, 1)] {
        assert!(refused(part).contains("would touch its first or last MiB"), "{part:?}");
    }
    assert!(content::check_empty(&device(), 4096).is_err());
    let stopped = content::is_zero(&device(), SIZE, (1 << 20, 8 << 20), &mut || Err(LoadError::Stopped));
    assert!(matches!(stopped, Err(WriteRefusal::Stopped(_))), "{stopped:?}");
}

/// Marks that real programs leave, where they are installed.
#[test]
fn what_real_programs_leave_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let programs: [(&str, &[&str], &str); 5] = [
        ("mkfs.ext4", &["-q", "-F"], "ext2, ext3 or ext4"),
        ("mkfs.xfs", &["-q", "-f"], "XFS"),
        ("mkfs.btrfs", &["-q", "-f"], "btrfs"),
        ("mkfs.vfat", &[], "FAT"),
        ("mkswap", &[], "swap"),
    ];
    for (program, arguments, owner) in programs {
        let path = folder.path().join(program);
        File::create(&path).unwrap().set_len(512 << 20).unwrap();
        match Command::new(program).args(arguments).arg(&path).output() {
            Ok(output) => {
                let stderr = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{program}: {stderr}");
            }
            Err(error) => {
                println!("SKIPPED {program}: {error}");
                continue;
            }
        }
        let file = File::open(&path).unwrap();
        let refused = content::check_empty(&file, 512 << 20);
        assert!(refused.as_ref().is_err_and(|r| r.to_string().contains(owner)), "{program}: {refused:?}");
    }
}

/// Waits until the device manager has processed the changes, where there is one: it opens a device that came,
/// or that a writer closed.
fn wait_for_udev() {
    let _ = Command::new("udevadm").args(["settle", "--timeout=60"]).output();
}

/// Whether this user sees what all processes have open; the guard refuses everything where that is not so.
fn sees_all(test: &str) -> bool {
    let unseen = programs::users(&Root::live(), &[], &[]).err();
    if let Some(why) = &unseen {
        println!("SKIPPED {test}: {why}");
    }
    unseen.is_none()
}

/// One test at a time: a `losetup` that searches a free device opens those of others for a moment.
static ONE: Mutex<()> = Mutex::new(());

/// A loop device on a file of ours; gone at the end, also after a failure.
struct Loop {
    _alone: MutexGuard<'static, ()>,
    device: String,
    file: PathBuf,
    _folder: tempfile::TempDir,
}

impl Loop {
    fn new(test: &str) -> Option<Self> {
        Self::with(test, false)
    }

    fn with(test: &str, parts: bool) -> Option<Self> {
        if !sees_all(test) {
            return None;
        }
        let alone = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("drive");
        File::create(&file).unwrap().set_len(SIZE).unwrap();
        let options: &[&str] = if parts { &["-P", "--find", "--show"] } else { &["--find", "--show"] };
        match Command::new("losetup").args(options).arg(&file).output() {
            Ok(output) if output.status.success() => {
                let device = String::from_utf8(output.stdout).unwrap().trim().to_owned();
                let device = Self { _alone: alone, device, file, _folder: folder };
                if parts {
                    device.add_part();
                }
                wait_for_udev();
                Some(device)
            }
            Ok(output) => {
                println!("SKIPPED {test}: {}", String::from_utf8_lossy(&output.stderr).trim());
                None
            }
            Err(error) => {
                println!("SKIPPED {test}: losetup: {error}");
                None
            }
        }
    }

    /// Adds one partition of 32 MiB from 8 MiB on; not by a table, which some kernels are built not to read.
    fn add_part(&self) {
        let sectors = |mib: u32| (mib << 11).to_string();
        let output =
            Command::new("addpart").args([&self.device, "1", &sectors(8), &sectors(32)]).output().unwrap();
        assert!(output.status.success(), "addpart: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn name(&self) -> &str {
        self.device.trim_start_matches("/dev/")
    }

    fn open(&self) -> Result<super::Free, WriteRefusal> {
        let part = (1 << 20, 8 << 20);
        wait_for_udev();
        super::open(&Root::live(), Path::new(&self.device), self.name(), part, &mut go_on())
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.device]).output();
    }
}

#[test]
fn a_real_device_is_written_only_when_it_is_free() {
    let Some(device) = Loop::new("a_real_device_is_written_only_when_it_is_free") else { return };
    let free = device.open().unwrap();
    assert_eq!((free.bytes, free.name.as_str()), (SIZE, device.name()));
    // Held by us: no second claim succeeds, our own included.
    let second = device.open().unwrap_err().to_string();
    assert!(second.contains("open (open)"), "{second}");
    drop(free);
    // A program has it open without `O_EXCL`, as a virtual machine does.
    let other = File::open(&device.device).unwrap();
    let refused = device.open().unwrap_err().to_string();
    let this = format!("process {} ", std::process::id());
    assert!(refused.starts_with(&this) && refused.ends_with("open (open)"), "{refused}");
    drop(other);
    let wrong =
        super::open(&Root::live(), Path::new(&device.device), "sda", (1 << 20, 8 << 20), &mut go_on());
    assert!(wrong.unwrap_err().to_string().contains("and `sda` was typed"));
    // Data of a user, seen through the file below.
    OpenOptions::new().write(true).open(&device.file).unwrap().write_all_at(&[7], 5 << 20).unwrap();
    assert_eq!(device.open().unwrap_err().to_string(), format!("there is data at byte {}", 5 << 20));
}

/// What a step of a build is given: no name is typed for it, and all else holds.
#[test]
fn a_real_device_is_given_away_only_when_it_is_free() {
    let Some(device) = Loop::new("a_real_device_is_given_away_only_when_it_is_free") else { return };
    let path = Path::new(&device.device);
    assert!(empty(path).is_ok());
    // One holder excludes all others.
    let held = unused(path).unwrap();
    assert!(empty(path).unwrap_err().to_string().ends_with("open (open)"));
    assert!(unused(path).unwrap_err().to_string().ends_with("open (open)"));
    drop(held);
    wait_for_udev();
    // An offset between the edges, seen through the file below: an undo may have it, others may not.
    OpenOptions::new().write(true).open(&device.file).unwrap().write_all_at(&[7], SIZE / 256 * 200).unwrap();
    assert_eq!(empty(path).unwrap_err().to_string(), format!("there is data at byte {}", SIZE / 256 * 200));
    assert!(unused(path).is_ok());
}

fn user(path: &str) -> Option<String> {
    let root = Root::live();
    let candidate = candidate(&root, Path::new(path)).unwrap();
    users(&root, &[candidate], &[]).remove(0).err().map(|why| why.to_string())
}

/// A virtual machine has the whole drive, and a partition of it is asked for; and vice versa.
#[test]
fn a_drive_that_is_open_keeps_its_partitions_and_they_keep_the_drive() {
    let Some(device) = Loop::with("a_drive_that_is_open_keeps_its_partitions", true) else { return };
    let part = format!("{}p1", device.device);
    assert_eq!((user(&part), user(&device.device)), (None, None));
    assert!(empty(Path::new(&part)).is_ok());
    let whole = File::open(&device.device).unwrap();
    let refused = empty(Path::new(&part)).unwrap_err().to_string();
    assert!(refused.ends_with(&format!("has {} open (open)", device.name())), "{refused}");
    drop(whole);
    wait_for_udev();
    let one = File::open(&part).unwrap();
    let refused = user(&device.device).unwrap();
    assert!(refused.ends_with(&format!("has {}p1 open (open)", device.name())), "{refused}");
    drop(one);
}

/// A database maps its device and closes the file: nothing of it stands in `/proc/PID/fd`.
#[test]
fn a_mapped_device_without_an_open_file_is_in_use() {
    const NAME: &str = "a_mapped_device_without_an_open_file_is_in_use";
    // The mmap of the C library: that of Python keeps a descriptor.
    const MAP: &str = "import ctypes, os, sys
c = ctypes.CDLL(None)
c.mmap.restype = ctypes.c_void_p
c.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
f = os.open(sys.argv[1], os.O_RDWR)
assert c.mmap(None, 4096, 3, 1, f, 0) != ctypes.c_void_p(-1).value
os.close(f)
print('mapped', flush=True)
sys.stdin.read()";
    let Some(device) = Loop::new(NAME) else { return };
    let program = Command::new("python3")
        .args(["-c", MAP, &device.device])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut program) = program else {
        println!("SKIPPED {NAME}: python3 is not here");
        return;
    };
    let mut line = String::new();
    let ready = BufReader::new(program.stdout.take().unwrap()).read_line(&mut line);
    wait_for_udev();
    let (empty, open) = (empty(Path::new(&device.device)), device.open());
    // It ends with its input, and is waited for before anything can fail here.
    drop(program.stdin.take());
    let ended = program.wait().unwrap();
    assert!(ready.is_ok() && ended.success(), "{line} {ended}");
    let mapped = format!("has {} mapped (open)", device.name());
    for refused in [empty.unwrap_err().to_string(), open.unwrap_err().to_string()] {
        assert!(refused.starts_with(&format!("process {} ", program.id())), "{refused}");
        assert!(refused.ends_with(&mapped), "{refused}");
    }
}

#[test]
fn a_device_that_an_io_uring_holds_is_in_use() {
    const NAME: &str = "a_device_that_an_io_uring_holds_is_in_use";
    let Some(device) = Loop::new(NAME) else { return };
    let file = File::open(&device.device).unwrap();
    // Every descriptor of this process that is the device counts as known: what is left is the list of the
    // io_uring.
    let ring = Buffer::new(4096).and_then(|buffer| Ring::new(file, buffer, 4096));
    let ring = match ring {
        Ok(ring) if ring.given().fixed_file => ring,
        Ok(_) | Err(_) => {
            println!("SKIPPED {NAME}: this kernel gives no io_uring with fixed files");
            return;
        }
    };
    let root = Root::live();
    let number = candidate(&root, Path::new(&device.device)).unwrap().number;
    let is_it = |fd: &i32| {
        block::node(Path::new(&format!("/proc/self/fd/{fd}"))).is_ok_and(|n| n == DeviceNode::Block(number))
    };
    let names =
        fs::read_dir("/proc/self/fd").unwrap().filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok());
    let own: Vec<i32> = names.filter(is_it).collect();
    assert!(!own.is_empty());
    let user = users(&root, &[candidate(&root, Path::new(&device.device)).unwrap()], &own)
        .remove(0)
        .unwrap_err()
        .to_string();
    assert!(user.contains(&format!("has {} as a file of its io_uring", device.name())), "{user}");
    drop(ring);
}

/// What happens between the check of a step and its program: another program opens the device, or writes to
/// it.
#[test]
fn a_claimed_device_is_looked_at_again_before_it_is_given_away() {
    let Some(device) = Loop::new("a_claimed_device_is_checked_again") else { return };
    let path = Path::new(&device.device);
    wait_for_udev();
    let claims: Vec<DeviceClaim> =
        claim(&[path], WantedContent::Empty, false).into_iter().collect::<Result<_, _>>().unwrap();
    assert!(again(&claims).is_ok(), "the own claim is no user");
    let exclusive = block::open(path, block::How { alone: true, ..block::How::default() });
    assert_eq!(exclusive.unwrap_err().kind(), std::io::ErrorKind::ResourceBusy);
    let other = File::open(path).unwrap();
    let (at, why) = again(&claims).unwrap_err();
    let why = why.to_string();
    assert!(at == 0 && why.ends_with(&format!("has {} open (open)", device.name())), "{why}");
    drop(other);
    // Written by a program that does not claim it, and has closed it again.
    OpenOptions::new().write(true).open(path).unwrap().write_all_at(b"LABELONE", 512).unwrap();
    wait_for_udev();
    assert!(matches!(again(&claims), Err((0, WriteRefusal::Mark { owner: "LVM", byte: 512 }))));
}

#[test]
fn what_is_no_block_device_is_not_written() {
    let file = tempfile::NamedTempFile::new().unwrap();
    for path in [Path::new("/dev/null"), Path::new("/dev"), file.path(), Path::new("/dev/no-such-drive")] {
        let refused =
            super::open(&Root::live(), path, "x", (1 << 20, 8 << 20), &mut go_on()).unwrap_err().to_string();
        let known = ["it is no block device", "it cannot be found"];
        for refused in [refused, empty(path).unwrap_err().to_string(), unused(path).unwrap_err().to_string()]
        {
            assert!(known.iter().any(|k| refused.starts_with(k)), "{}: {refused}", path.display());
        }
    }
}

#[test]
fn checks_have_names_of_their_own() {
    let mut names: Vec<&str> = super::CHECKS.iter().map(|c| c.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), super::CHECKS.len());
    let root = Root::recorded(Path::new("/nonexistent"));
    let lost = Candidate {
        root: &root,
        path: "/dev/sdb".into(),
        name: "sdb".into(),
        number: NUMBER,
        folder: "/sys/block/sdb".into(),
        whole: None,
    };
    assert!(check_users(&lost).is_err(), "where nothing can be seen nothing is written");
}
