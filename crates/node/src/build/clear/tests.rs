//! Undo of real filesystems in files, and what is left where something else stands.

#![allow(clippy::unwrap_used)]

use std::io::Read;

use super::*;

/// Sparse. Striped, mkfs.xfs makes eight groups, and one of them has to have room for a log of 64 MiB.
const SIZE: u64 = 1 << 30;

fn is_zero(mut file: &File) -> bool {
    let zeros = vec![0; 1 << 20];
    let mut piece = zeros.clone();
    (0..SIZE >> 20).all(|_| {
        file.read_exact(&mut piece).unwrap();
        piece == zeros
    })
}

#[test]
fn nothing_is_left_of_a_filesystem_of_the_real_tool() {
    let test = "nothing_is_left_of_a_filesystem_of_the_real_tool";
    if !linerate_testkit::has(test, "mkfs.xfs", "xfsprogs") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("volume");
    for geometry in ["su=64k,sw=18", "su=256k,sw=2", "su=4k,sw=4"] {
        File::create(&path).unwrap().set_len(SIZE).unwrap();
        linerate_testkit::run("mkfs.xfs", &["-q", "-d", geometry, path.to_str().unwrap()]);
        let open = || File::options().read(true).write(true).open(&path).unwrap();
        assert!(!is_zero(&open()), "there is a filesystem");
        assert!(xfs(&open(), true, false).unwrap().is_empty());
        assert!(is_zero(&open()), "{geometry}");
        // Broken off and done again: nothing is there, and that is no failure.
        assert!(xfs(&open(), true, false).unwrap().is_empty());
    }
}

#[test]
fn a_filesystem_with_files_stays_as_it_is() {
    let test = "a_filesystem_with_files_stays_as_it_is";
    if !linerate_testkit::has(test, "mkfs.xfs", "xfsprogs") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (path, list) = (folder.path().join("volume"), folder.path().join("list"));
    let few = "a ---644 0 0 /etc/passwd\n".to_owned();
    // More than an inode holds: the directory has blocks of its own.
    let many: String = (0..200)
        .map(|n| ["a-name-of-some-length-", &n.to_string(), " ---644 0 0 /etc/passwd\n"].concat())
        .collect();
    for entries in [few, many] {
        File::create(&path).unwrap().set_len(SIZE).unwrap();
        std::fs::write(&list, format!("/dev/null\n0 0\nd--755 0 0\n{entries}$\n")).unwrap();
        linerate_testkit::run("mkfs.xfs", &["-q", "-p", list.to_str().unwrap(), path.to_str().unwrap()]);
        let open = || File::options().read(true).write(true).open(&path).unwrap();
        let mut before = vec![0; HEAD];
        open().read_exact_at(&mut before, 0).unwrap();
        let refused = xfs(&open(), true, false).unwrap_err().to_string();
        assert!(refused.contains("there are files on it"), "{refused}");
        let mut after = vec![0; HEAD];
        open().read_exact_at(&mut after, 0).unwrap();
        assert_eq!(before, after);
        // A root directory that cannot be found counts as files.
        before[56..64].copy_from_slice(&u64::MAX.to_be_bytes());
        open().write_all_at(&before, 0).unwrap();
        assert!(xfs(&open(), true, false).unwrap_err().to_string().contains("cannot be seen"));
    }
}

#[test]
fn a_log_that_was_not_written_out_counts_as_files() {
    let test = "a_log_that_was_not_written_out_counts_as_files";
    if !linerate_testkit::has(test, "mkfs.xfs", "xfsprogs") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("volume");
    let file = File::options().create_new(true).read(true).write(true).open(&path).unwrap();
    file.set_len(SIZE).unwrap();
    linerate_testkit::run("mkfs.xfs", &["-q", path.to_str().unwrap()]);
    let mut head = vec![0; HEAD];
    file.read_exact_at(&mut head, 0).unwrap();
    let log = written(&head).unwrap().log.unwrap();
    let made = Log { last: Some(FIRST_RECORD), is_unmounted: true };
    assert_eq!(log_of(&file, log), Some(made), "as mkfs.xfs leaves it");
    // A record behind it, as a host leaves it that stops while the filesystem is mounted.
    let mut record = [0; LOG_BLOCK];
    file.read_exact_at(&mut record, log.0).unwrap();
    assert_eq!(record[..4], LOG_MAGIC);
    record[20..24].copy_from_slice(&8_u32.to_be_bytes());
    record[40..44].copy_from_slice(&3_u32.to_be_bytes());
    file.write_all_at(&record, log.0 + 8 * LOG_BLOCK as u64).unwrap();
    assert!(!log_of(&file, log).unwrap().is_unmounted);
    assert!(
        xfs(&file, true, false).unwrap_err().to_string().contains("its log does not end with an unmount")
    );
    let mut after = vec![0; HEAD];
    file.read_exact_at(&mut after, 0).unwrap();
    assert_eq!(head, after, "nothing was written");
}

#[test]
fn a_superblock_of_chance_names_no_places() {
    let mut head = vec![0xff; HEAD];
    assert_eq!(written(&head), None);
    head[..4].copy_from_slice(XFS_MAGIC);
    assert_eq!(written(&head), None);
    for end in 0..200 {
        assert_eq!(written(&head[..end]), None);
    }
}

#[test]
fn what_is_no_device_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, "theirs").unwrap();
    let device = path.to_str().unwrap().to_owned();
    let refused = clear(&Clear::Head { devices: vec![device.clone()], bytes: 4 }, true, &Before::default())
        .unwrap_err()
        .to_string();
    assert!(refused.ends_with("it is no block device"), "{refused}");
    assert!(clear(&Clear::Xfs { device }, true, &Before::default()).is_err());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "theirs");
}

/// A filesystem of the real tool in a file, and its places.
fn made() -> Option<(File, Parts)> {
    if !linerate_testkit::has("an XFS of the real tool", "mkfs.xfs", "xfsprogs") {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("volume");
    let file = File::options().create_new(true).read(true).write(true).open(&path).unwrap();
    file.set_len(SIZE).unwrap();
    linerate_testkit::run("mkfs.xfs", &["-q", "-d", "su=64k,sw=4", path.to_str().unwrap()]);
    let mut head = vec![0; HEAD];
    file.read_exact_at(&mut head, 0).unwrap();
    let parts = written(&head).unwrap();
    Some((file, parts))
}

fn byte(file: &File, at: u64) -> u8 {
    let mut one = [0];
    file.read_exact_at(&mut one, at).unwrap();
    one[0]
}

/// Data written past a filesystem that was never mounted: between its metadata, or where nothing of it
/// stands.
#[test]
fn bytes_that_mkfs_did_not_write_are_an_obstacle_and_are_left() {
    let Some((file, parts)) = made() else { return };
    assert!(explained(&file, SIZE, true).is_ok(), "as the tool leaves it");
    let between = parts.groups[1].0 + (900 << 10);
    let elsewhere = SIZE / 4096 * 100;
    assert!(!parts.all(SIZE).iter().any(|((start, end), _)| (*start..*end).contains(&elsewhere)));
    for at in [between, elsewhere] {
        file.write_all_at(&[7], at).unwrap();
        let refused = explained(&file, SIZE, true).unwrap_err().to_string();
        assert!(refused.starts_with(&format!("there is data at byte {at}")), "{refused}");
        file.write_all_at(&[0], at).unwrap();
    }
    // It came after the look.
    file.write_all_at(&[7], between).unwrap();
    let left = xfs(&file, true, false).unwrap();
    assert_eq!((left.first(), byte(&file, between)), (Some(between / 4096 * 4096), 7), "{}", left.says());
    assert_eq!(byte(&file, 0), 0, "the filesystem is gone");
    // Given up.
    let Some((file, _)) = made() else { return };
    file.write_all_at(&[7], between).unwrap();
    assert!(xfs(&file, true, true).unwrap().is_empty() && byte(&file, between) == 0);
}

/// What was deleted from a filesystem stays on its volume, and is no obstacle.
#[test]
fn an_empty_filesystem_that_was_mounted_explains_what_stands_elsewhere() {
    let Some((file, parts)) = made() else { return };
    let log = parts.log.unwrap();
    // The record of a later unmount: as the first one, in cycle 1 behind it.
    let mut record = vec![0; 8 * LOG_BLOCK];
    file.read_exact_at(&mut record, log.0).unwrap();
    record[16..24].copy_from_slice(&(FIRST_RECORD + 8).to_be_bytes());
    file.write_all_at(&record, log.0 + 8 * LOG_BLOCK as u64).unwrap();
    assert_eq!(log_of(&file, log), Some(Log { last: Some(FIRST_RECORD + 8), is_unmounted: true }));
    file.write_all_at(b"deleted", SIZE / 2 + (2 << 20)).unwrap();
    assert!(explained(&file, SIZE, true).is_ok());
    assert!(understood(&file, true).unwrap().unwrap().was_mounted);
    assert!(xfs(&file, true, false).unwrap().is_empty());
    assert_eq!(byte(&file, SIZE / 2 + (2 << 20)), b'd', "it is left where it is");
}

/// A filesystem that was mounted and is empty again explains what was in its files, and no mark of others.
#[test]
fn an_empty_filesystem_does_not_explain_the_mark_of_another_owner() {
    let Some((file, parts)) = made() else { return };
    let log = parts.log.unwrap();
    let mut record = vec![0; 8 * LOG_BLOCK];
    file.read_exact_at(&mut record, log.0).unwrap();
    record[16..24].copy_from_slice(&(FIRST_RECORD + 8).to_be_bytes());
    file.write_all_at(&record, log.0 + 8 * LOG_BLOCK as u64).unwrap();
    // Metadata of DRBD in the last 4 KiB.
    let at = SIZE - 4096 + 60;
    file.write_all_at(b"\x83\x74\x02\x6d", at).unwrap();
    let expected = format!("it has the mark of DRBD at byte {at}, beside that of XFS");
    assert_eq!(explained(&file, SIZE, true).unwrap_err().to_string(), expected);
    assert_eq!(xfs(&file, true, false).unwrap_err().to_string(), expected);
    assert_eq!(byte(&file, 0), b'X', "nothing was zeroed");
    assert!(xfs(&file, true, true).is_ok() && byte(&file, 0) == 0, "given up");
}

/// `mkfs.xfs` was killed: that cannot have been mounted.
#[test]
fn a_filesystem_that_was_not_finished_is_undone() {
    let Some((file, parts)) = made() else { return };
    file.write_all_at(&[1], IN_PROGRESS as u64).unwrap();
    file.write_all_at(&vec![0; 1 << 20], parts.log.unwrap().0).unwrap();
    assert!(xfs(&file, false, false).unwrap().is_empty());
    assert!(is_zero(&file));
}

/// Pieces that a volume manager writes while it takes back, those that stood there before, and all others.
#[test]
fn the_beginning_of_a_drive_is_explained_by_its_manager_or_by_the_look_before() {
    let text = [b"vg0 {\nid = \"x\"\n}\n".as_slice(), &[0; 100]].concat();
    let header = [&[1, 2, 3, 4], LVM_METADATA, &[0xff; 200]].concat();
    for (at, piece, expected) in [
        (8192, text.as_slice(), true),
        (4096, &header, true),
        (1 << 20, b"DmRd\x01\xff", true),
        ((1 << 20) + 4096, b"bitm\x04\xff", true),
        (8192, b"bitm\x04\xff", true),
        (0, text.as_slice(), false),
        (2 << 20, text.as_slice(), false),
        (8192, &[0xff; 512], false),
    ] {
        assert_eq!(is_manager(at, piece, true), expected, "{at}: {piece:?}");
        let is_text = piece == text.as_slice();
        assert_eq!(is_manager(at, piece, false), expected && !is_text, "{at}: {piece:?}");
    }
}

/// Bits of a bitmap change until its array is stopped: all of its length is known by its first piece, and
/// nothing behind it.
#[test]
fn a_bitmap_is_known_by_its_length() {
    let mut piece = vec![0; 4096];
    assert_eq!(end_of_bitmap(8192, &piece), 0);
    piece[..4].copy_from_slice(BITMAP);
    assert_eq!(end_of_bitmap(8192, &piece), 0, "chunks of nothing");
    // 3 TiB in chunks of 64 MiB: 49,152 bits.
    piece[40..48].copy_from_slice(&(3_u64 << 31).to_le_bytes());
    piece[52..56].copy_from_slice(&(64_u32 << 20).to_le_bytes());
    assert_eq!(end_of_bitmap(8192, &piece), 8192 + 256 + 6144);
    piece[40..48].fill(0xff);
    piece[52..56].copy_from_slice(&512_u32.to_le_bytes());
    assert!(end_of_bitmap(u64::MAX, &piece) == u64::MAX && end_of_bitmap(0, &piece[..20]) == 0);
}
