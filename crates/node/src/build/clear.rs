//! Zeros over what a step left on devices that held nothing before it, when the step is taken back.
//!
//! In: what was left, as the step says it. Out: nothing, or why not. A device is written only while nobody else has it, and only where the step
//! wrote; a filesystem that holds files is left as it is, for whoever takes a volume back may have forgotten what is on it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use linerate_load::guard;
use linerate_model::step::Clear;

use super::contents::{HEAD, XFS_MAGIC, bytes};
use super::ext;

/// Blocks of a log, bytes (`BBSIZE`).
const LOG_BLOCK: usize = 512;
/// `XLOG_HEADER_MAGIC_NUM`.
const LOG_MAGIC: [u8; 4] = [0xfe, 0xed, 0xba, 0xbe];
/// `XLOG_UNMOUNT_TRANS`, a flag of an operation.
const UNMOUNTED: u8 = 0x20;
/// How much is written at a time.
const STEP: u64 = 1 << 20;
/// Of each allocation group its headers, roots of trees and the first inodes.
const GROUP_BYTES: u64 = 1 << 20;
/// Largest log, bytes (`XFS_MAX_LOG_BYTES` of `fs/xfs/libxfs/xfs_fs.h`).
const LOG_BYTES_MAX: u64 = 2 << 30;
/// `XFS_DINODE_MAGIC`.
const INODE_MAGIC: &[u8] = b"IN";
/// Smallest inode, bytes: the core and the first byte behind it are within.
const INODE_BYTES: usize = 256;
/// `XFS_DINODE_FMT_LOCAL`: the content stands in the inode itself.
const FORMAT_LOCAL: u8 = 1;
/// More groups than any filesystem has: groups of 1 TiB at the size that Linux allows.
const GROUPS_MAX: u64 = 1 << 23;

/// Fills it with zeros.
pub(super) fn clear(what: &Clear) -> Result<(), String> {
    match what {
        Clear::Head { devices, bytes } => devices.iter().try_for_each(|device| {
            let file = guard::unused(Path::new(device)).map_err(|why| format!("{device}: {why}"))?;
            // The commands before this have taken away what the step itself had marked.
            if let Some((owner, byte)) =
                guard::mark(Path::new(device)).map_err(|why| format!("{device}: {why}"))?
            {
                return Err(format!(
                    "{device}: it has the mark of {owner} at byte {byte}, so it is left as it is"
                ));
            }
            zero(&file, &[(0, *bytes)]).map_err(|e| format!("{device}: zeros cannot be written: {e}"))
        }),
        Clear::Xfs { device } => {
            let file = guard::unused(Path::new(device)).map_err(|why| format!("{device}: {why}"))?;
            xfs(&file).map_err(|why| format!("{device}: {why}"))
        }
        Clear::Ext { device } => {
            let file = guard::unused(Path::new(device)).map_err(|why| format!("{device}: {why}"))?;
            let mark = guard::mark(Path::new(device)).map_err(|why| format!("{device}: {why}"))?;
            ext::clear(&file, mark).map_err(|why| format!("{device}: {why}"))
        }
    }
}

/// Nothing where no XFS is: somebody has made something else of it, which goes with the volume below.
fn xfs(file: &File) -> Result<(), String> {
    let mut head = vec![0; HEAD];
    file.read_exact_at(&mut head, 0).map_err(|e| format!("cannot be read: {e}"))?;
    let Some(parts) = written(&head) else { return Ok(()) };
    // Its log is the first part; files that were safe when the host stopped may stand there alone.
    let log = parts.first().filter(|_| log_at(&head).is_some_and(|at| at > 0));
    if log.and_then(|log| is_unmounted(file, *log)) != Some(true) {
        return Err("its log does not end with an unmount, so that files may stand there that cannot be seen; mount it, look at it, and unmount it".to_owned());
    }
    match has_files(file, &head) {
        Some(false) => zero(file, &parts).map_err(|e| format!("zeros cannot be written: {e}")),
        Some(true) => Err("there are files on it; mount it, look at them, and remove what may go".to_owned()),
        None => Err("whether files are on it cannot be seen: its root directory cannot be read".to_owned()),
    }
}

fn log_at(head: &[u8]) -> Option<u64> {
    bytes(head, 48).map(u64::from_be_bytes)
}

/// Whether the last record of a log says that the filesystem was unmounted, or there is none, as where this was broken off before; `None` where it
/// cannot be read. Records begin at blocks of 512 bytes with a
/// magic number that cannot stand at the start of any other block (`xlog_rec_header` and `xlog_check_unmount_rec()` of fs/xfs).
fn is_unmounted(file: &File, (at, length): (u64, u64)) -> Option<bool> {
    let mut last: Option<(u64, u64, [u8; LOG_BLOCK])> = None;
    let mut piece = vec![0; STEP as usize];
    let mut done = 0;
    while done < length {
        let step = STEP.min(length - done) as usize;
        file.read_exact_at(&mut piece[..step], at.checked_add(done)?).ok()?;
        for (number, block) in piece[..step].chunks_exact(LOG_BLOCK).enumerate() {
            let lsn = bytes(block, 16).map(u64::from_be_bytes)?;
            if block[..4] == LOG_MAGIC && last.is_none_or(|(known, _, _)| lsn > known) {
                let place = done / LOG_BLOCK as u64 + number as u64;
                last = Some((lsn, place, block.try_into().ok()?));
            }
        }
        done += step as u64;
    }
    let Some((_, place, header)) = last else { return Some(true) };
    let word = |at| bytes(&header, at).map(u32::from_be_bytes);
    // A header has one block for each 32 KiB that a record may have; version 1 always has one.
    let headers = if word(8)? & 2 == 0 { 1 } else { u64::from(word(320)?).div_ceil(32 << 10).max(1) };
    let blocks = length / LOG_BLOCK as u64;
    let first = place.checked_add(headers)?.checked_rem(blocks)?;
    let mut operation = [0; LOG_BLOCK];
    file.read_exact_at(&mut operation, at.checked_add(first * LOG_BLOCK as u64)?).ok()?;
    Some(word(40)? == 1 && operation[9] & UNMOUNTED != 0)
}

/// Whether its root directory has entries; `None` where it cannot be found. The inode's place follows from its number (`XFS_INO_TO_AGNO` and its kin
/// in `xfs_format.h`); a directory without or with few entries stands in the inode itself, with their number in the first byte.
fn has_files(file: &File, head: &[u8]) -> Option<bool> {
    let word = |at| bytes(head, at).map(|b| u64::from(u32::from_be_bytes(b)));
    let (block, group_blocks) = (word(4)?, word(84)?);
    let number = u64::from_be_bytes(bytes(head, 56)?);
    let size = u64::from(u16::from_be_bytes(bytes(head, 104)?));
    let (per_block, per_group) = (u32::from(*head.get(123)?), u32::from(*head.get(124)?));
    let in_block = number & !(u64::MAX.checked_shl(per_block)?);
    let block_number = number.checked_shr(per_block)? & !(u64::MAX.checked_shl(per_group)?);
    let group = number.checked_shr(per_block.checked_add(per_group)?)?;
    let blocks = group.checked_mul(group_blocks)?.checked_add(block_number)?;
    let at = blocks.checked_mul(block)?.checked_add(in_block.checked_mul(size)?)?;
    let mut inode = [0; INODE_BYTES];
    file.read_exact_at(&mut inode, at).ok()?;
    if inode.get(..2)? != INODE_MAGIC {
        return None;
    }
    let (version, format) = (*inode.get(4)?, *inode.get(5)?);
    let fork = if version >= 3 { 176 } else { 100 };
    Some(format != FORMAT_LOCAL || *inode.get(fork)? != 0)
}

/// Where `mkfs.xfs` wrote, by its superblock (big-endian, `xfs_format.h`): from the last group to the first, so that what is broken off can be done
/// again.
fn written(head: &[u8]) -> Option<Vec<(u64, u64)>> {
    if head.get(..4)? != XFS_MAGIC {
        return None;
    }
    let word = |at| bytes(head, at).map(|b| u64::from(u32::from_be_bytes(b)));
    let block = word(4)?;
    let (log_at, group_blocks, groups) = (log_at(head)?, word(84)?, word(88)?);
    let (log_blocks, shift, unit) = (word(96)?, u32::from(*head.get(124)?), word(184)?);
    let group = block.checked_mul(group_blocks)?;
    if groups > GROUPS_MAX || group == 0 || shift >= u64::BITS {
        return None;
    }
    // What is aligned to stripes begins up to two of their units behind the headers.
    let begin = GROUP_BYTES.max(block.checked_mul(unit)?.checked_mul(4)?).min(group);
    let mut parts = Vec::new();
    if log_at > 0 {
        let log_group = log_at.checked_shr(shift)?;
        let log_block = log_at & !(u64::MAX << shift);
        let at = log_group.checked_mul(group)?.checked_add(log_block.checked_mul(block)?)?;
        parts.push((at, log_blocks.checked_mul(block)?.min(LOG_BYTES_MAX)));
    }
    for number in (0..groups).rev() {
        parts.push((number.checked_mul(group)?, begin));
    }
    Some(parts)
}

/// Writes zeros into parts, as far as the device goes, and waits until they are safe.
pub(super) fn zero(file: &File, parts: &[(u64, u64)]) -> io::Result<()> {
    let size = linerate_sys::block::size(file).or_else(|_| file.metadata().map(|meta| meta.len()))?;
    let zeros = vec![0; STEP as usize];
    for (start, length) in parts {
        let end = start.saturating_add(*length).min(size);
        let mut at = *start;
        while at < end {
            let step = STEP.min(end - at);
            file.write_all_at(&zeros[..step as usize], at)?;
            at += step;
        }
    }
    file.sync_data()
}

#[cfg(test)]
mod tests {
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
        if !linerate_stage::has(test, "mkfs.xfs", "xfsprogs") {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("volume");
        for geometry in ["su=64k,sw=18", "su=256k,sw=2", "su=4k,sw=4"] {
            File::create(&path).unwrap().set_len(SIZE).unwrap();
            linerate_stage::run("mkfs.xfs", &["-q", "-d", geometry, path.to_str().unwrap()]);
            let open = || File::options().read(true).write(true).open(&path).unwrap();
            assert!(!is_zero(&open()), "there is a filesystem");
            xfs(&open()).unwrap();
            assert!(is_zero(&open()), "{geometry}");
            // Broken off and done again: nothing is there, and that is no failure.
            xfs(&open()).unwrap();
        }
    }

    #[test]
    fn a_filesystem_with_files_stays_as_it_is() {
        let test = "a_filesystem_with_files_stays_as_it_is";
        if !linerate_stage::has(test, "mkfs.xfs", "xfsprogs") {
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
            linerate_stage::run("mkfs.xfs", &["-q", "-p", list.to_str().unwrap(), path.to_str().unwrap()]);
            let open = || File::options().read(true).write(true).open(&path).unwrap();
            let mut before = vec![0; HEAD];
            open().read_exact_at(&mut before, 0).unwrap();
            let refused = xfs(&open()).unwrap_err();
            assert!(refused.contains("there are files on it"), "{refused}");
            let mut after = vec![0; HEAD];
            open().read_exact_at(&mut after, 0).unwrap();
            assert_eq!(before, after);
            // A root directory that cannot be found counts as files.
            before[56..64].copy_from_slice(&u64::MAX.to_be_bytes());
            open().write_all_at(&before, 0).unwrap();
            assert!(xfs(&open()).unwrap_err().contains("cannot be seen"));
        }
    }

    #[test]
    fn a_log_that_was_not_written_out_counts_as_files() {
        let test = "a_log_that_was_not_written_out_counts_as_files";
        if !linerate_stage::has(test, "mkfs.xfs", "xfsprogs") {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("volume");
        let file = File::options().create_new(true).read(true).write(true).open(&path).unwrap();
        file.set_len(SIZE).unwrap();
        linerate_stage::run("mkfs.xfs", &["-q", path.to_str().unwrap()]);
        let mut head = vec![0; HEAD];
        file.read_exact_at(&mut head, 0).unwrap();
        let log = written(&head).unwrap()[0];
        assert_eq!(is_unmounted(&file, log), Some(true), "as mkfs.xfs leaves it");
        // A record behind it, as a host leaves it that stops while the filesystem is mounted.
        let mut record = [0; LOG_BLOCK];
        file.read_exact_at(&mut record, log.0).unwrap();
        assert_eq!(record[..4], LOG_MAGIC);
        record[20..24].copy_from_slice(&8_u32.to_be_bytes());
        record[40..44].copy_from_slice(&3_u32.to_be_bytes());
        file.write_all_at(&record, log.0 + 8 * LOG_BLOCK as u64).unwrap();
        assert_eq!(is_unmounted(&file, log), Some(false));
        assert!(xfs(&file).unwrap_err().contains("its log does not end with an unmount"));
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
        std::fs::write(&path, "somebody's").unwrap();
        let device = path.to_str().unwrap().to_owned();
        let refused = clear(&Clear::Head { devices: vec![device.clone()], bytes: 4 }).unwrap_err();
        assert!(refused.ends_with("it is no block device"), "{refused}");
        assert!(clear(&Clear::Xfs { device }).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "somebody's");
    }
}
