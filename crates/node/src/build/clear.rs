//! Zeros over what a step left on devices that held nothing before it, when the step is undone.
//!
//! In: what was left, as the step says it. Out: what was not zeroed because the step does not explain it, or
//! why nothing was done. A device is written only under a claim, and only where the step wrote; a filesystem
//! that holds files is left as it is: what is on it may have been forgotten. Every piece is read right before
//! it is overwritten ([`super::pieces`]).

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use linerate_load::guard;
use linerate_model::step::Clear;

use super::contents::{HEAD, XFS_MAGIC, bytes, size_of};
use super::device_error::DeviceError;
use super::journal::Done;
use super::pieces::{self, PICTURE_PIECE, Picture, Ranges};
use super::{ext, stamps};

/// Blocks of a log, bytes (`BBSIZE`).
const LOG_BLOCK: usize = 512;
/// `XLOG_HEADER_MAGIC_NUM`.
const LOG_MAGIC: [u8; 4] = [0xfe, 0xed, 0xba, 0xbe];
/// `XLOG_UNMOUNT_TRANS`, a flag of an operation.
const UNMOUNTED: u8 = 0x20;
/// Sequence number of the only record in the log of a filesystem that was never mounted for writing: cycle 1,
/// block 0.
const FIRST_RECORD: u64 = 1 << 32;
/// In the words of the guard, and where its superblock stands.
const XFS_OWNER: &str = "XFS";
const XFS_SUPERBLOCK: (u64, u64) = (0, 512);
/// How much of a log is read at a time.
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
/// `sb_inprogress` of the superblock: `mkfs.xfs` has not ended.
const IN_PROGRESS: usize = 126;
/// How blocks of metadata begin (`xfs_format.h`, `xfs_da_format.h`): headers of groups, trees of free space,
/// inodes, references, owners, attributes and directories.
const BLOCK_MAGICS: &[&[u8]] = &[
    XFS_MAGIC,
    b"XAGF",
    b"XAGI",
    b"XAFL",
    b"AB3B",
    b"AB3C",
    b"ABTB",
    b"ABTC",
    b"IAB3",
    b"IABT",
    b"FIB3",
    b"FIBT",
    b"R3FC",
    b"RMB3",
    b"BMA3",
    b"BMAP",
    b"XDB3",
    b"XDD3",
    b"XDF3",
    b"XD2B",
    b"XD2D",
    b"XD2F",
    INODE_MAGIC,
];
/// What LVM writes behind its label: metadata as text, up to its first extent.
const LVM_TEXT: (u64, u64) = (4096, 1 << 20);
/// `FMTT_MAGIC` of LVM2, behind a checksum; superblocks of the RAID of LVM and bitmaps of md: their first
/// bytes.
const LVM_METADATA: &[u8] = b" LVM2 x[5A%r0N*>";
const RAID: &[u8] = b"DmRd";
const BITMAP: &[u8] = b"bitm";

/// What is known of devices before the first command of an undo.
#[derive(Debug, Default)]
pub(super) struct Before {
    /// The beginnings of drives, while they carried the identifiers of the build.
    pictures: BTreeMap<String, Picture>,
    /// What the build did not make is given up.
    pub discard: bool,
}

impl Before {
    /// Looks at the drives of steps. One that cannot be read has no picture, and one that does not carry what
    /// its step left there: an undo that was killed had taken that away, and others may use the drive since.
    pub(super) fn of(steps: &[Done], discard: bool) -> Self {
        let mut pictures = BTreeMap::new();
        for done in steps {
            let operation = done.step.operation();
            let Some(stamp) = operation.stamp() else { continue };
            for clear in operation.clear() {
                let Clear::Head { devices, bytes } = clear else { continue };
                let carried = |device: &String| stamps::is_carried(&stamp, device, done.stamps.get(device));
                for device in devices.into_iter().filter(carried) {
                    let picture = File::open(&device).and_then(|file| {
                        linerate_sys::block::forget(&file)?;
                        Picture::of(&file, bytes)
                    });
                    pictures.extend(picture.ok().map(|picture| (device, picture)));
                }
            }
        }
        Self { pictures, discard }
    }
}

/// Fills it with zeros, and returns a line for each device on which something was left as it is. `is_whole`:
/// the step had ended well.
pub(super) fn clear(what: &Clear, is_whole: bool, before: &Before) -> Result<Vec<String>, DeviceError> {
    let zero = |device: &str| match what {
        Clear::Head { bytes, .. } => head(device, *bytes, before),
        Clear::Xfs { .. } => xfs(&guard::unused(Path::new(device))?, is_whole, before.discard),
        Clear::Ext { .. } => ext::clear(&guard::unused(Path::new(device))?, before.discard),
    };
    let devices = match what {
        Clear::Head { devices, .. } => devices.as_slice(),
        Clear::Xfs { device } | Clear::Ext { device } => std::slice::from_ref(device),
    };
    let mut lines = Vec::new();
    for device in devices {
        let on = |reason| DeviceError::On { device: device.clone(), reason: Box::new(reason) };
        lines.extend(left_line(device, &zero(device).map_err(on)?));
    }
    Ok(lines)
}

fn left_line(device: &str, left: &Ranges) -> Option<String> {
    let line = || {
        format!(
            "{device}: {} hold data that this build did not write, and were left as they are",
            left.says()
        )
    };
    (!left.is_empty()).then(line)
}

/// The beginning of a drive, after the commands that took away what the step itself had marked.
fn head(device: &str, bytes: u64, before: &Before) -> Result<Ranges, DeviceError> {
    let file = guard::unused(Path::new(device))?;
    if let Some((owner, byte)) = guard::mark(Path::new(device))?
        && !before.discard
    {
        return Err(DeviceError::Marked { owner, byte });
    }
    let picture = before.pictures.get(device);
    let failed = DeviceError::step("zeros cannot be written");
    let mut header = [0; PICTURE_PIECE];
    file.read_exact_at(&mut header, LVM_TEXT.0).map_err(DeviceError::step("it cannot be read"))?;
    // Text alone may be anybody's.
    let has_text = picture.is_some() || is_header(&header);
    // Pieces come in order, so that the first one of a bitmap comes before the others.
    let bitmap_end = Cell::new(0);
    let explains = |at: u64, piece: &[u8]| {
        bitmap_end.set(bitmap_end.get().max(end_of_bitmap(at, piece)));
        let is_known = picture.is_some_and(|picture| picture.had(at, piece));
        before.discard || is_known || at < bitmap_end.get() || is_manager(at, piece, has_text)
    };
    let end = bytes.min(size_of(&file).map_err(DeviceError::step("its size cannot be read"))?);
    // The header last: an undo that is broken off in between still knows by it whose the text is.
    let behind = (LVM_TEXT.0 + PICTURE_PIECE as u64).min(end);
    let behind_left = pieces::zero(&file, (behind, end), PICTURE_PIECE, &explains).map_err(&failed)?;
    file.sync_data().map_err(&failed)?;
    let mut left = pieces::zero(&file, (0, behind), PICTURE_PIECE, &explains).map_err(&failed)?;
    file.sync_data().map_err(&failed)?;
    left.extend(behind_left);
    Ok(left)
}

/// Where the bitmap of an array ends whose superblock is in a piece (`bitmap_super_s` of
/// drivers/md/md-bitmap.h): bits of it change until the array is stopped. 0 where none is.
fn end_of_bitmap(at: u64, piece: &[u8]) -> u64 {
    const HEADER: u64 = 256;
    let sectors = bytes(piece, 40).map(u64::from_le_bytes);
    let chunk = bytes(piece, 52).map(|chunk| u64::from(u32::from_le_bytes(chunk)) / 512);
    match (sectors, chunk) {
        (Some(sectors), Some(chunk)) if chunk > 0 && piece.starts_with(BITMAP) => {
            at.saturating_add(HEADER + sectors.div_ceil(chunk).div_ceil(8))
        }
        _ => 0,
    }
}

/// Whether a piece is the header of LVM's metadata.
fn is_header(piece: &[u8]) -> bool {
    piece.get(4..).is_some_and(|rest| rest.starts_with(LVM_METADATA))
}

/// Whether volume managers write such a piece while they take a volume or a drive back. `has_text`: the text
/// of LVM stands on the device, as its identifier or its header shows.
fn is_manager(at: u64, piece: &[u8], has_text: bool) -> bool {
    let is_text = |byte: &u8| matches!(byte, 0 | b'\t' | b'\n' | b' '..=b'~');
    let in_text = (LVM_TEXT.0..LVM_TEXT.1).contains(&at);
    (in_text && (is_header(piece) || (has_text && piece.iter().all(is_text))))
        || [RAID, BITMAP].iter().any(|magic| piece.starts_with(magic))
}

/// An XFS that may be undone.
#[derive(Debug)]
struct Xfs {
    /// Its log, and where its groups begin.
    parts: Parts,
    /// Of a filesystem, bytes.
    block: usize,
    /// The last cycle of its log.
    cycle: u32,
    /// It was mounted: what stands elsewhere were files.
    was_mounted: bool,
}

/// Whether everything that stands on the volume of an XFS is what `mkfs.xfs` made, or was deleted from it.
/// `is_whole`: `mkfs.xfs` ended.
pub(super) fn explained(file: &File, size: u64, is_whole: bool) -> Result<(), DeviceError> {
    let Some(known) = understood(file, is_whole)? else {
        return Ok(guard::holds_nothing(file, size)?);
    };
    guard::has_no_other_mark(file, size, XFS_OWNER, XFS_SUPERBLOCK)?;
    if known.was_mounted {
        return Ok(());
    }
    for (range, is_log) in known.parts.all(size) {
        let found =
            pieces::unexplained(file, range, known.piece(is_log), &|_, piece| known.explains(is_log, piece))
                .map_err(DeviceError::step("it cannot be read"))?;
        if let Some(byte) = found.first() {
            return Err(DeviceError::Data { byte, program: "mkfs.xfs" });
        }
    }
    let made: Vec<(u64, u64)> = known.parts.all(size).into_iter().map(|(range, _)| range).collect();
    Ok(guard::holds_nothing_beside(file, size, &made)?)
}

/// Whether an XFS on a device was mounted since it was made; not where no XFS is, or it cannot be undone.
pub(super) fn was_mounted(device: &Path) -> bool {
    let known = File::open(device).ok().and_then(|file| understood(&file, true).ok()?);
    known.is_some_and(|known| known.was_mounted)
}

/// The XFS on a device; nothing where none is. What else stands there is found by the look at the volume
/// below.
fn understood(file: &File, is_whole: bool) -> Result<Option<Xfs>, DeviceError> {
    linerate_sys::block::forget(file).map_err(DeviceError::step("its cache cannot be emptied"))?;
    let mut head = vec![0; HEAD];
    file.read_exact_at(&mut head, 0).map_err(DeviceError::step("cannot be read"))?;
    if !head.starts_with(XFS_MAGIC) {
        return Ok(None);
    }
    let parts = written(&head).ok_or(DeviceError::Damaged)?;
    let block = bytes(&head, 4).map(u32::from_be_bytes).and_then(|block| usize::try_from(block).ok());
    let block = block.filter(|block| (LOG_BLOCK..=65_536).contains(block) && block.is_power_of_two());
    let block = block.ok_or(DeviceError::Damaged)?;
    // What mkfs.xfs has not finished cannot be mounted.
    if !is_whole && head[IN_PROGRESS] != 0 {
        return Ok(Some(Xfs { parts, block, cycle: 1, was_mounted: false }));
    }
    // Files that were safe when the host stopped may stand in the log alone.
    let log = parts.log.map(|log| log_of(file, log));
    let Some(Some(Log { last, is_unmounted: true })) = log else {
        return Err(DeviceError::Dirty("its log does not end with an unmount"));
    };
    match has_files(file, &head) {
        Some(false) => {
            let last = last.unwrap_or(FIRST_RECORD);
            Ok(Some(Xfs { parts, block, cycle: (last >> 32) as u32, was_mounted: last != FIRST_RECORD }))
        }
        Some(true) => Err(DeviceError::Files),
        None => Err(DeviceError::RootDirectory),
    }
}

impl Xfs {
    fn piece(&self, is_log: bool) -> usize {
        if is_log { LOG_BLOCK } else { self.block }
    }

    /// Whether a piece is metadata: a block by how it begins, one of the log by its cycle, which stands at
    /// the begin of each.
    fn explains(&self, is_log: bool, piece: &[u8]) -> bool {
        if is_log {
            let cycle = bytes(piece, 0).map_or(0, u32::from_be_bytes);
            return piece.starts_with(&LOG_MAGIC) || (1..=self.cycle).contains(&cycle);
        }
        BLOCK_MAGICS.iter().any(|magic| piece.starts_with(magic))
    }
}

/// Nothing where no XFS is. What was deleted from it stays where it is; what else stands between its metadata
/// is returned.
fn xfs(file: &File, is_whole: bool, discard: bool) -> Result<Ranges, DeviceError> {
    let size = size_of(file).map_err(DeviceError::step("its size cannot be read"))?;
    let known = match understood(file, is_whole) {
        Ok(Some(known)) => known,
        Ok(None) => return Ok(Ranges::default()),
        Err(_) if discard => return given_up(file, size),
        Err(why) => return Err(why),
    };
    if !discard {
        guard::has_no_other_mark(file, size, XFS_OWNER, XFS_SUPERBLOCK)?;
    }
    let mut left = Ranges::default();
    for (range, is_log) in known.parts.all(size) {
        let explains = |_: u64, piece: &[u8]| discard || known.explains(is_log, piece);
        let found = pieces::zero(file, range, known.piece(is_log), &explains);
        let found = found.map_err(DeviceError::step("zeros cannot be written"))?;
        if !known.was_mounted {
            left.extend(found);
        }
    }
    file.sync_data().map_err(DeviceError::step("zeros cannot be written"))?;
    Ok(left)
}

/// A filesystem with files that are given up: what stands at the places of its metadata, as far as its
/// superblock names them.
fn given_up(file: &File, size: u64) -> Result<Ranges, DeviceError> {
    let mut head = vec![0; HEAD];
    file.read_exact_at(&mut head, 0).map_err(DeviceError::step("cannot be read"))?;
    for (range, _) in written(&head).iter().flat_map(|parts| parts.all(size)) {
        pieces::zero(file, range, HEAD, &|_, _| true)
            .map_err(DeviceError::step("zeros cannot be written"))?;
    }
    file.sync_data().map_err(DeviceError::step("zeros cannot be written"))?;
    Ok(Ranges::default())
}

fn log_at(head: &[u8]) -> Option<u64> {
    bytes(head, 48).map(u64::from_be_bytes)
}

/// A log, by its last record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Log {
    /// Its sequence number; nothing where no record is, as where an undo was broken off before.
    last: Option<u64>,
    /// It says that the filesystem was unmounted, or there is none.
    is_unmounted: bool,
}

/// The last record of a log; `None` where it cannot be read. Records begin at blocks of 512 bytes with a
/// magic number that cannot stand at the start of any other block (`xlog_rec_header` and
/// `xlog_check_unmount_rec()` of fs/xfs).
fn log_of(file: &File, (at, length): (u64, u64)) -> Option<Log> {
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
    let Some((lsn, place, header)) = last else { return Some(Log { last: None, is_unmounted: true }) };
    let word = |at| bytes(&header, at).map(u32::from_be_bytes);
    // A header has one block for each 32 KiB that a record may have; version 1 always has one.
    let headers = if word(8)? & 2 == 0 { 1 } else { u64::from(word(320)?).div_ceil(32 << 10).max(1) };
    let blocks = length / LOG_BLOCK as u64;
    let first = place.checked_add(headers)?.checked_rem(blocks)?;
    let mut operation = [0; LOG_BLOCK];
    file.read_exact_at(&mut operation, at.checked_add(first * LOG_BLOCK as u64)?).ok()?;
    Some(Log { last: Some(lsn), is_unmounted: word(40)? == 1 && operation[9] & UNMOUNTED != 0 })
}

/// Whether its root directory has entries; `None` where it cannot be found. The inode's place follows from
/// its number (`XFS_INO_TO_AGNO` and its kin in `xfs_format.h`); a directory without or with few entries
/// stands in the inode itself, with their number in the first byte.
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

/// Where `mkfs.xfs` wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Parts {
    /// Start and length; nothing where the log is on another device.
    log: Option<(u64, u64)>,
    /// Starts and lengths, the last group first.
    groups: Vec<(u64, u64)>,
}

impl Parts {
    /// Starts and ends as far as the device goes, and whether it is the log: from the log to the first group,
    /// so that what is broken off can be done again.
    fn all(&self, size: u64) -> Vec<((u64, u64), bool)> {
        let range = |&(start, length): &(u64, u64)| (start, start.saturating_add(length).min(size));
        let log = self.log.as_ref().map(range);
        let mut all: Vec<_> = log.iter().map(|log| (*log, true)).collect();
        for (start, end) in self.groups.iter().map(range) {
            // The log may begin within what is taken for the headers of its group.
            let (from, to) = log.unwrap_or((end, end));
            all.extend(
                [(start, end.min(from.max(start))), (start.max(to.min(end)), end)].map(|part| (part, false)),
            );
        }
        all.retain(|((start, end), _)| start < end);
        all
    }
}

/// Where `mkfs.xfs` wrote, by its superblock (big-endian, `xfs_format.h`).
fn written(head: &[u8]) -> Option<Parts> {
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
    let mut log = None;
    if log_at > 0 {
        let log_group = log_at.checked_shr(shift)?;
        let log_block = log_at & !(u64::MAX << shift);
        let at = log_group.checked_mul(group)?.checked_add(log_block.checked_mul(block)?)?;
        log = Some((at, log_blocks.checked_mul(block)?.min(LOG_BYTES_MAX)));
    }
    let starts = (0..groups).rev().map(|number| Some((number.checked_mul(group)?, begin)));
    Some(Parts { log, groups: starts.collect::<Option<_>>()? })
}

#[cfg(test)]
mod tests;
