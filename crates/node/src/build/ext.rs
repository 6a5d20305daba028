//! An ext4 that a step made: whether it explains everything on its volume, and zeros over it when the step is
//! undone.
//!
//! In: the device. Out: nothing, or why it stays as it is. The places follow from the superblock and the
//! group descriptors (`fs/ext4/ext4.h` of Linux, little-endian): whatever `mkfs.ext4` and mounting wrote, and
//! not the inode tables, which it leaves as they were. What is zeroed last is what the places are read from,
//! so that what is broken off can be done again.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use linerate_load::guard;

use super::contents::{bytes, size_of};
use super::device_error::DeviceError;
use super::pieces::{self, Ranges};

/// Where the superblock stands, and how long it is.
const SUPER_AT: u64 = 1024;
const SUPER_BYTES: usize = 1024;
const MAGIC: [u8; 2] = [0x53, 0xef];
/// `s_state`: unmounted cleanly.
const STATE_CLEAN: u16 = 1;
/// `s_feature_compat`: superblocks in two groups only; a file of orphans.
const COMPAT_SPARSE_SUPER2: u32 = 0x200;
const COMPAT_ORPHAN_FILE: u32 = 0x1000;
/// `s_feature_incompat`: the journal has to be replayed; descriptors all over the device; 64 bits; a journal
/// elsewhere; clusters.
const INCOMPAT_RECOVER: u32 = 0x4;
const INCOMPAT_JOURNAL_DEVICE: u32 = 0x8;
const INCOMPAT_META_GROUPS: u32 = 0x10;
const INCOMPAT_64BIT: u32 = 0x80;
/// `s_feature_ro_compat`: descriptors tell which inodes were never used (`gdt_csum`, `metadata_csum`);
/// clusters of blocks.
const RO_UNUSED_INODES: u32 = 0x10 | 0x400;
const RO_CLUSTERS: u32 = 0x200;
/// `bg_flags`: no inode of the group was ever used.
const GROUP_INODES_UNUSED: u16 = 1;
/// `EXT4_EXTENTS_FL` of an inode, the magic of its tree, and how deep that may be.
const INODE_EXTENTS: u32 = 0x8_0000;
const EXTENTS_MAGIC: u16 = 0xf30a;
const EXTENTS_DEPTH_MAX: u16 = 5;
/// Inode whose doubly indirect block keeps room for descriptors (`EXT4_RESIZE_INO`).
const RESIZE_INODE: u64 = 7;
/// Inode of the journal (`EXT4_JOURNAL_INO`), and how its superblock begins and how long it is
/// (`JBD2_MAGIC_NUMBER` of linux/jbd2.h, big-endian).
const JOURNAL_INODE: u64 = 8;
const JOURNAL_MAGIC: [u8; 4] = [0xc0, 0x3b, 0x39, 0x98];
const JOURNAL_SUPER_BYTES: usize = 1024;
/// In the words of the guard, and where its superblock stands.
const OWNER: &str = "ext2, ext3 or ext4";
const SUPERBLOCK: (u64, u64) = (SUPER_AT, SUPER_AT + SUPER_BYTES as u64);
/// Groups of which the descriptors are read at a time.
const GROUPS_AT_ONCE: u64 = 4096;
/// More groups than fit without descriptors all over the device.
const GROUPS_MAX: u64 = 1 << 21;

/// Parts of a device: first byte and length.
type Parts = Vec<(u64, u64)>;

/// Bytes that are compared with zeros at a time.
const PIECE: usize = 4096;

/// Whether everything on a volume is what `mkfs.ext4` made, or was deleted from it. Where no ext4 is, it has
/// to hold nothing.
pub(super) fn explained(file: &File, size: u64) -> Result<(), DeviceError> {
    let Some(volume) = understood(file)? else { return Ok(guard::holds_nothing(file, size)?) };
    guard::has_no_other_mark(file, size, OWNER, SUPERBLOCK)?;
    if volume.was_mounted {
        return Ok(());
    }
    let journal = volume.journal(file)?;
    let explains = |at: u64, piece: &[u8]| is_of_journal(&journal, at, piece);
    for (start, length) in &journal {
        let range = (*start, start.saturating_add(*length).min(size));
        let found = pieces::unexplained(file, range, PIECE, &explains)
            .map_err(DeviceError::step("it cannot be read"))?;
        if let Some(byte) = found.first() {
            return Err(DeviceError::Data { byte, program: "mkfs.ext4" });
        }
    }
    let end = |start: u64, length: u64| start.saturating_add(length).min(size);
    let places = volume.places(file)?;
    let made: Vec<(u64, u64)> =
        places.into_iter().map(|(start, length)| (start, end(start, length))).collect();
    Ok(guard::holds_nothing_beside(file, size, &made)?)
}

/// Whether an ext4 on a device was mounted since it was made; not where none is, or it cannot be undone.
pub(super) fn was_mounted(device: &Path) -> bool {
    let known = File::open(device).ok().and_then(|file| understood(&file).ok()?);
    known.is_some_and(|known| known.was_mounted)
}

/// Fills what `mkfs.ext4` wrote with zeros. Where no ext4 is nothing is done: what else stands there is found
/// by the look at the volume below. `discard`: files on it are given up, as far as its superblock names
/// places. What `mkfs.ext4` did not write into the journal of a filesystem that was never mounted is left and
/// returned.
pub(super) fn clear(file: &File, discard: bool) -> Result<Ranges, DeviceError> {
    let volume = match understood(file) {
        Ok(Some(volume)) => volume,
        Ok(None) => return Ok(Ranges::default()),
        Err(_) if discard => match superblock(file)?.and_then(|head| Volume::read(&head)) {
            Some(volume) => volume,
            None => return zero(file, &[(0, SUPERBLOCK.1)], &|_, _| true),
        },
        Err(why) => return Err(why),
    };
    // What is zeroed last is what the places are read from: a step that is broken off can be done again.
    let places = volume.places(file)?;
    if !discard {
        guard::has_no_other_mark(
            file,
            size_of(file).map_err(DeviceError::step("its size cannot be read"))?,
            OWNER,
            SUPERBLOCK,
        )?;
    }
    if discard || volume.was_mounted {
        return zero(file, &places, &|_, _| true);
    }
    let journal = volume.journal(file)?;
    let is_in_journal =
        |at: u64| journal.iter().any(|(start, length)| (*start..*start + *length).contains(&at));
    zero(file, &places, &|at, piece| !is_in_journal(at) || is_of_journal(&journal, at, piece))
}

/// Whether a piece is the superblock at the begin of a journal that was never used: all else of it is zeros.
fn is_of_journal(journal: &Parts, at: u64, piece: &[u8]) -> bool {
    let rest = piece.get(JOURNAL_SUPER_BYTES..).unwrap_or_default();
    journal.first().is_some_and(|(start, _)| *start == at)
        && piece.starts_with(&JOURNAL_MAGIC)
        && pieces::is_zero(rest)
}

/// The superblock; nothing where none is.
fn superblock(file: &File) -> Result<Option<Vec<u8>>, DeviceError> {
    let mut head = vec![0; SUPER_BYTES];
    file.read_exact_at(&mut head, SUPER_AT).map_err(DeviceError::step("cannot be read"))?;
    Ok((bytes(&head, 56) == Some(MAGIC)).then_some(head))
}

/// The ext4 on a device, without files; nothing where none is.
fn understood(file: &File) -> Result<Option<Volume>, DeviceError> {
    linerate_sys::block::forget(file).map_err(DeviceError::step("its cache cannot be emptied"))?;
    let Some(head) = superblock(file)? else { return Ok(None) };
    let volume = Volume::read(&head).ok_or(DeviceError::OddSuperblock)?;
    if volume.is_dirty {
        return Err(DeviceError::Dirty("it was not unmounted cleanly"));
    }
    if volume.has_files(file)? {
        return Err(DeviceError::Files);
    }
    Ok(Some(volume))
}

/// Writes zeros into what is explained of parts, in their order and as far as the device goes, waits until
/// they are safe, and returns the rest.
fn zero(file: &File, parts: &[(u64, u64)], explains: pieces::Explains<'_>) -> Result<Ranges, DeviceError> {
    let (size, mut left) =
        (size_of(file).map_err(DeviceError::step("its size cannot be read"))?, Ranges::default());
    let written = parts.iter().try_for_each(|(start, length)| {
        let range = (*start, start.saturating_add(*length).min(size));
        pieces::zero(file, range, PIECE, explains).map(|found| left.extend(found))
    });
    written.and_then(|()| file.sync_data()).map_err(DeviceError::step("zeros cannot be written"))?;
    Ok(left)
}

fn u16_at(head: &[u8], at: usize) -> Option<u16> {
    bytes(head, at).map(u16::from_le_bytes)
}

fn u32_at(head: &[u8], at: usize) -> Option<u32> {
    bytes(head, at).map(u32::from_le_bytes)
}

/// What the superblock tells.
#[derive(Debug)]
struct Volume {
    block: u64,
    blocks: u64,
    first_block: u64,
    groups: u64,
    group_blocks: u64,
    group_inodes: u64,
    inode_bytes: u64,
    descriptor_bytes: u64,
    /// Blocks of descriptors behind a superblock, with those that are kept for growing.
    descriptor_blocks: u64,
    knows_unused: bool,
    /// Inodes of a filesystem without files.
    own_inodes: u64,
    is_dirty: bool,
    was_mounted: bool,
}

/// What a group descriptor tells.
#[derive(Debug)]
struct Group {
    block_bitmap: u64,
    inode_bitmap: u64,
    inode_table: u64,
    free_inodes: u64,
    /// Inodes at the end of the table that were never used.
    unused_inodes: u64,
}

impl Volume {
    fn read(head: &[u8]) -> Option<Self> {
        let (compat, incompat, ro) = (u32_at(head, 92)?, u32_at(head, 96)?, u32_at(head, 100)?);
        let unknown = INCOMPAT_JOURNAL_DEVICE | INCOMPAT_META_GROUPS;
        if compat & COMPAT_SPARSE_SUPER2 != 0 || incompat & unknown != 0 || ro & RO_CLUSTERS != 0 {
            return None;
        }
        let wide = incompat & INCOMPAT_64BIT != 0;
        let high = if wide { u64::from(u32_at(head, 336)?) << 32 } else { 0 };
        let block =
            1024_u64.checked_shl(u32_at(head, 24)?).filter(|block| (1024..=65_536).contains(block))?;
        let (blocks, first_block) = (high | u64::from(u32_at(head, 4)?), u64::from(u32_at(head, 20)?));
        let group_blocks = Some(u64::from(u32_at(head, 32)?)).filter(|blocks| *blocks > 0)?;
        let groups = blocks.checked_sub(first_block)?.div_ceil(group_blocks);
        let descriptor_bytes = if wide { u64::from(u16_at(head, 254)?) } else { 32 };
        if groups == 0 || groups > GROUPS_MAX || !(32..=1024).contains(&descriptor_bytes) {
            return None;
        }
        let inode_bytes = u64::from(u16_at(head, 88)?);
        let is_clean = u16_at(head, 58)? == STATE_CLEAN && incompat & INCOMPAT_RECOVER == 0;
        Some(Self {
            block,
            blocks,
            first_block,
            groups,
            group_blocks,
            group_inodes: u64::from(u32_at(head, 40)?),
            inode_bytes: Some(inode_bytes).filter(|bytes| (128..=4096).contains(bytes))?,
            descriptor_bytes,
            descriptor_blocks: (groups * descriptor_bytes).div_ceil(block) + u64::from(u16_at(head, 206)?),
            knows_unused: ro & RO_UNUSED_INODES != 0,
            own_inodes: u64::from(u32_at(head, 84)?) + u64::from(compat & COMPAT_ORPHAN_FILE != 0),
            is_dirty: !is_clean,
            // `s_mtime`, and `s_mnt_count` since the last check.
            was_mounted: u32_at(head, 44)? != 0 || u16_at(head, 52)? != 0,
        })
    }

    /// Descriptors of some groups.
    fn descriptors(&self, file: &File, begin: u64, end: u64) -> Result<Vec<Group>, DeviceError> {
        let size = self.descriptor_bytes as usize;
        let mut table = vec![0; (end - begin) as usize * size];
        let at = (self.first_block + 1) * self.block + begin * self.descriptor_bytes;
        file.read_exact_at(&mut table, at).map_err(DeviceError::step("its descriptors cannot be read"))?;
        let all: Option<Vec<Group>> = table.chunks_exact(size).map(|one| self.group(one)).collect();
        all.ok_or(DeviceError::OddSuperblock)
    }

    fn group(&self, one: &[u8]) -> Option<Group> {
        let is_wide = one.len() >= 64;
        let block = |low: usize, high: usize| {
            let above = if is_wide { u64::from(u32_at(one, high)?) << 32 } else { 0 };
            Some(above | u64::from(u32_at(one, low)?)).filter(|block| *block < self.blocks)
        };
        let count = |low: usize, high: usize| {
            let above = if is_wide { u64::from(u16_at(one, high)?) << 16 } else { 0 };
            Some(above | u64::from(u16_at(one, low)?)).filter(|count| *count <= self.group_inodes)
        };
        let unused = if !self.knows_unused {
            0
        } else if u16_at(one, 18)? & GROUP_INODES_UNUSED != 0 {
            self.group_inodes
        } else {
            count(28, 50)?
        };
        Some(Group {
            block_bitmap: block(0, 32)?,
            inode_bitmap: block(4, 36)?,
            inode_table: block(8, 40)?,
            free_inodes: count(14, 46)?,
            unused_inodes: unused,
        })
    }

    /// Whether it has more inodes in use than its own.
    fn has_files(&self, file: &File) -> Result<bool, DeviceError> {
        let (mut used, mut begin) = (0, 0);
        while begin < self.groups {
            let end = (begin + GROUPS_AT_ONCE).min(self.groups);
            let groups = self.descriptors(file, begin, end)?;
            used += groups.iter().map(|group| self.group_inodes - group.free_inodes).sum::<u64>();
            begin = end;
        }
        Ok(used > self.own_inodes)
    }

    /// Where the descriptor of a group says that it was written.
    fn of_group(&self, number: u64, group: &Group) -> Option<Parts> {
        let part = |block: u64, blocks: u64| Some((block.checked_mul(self.block)?, blocks * self.block));
        let table = ((self.group_inodes - group.unused_inodes) * self.inode_bytes).div_ceil(self.block);
        let mut parts =
            vec![part(group.inode_table, table)?, part(group.inode_bitmap, 1)?, part(group.block_bitmap, 1)?];
        if has_super(number) {
            let begin = self.first_block + number * self.group_blocks;
            parts.push(part(begin, 1 + self.descriptor_blocks)?);
        }
        if number == 0 {
            // The superblock itself last: with blocks of 1 KiB it stands behind an empty one.
            parts.push((0, SUPERBLOCK.1));
        }
        Some(parts)
    }

    /// Everything that `mkfs.ext4` wrote, and mounting without a file: what its inodes hold, the blocks that
    /// tell where, the groups, the first one last.
    fn places(&self, file: &File) -> Result<Parts, DeviceError> {
        let (mut all, trees) = self.contents(file)?;
        all.extend(trees);
        let mut end = self.groups;
        while end > 0 {
            let begin = end.saturating_sub(GROUPS_AT_ONCE);
            for (number, group) in self.descriptors(file, begin, end)?.iter().enumerate().rev() {
                all.extend(self.of_group(begin + number as u64, group).ok_or(DeviceError::OddSuperblock)?);
            }
            end = begin;
        }
        Ok(all)
    }

    /// What its own inodes hold (directories, journal, file of orphans), and the blocks that tell where.
    fn contents(&self, file: &File) -> Result<(Parts, Parts), DeviceError> {
        let (mut contents, mut trees) = (Parts::new(), Parts::new());
        let table = self.inode_table(file)?;
        for number in 1..=self.own_inodes.min(self.group_inodes) {
            let inode = self.inode(file, table, number)?;
            if u32_at(&inode, 32).unwrap_or(0) & INODE_EXTENTS != 0 {
                self.extents(file, &inode[40..100], EXTENTS_DEPTH_MAX, (&mut contents, &mut trees))?;
            } else if number == RESIZE_INODE {
                // Its other blocks are those of the descriptors.
                let block = u64::from(u32_at(&inode, 40 + 13 * 4).unwrap_or(0));
                contents
                    .extend((1..self.blocks).contains(&block).then_some((block * self.block, self.block)));
            }
        }
        Ok((contents, trees))
    }

    /// Where the inodes of the first group begin.
    fn inode_table(&self, file: &File) -> Result<u64, DeviceError> {
        let first = self.descriptors(file, 0, 1)?;
        Ok(first.first().ok_or(DeviceError::OddSuperblock)?.inode_table * self.block)
    }

    fn inode(&self, file: &File, table: u64, number: u64) -> Result<[u8; 128], DeviceError> {
        let mut inode = [0; 128];
        let at = table + (number - 1) * self.inode_bytes;
        file.read_exact_at(&mut inode, at).map_err(DeviceError::step("an inode cannot be read"))?;
        Ok(inode)
    }

    /// What the journal holds, in its order; nothing where none is, or its blocks are not in extents.
    fn journal(&self, file: &File) -> Result<Parts, DeviceError> {
        let (mut contents, mut trees) = (Parts::new(), Parts::new());
        let inode = self.inode(file, self.inode_table(file)?, JOURNAL_INODE)?;
        if u32_at(&inode, 32).unwrap_or(0) & INODE_EXTENTS != 0 {
            self.extents(file, &inode[40..100], EXTENTS_DEPTH_MAX, (&mut contents, &mut trees))?;
        }
        Ok(contents)
    }

    /// The places of a tree of extents; of one whose blocks are zero already, what is left.
    fn extents(
        &self,
        file: &File,
        node: &[u8],
        depth_max: u16,
        (contents, trees): (&mut Parts, &mut Parts),
    ) -> Result<(), DeviceError> {
        if u16_at(node, 0) != Some(EXTENTS_MAGIC) {
            return Ok(());
        }
        let depth = u16_at(node, 6).filter(|depth| *depth <= depth_max).ok_or(DeviceError::OddSuperblock)?;
        let entries = usize::from(u16_at(node, 2).unwrap_or(0));
        for entry in node[12..].chunks_exact(12).take(entries) {
            let (low, high) = if depth > 0 { (4, 8) } else { (8, 6) };
            let above = u64::from(u16_at(entry, high).unwrap_or(0)) << 32;
            let block = above | u64::from(u32_at(entry, low).unwrap_or(0));
            let blocks = if depth > 0 { 1 } else { extent_blocks(u16_at(entry, 4).unwrap_or(0)) };
            if block.checked_add(blocks).is_none_or(|end| end > self.blocks) {
                return Err(DeviceError::OddSuperblock);
            }
            let part = (block * self.block, blocks * self.block);
            if depth > 0 {
                let mut below = vec![0; self.block as usize];
                file.read_exact_at(&mut below, part.0).map_err(DeviceError::step("cannot be read"))?;
                self.extents(file, &below, depth - 1, (contents, trees))?;
                trees.push(part);
            } else {
                contents.push(part);
            }
        }
        Ok(())
    }
}

/// Above 32,768 blocks an extent is one that was never written, of so many less.
fn extent_blocks(length: u16) -> u64 {
    u64::from(if length > 0x8000 { length - 0x8000 } else { length })
}

/// `ext4_bg_has_super()` with `sparse_super`: groups 0 and 1, and powers of 3, 5 and 7.
fn has_super(group: u64) -> bool {
    let is_power = |base: u64| {
        let mut power = base;
        while power < group {
            power *= base;
        }
        power == group
    };
    group <= 1 || is_power(3) || is_power(5) || is_power(7)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek};
    use std::path::Path;

    use super::*;

    fn open(path: &Path) -> File {
        File::options().read(true).write(true).open(path).unwrap()
    }

    fn made(path: &Path, size: u64, more: &[&str]) -> File {
        File::create(path).unwrap().set_len(size).unwrap();
        let words = ["-q", "-F", "-b", "4096", "-E", "stride=16,stripe_width=288,discard"];
        linerate_testkit::run("mkfs.ext4", &[&words[..], more, &[path.to_str().unwrap()]].concat());
        open(path)
    }

    /// First byte that is not zero. The files are sparse: what was never written costs nothing.
    fn left(mut file: &File) -> Option<u64> {
        file.rewind().unwrap();
        let (mut piece, mut at) = (vec![0; 1 << 20], 0);
        loop {
            let read = file.read(&mut piece).unwrap();
            if read == 0 {
                return None;
            }
            if let Some(byte) = piece[..read].iter().position(|byte| *byte != 0) {
                return Some(at + byte as u64);
            }
            at += read as u64;
        }
    }

    #[test]
    fn nothing_is_left_of_an_ext4_of_the_real_tool() {
        let test = "nothing_is_left_of_an_ext4_of_the_real_tool";
        if !linerate_testkit::has(test, "mkfs.ext4", "e2fsprogs") {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("volume");
        let mut looked = 0;
        // From the smallest to several superblocks and a journal of more extents than an inode holds; older
        // features.
        for (size, more) in [
            (8 << 20, &[][..]),
            (432 << 20, &[]),
            (3 << 30, &[]),
            (3 << 30, &["-J", "size=1024"]),
            (700 << 20, &["-O", "^64bit,^metadata_csum,uninit_bg"]),
            (700 << 20, &["-O", "^resize_inode"]),
            (300 << 20, &["-b", "1024"]),
        ] {
            let file = made(&path, size, more);
            assert!(left(&file).is_some(), "there is a filesystem");
            explained(&file, size).unwrap();
            // In the last MiB, each block of which is looked at.
            let strange = size - (1 << 20) + 8192;
            let places = understood(&file).unwrap().unwrap().places(&file).unwrap();
            if !places.iter().any(|(start, length)| (*start..start + length).contains(&strange)) {
                file.write_all_at(b"data", strange).unwrap();
                let found = explained(&file, size).unwrap_err().to_string();
                assert!(found.contains(&strange.to_string()), "{found}");
                file.write_all_at(&[0; 4], strange).unwrap();
                looked += 1;
            }
            assert!(clear(&file, false).unwrap().is_empty());
            assert_eq!(left(&file), None, "{size} {more:?}");
            // Broken off and done again: nothing is there, and that is no failure.
            clear(&file, false).unwrap();
            explained(&file, size).unwrap();
        }
        assert!(looked > 3, "{looked}");
    }

    #[test]
    fn an_ext4_with_files_or_of_somebody_else_stays_as_it_is() {
        let test = "an_ext4_with_files_or_of_somebody_else_stays_as_it_is";
        if !linerate_testkit::has(test, "mkfs.ext4", "e2fsprogs") {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let (path, files) = (folder.path().join("volume"), folder.path().join("files"));
        std::fs::create_dir(&files).unwrap();
        std::fs::write(files.join("a"), "content").unwrap();
        let stays = |file: &File, why: &str| {
            let mut before = vec![0; 1 << 20];
            file.read_exact_at(&mut before, 0).unwrap();
            let refused = clear(file, false).unwrap_err().to_string();
            assert!(refused.contains(why), "{refused}");
            let mut after = vec![0; 1 << 20];
            file.read_exact_at(&mut after, 0).unwrap();
            assert!(before == after, "something was written: {why}");
        };
        stays(&made(&path, 64 << 20, &["-d", files.to_str().unwrap()]), "there are files on it");
        // `s_feature_incompat` of a host that stopped while it was mounted, and a state with errors.
        let file = made(&path, 64 << 20, &[]);
        let mut byte = [0];
        file.read_exact_at(&mut byte, SUPER_AT + 96).unwrap();
        file.write_all_at(&[byte[0] | INCOMPAT_RECOVER as u8], SUPER_AT + 96).unwrap();
        stays(&file, "not unmounted cleanly");
        let file = made(&path, 64 << 20, &[]);
        file.write_all_at(&[3], SUPER_AT + 58).unwrap();
        stays(&file, "not unmounted cleanly");
        stays(&made(&path, 64 << 20, &["-O", "meta_bg,^resize_inode"]), "not one that `mkfs.ext4` makes");
        // Files that are given up: nothing that names them is left.
        let file = made(&path, 64 << 20, &["-d", files.to_str().unwrap()]);
        clear(&file, true).unwrap();
        assert_eq!(superblock(&file).unwrap(), None);
    }

    /// Written past a filesystem that was never mounted: into its journal, which has nothing but its
    /// superblock.
    #[test]
    fn data_in_a_journal_that_was_never_used_are_an_obstacle_and_are_left() {
        let test = "data_in_a_journal_that_was_never_used_are_an_obstacle_and_are_left";
        if !linerate_testkit::has(test, "mkfs.ext4", "e2fsprogs") {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let size = 432 << 20;
        let file = made(&folder.path().join("volume"), size, &[]);
        let journal = understood(&file).unwrap().unwrap().journal(&file).unwrap();
        let last = journal.last().unwrap();
        let at = last.0 + last.1 - 8192;
        file.write_all_at(b"data", at).unwrap();
        let found = explained(&file, size).unwrap_err().to_string();
        assert_eq!(found, format!("there is data at byte {at} that mkfs.ext4 did not write"));
        assert_eq!(clear(&file, false).unwrap().first(), Some(at));
        assert_eq!(left(&file), Some(at), "all else is gone");
        // Behind the superblock of the journal, in its first block.
        let file = made(&folder.path().join("other"), size, &[]);
        file.write_all_at(b"data", journal[0].0 + 2048).unwrap();
        assert!(explained(&file, size).is_err());
    }

    /// An ext4 that was mounted, shrunk and is empty again, and metadata of DRBD behind it.
    #[test]
    fn an_empty_ext4_does_not_explain_the_mark_of_another_owner() {
        let test = "an_empty_ext4_does_not_explain_the_mark_of_another_owner";
        if !linerate_testkit::has(test, "mkfs.ext4", "e2fsprogs") {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let size = 432 << 20;
        let file = made(&folder.path().join("volume"), size, &[]);
        // `s_mtime`.
        file.write_all_at(&[1, 2, 3, 4], SUPER_AT + 44).unwrap();
        assert!(understood(&file).unwrap().unwrap().was_mounted);
        explained(&file, size).unwrap();
        let at = size - 4096 + 60;
        file.write_all_at(b"\x83\x74\x02\x6d", at).unwrap();
        let expected = format!("it has the mark of DRBD at byte {at}, beside that of {OWNER}");
        assert_eq!(explained(&file, size).unwrap_err().to_string(), expected);
        assert_eq!(clear(&file, false).unwrap_err().to_string(), expected);
        assert!(superblock(&file).unwrap().is_some(), "nothing was zeroed");
    }

    #[test]
    fn a_superblock_of_chance_names_no_places() {
        let mut head = vec![0xff; SUPER_BYTES];
        assert!(Volume::read(&head).is_none());
        head.fill(0);
        assert!(Volume::read(&head).is_none());
        for end in 0..SUPER_BYTES {
            assert!(Volume::read(&head[..end]).is_none());
        }
    }
}
