//! Which filesystem a device begins with, and how large that is by its own superblock.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use linerate_model::step::Contents;
use thiserror::Error;

/// Superblock of ext2 to ext4: at 1024, its magic at 56, in the kernel's `fs/ext4/ext4.h`.
const EXT_AT: usize = 1024;
const EXT_MAGIC: [u8; 2] = [0x53, 0xef];
/// Superblock of XFS: at 0, big-endian, `fs/xfs/libxfs/xfs_format.h`.
pub(super) const XFS_MAGIC: &[u8; 4] = b"XFSB";
/// Both stand in it.
pub(super) const HEAD: usize = 4096;

/// Reads the beginning of a device.
pub(super) fn read(path: &Path) -> io::Result<Contents> {
    let mut file = File::open(path)?;
    let number = Some(file.metadata()?.rdev()).filter(|number| *number != 0);
    let size_bytes = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(0))?;
    let mut head = Vec::new();
    file.take(HEAD as u64).read_to_end(&mut head)?;
    let known = xfs(&head).or_else(|| ext(&head));
    let filesystem = known.as_ref().map(|known| known.kind.to_owned());
    Ok(Contents { size_bytes, number, filesystem, filesystem_bytes: known.and_then(|known| known.bytes) })
}

/// Size of a device or a file.
pub(super) fn size_of(file: &File) -> io::Result<u64> {
    linerate_sys::block::size(file).or_else(|_| file.metadata().map(|meta| meta.len()))
}

/// A filesystem that was recognised.
#[derive(Debug, PartialEq, Eq)]
struct Known {
    kind: &'static str,
    /// By its superblock, if that makes sense.
    bytes: Option<u64>,
}

/// Why a device or a file does not hold what a step needs.
#[derive(Debug, Error)]
pub(super) enum ContentsError {
    #[error("cannot be read: {0}")]
    Unread(#[from] io::Error),
    #[error("holds a filesystem ({kind}) of {bytes} bytes, where at most {max_bytes} would do")]
    Large { kind: String, bytes: u64, max_bytes: u64 },
    #[error("holds a filesystem ({0}) that does not say how large it is")]
    NoSize(String),
    #[error("does not begin with a filesystem any more, as it did when this was planned")]
    NoFilesystem,
    #[error("is there already with another content; remove it, or take another name")]
    OtherFile,
    #[error("is there already, and was not written by a build")]
    AnyFile,
}

/// Says why a filesystem is not one that ends before a byte.
pub(super) fn ends_before(path: &Path, max_bytes: u64) -> Result<(), ContentsError> {
    let contents = read(path)?;
    match (contents.filesystem, contents.filesystem_bytes) {
        (Some(_), Some(bytes)) if bytes <= max_bytes => Ok(()),
        (Some(kind), Some(bytes)) => Err(ContentsError::Large { kind, bytes, max_bytes }),
        (Some(kind), None) => Err(ContentsError::NoSize(kind)),
        (None, _) => Err(ContentsError::NoFilesystem),
    }
}

pub(super) fn bytes<const N: usize>(head: &[u8], at: usize) -> Option<[u8; N]> {
    head.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn ext(head: &[u8]) -> Option<Known> {
    if bytes(head, EXT_AT + 56)? != EXT_MAGIC {
        return None;
    }
    let word = |at| bytes(head, EXT_AT + at).map(u32::from_le_bytes);
    // s_feature_incompat, bit 7: the number of blocks has 64 bits.
    let high = if word(96)? & 0x80 == 0 { 0 } else { word(336)? };
    let blocks = (u64::from(high) << 32) | u64::from(word(4)?);
    // s_log_block_size: 1 KiB and up.
    let block = 1024_u64.checked_shl(word(24)?);
    Some(Known { kind: "ext", bytes: block.and_then(|block| blocks.checked_mul(block)) })
}

fn xfs(head: &[u8]) -> Option<Known> {
    if head.get(..4)? != XFS_MAGIC {
        return None;
    }
    let block = u64::from(u32::from_be_bytes(bytes(head, 4)?));
    let blocks = u64::from_be_bytes(bytes(head, 8)?);
    Some(Known { kind: "xfs", bytes: blocks.checked_mul(block) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_that_superblocks_say() {
        let mut head = vec![0; HEAD];
        assert_eq!((ext(&head), xfs(&head)), (None, None));
        head[1024 + 56..1024 + 58].copy_from_slice(&EXT_MAGIC);
        head[1024 + 4..1024 + 8].copy_from_slice(&409_548_u32.to_le_bytes());
        assert_eq!(ext(&head), Some(Known { kind: "ext", bytes: Some(409_548 << 10) }));
        head[1024 + 24] = 200;
        assert_eq!(ext(&head), Some(Known { kind: "ext", bytes: None }));
        head[..4].copy_from_slice(XFS_MAGIC);
        head[4..8].copy_from_slice(&4096_u32.to_be_bytes());
        head[8..16].copy_from_slice(&1000_u64.to_be_bytes());
        assert_eq!(xfs(&head), Some(Known { kind: "xfs", bytes: Some(4_096_000) }));
        for end in 0..HEAD {
            assert!(xfs(&head[..end]).is_none() || end >= 16);
            assert!(ext(&head[..end]).is_none() || end >= EXT_AT + 100);
        }
    }

    #[test]
    fn a_filesystem_of_the_real_tool_has_its_size() {
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("image");
        File::create(&image).unwrap().set_len(16 << 20).unwrap();
        if !linerate_testkit::has("a_filesystem_of_the_real_tool_has_its_size", "mkfs.ext4", "e2fsprogs") {
            return;
        }
        linerate_testkit::run("mkfs.ext4", &["-q", "-F", image.to_str().unwrap(), "8M"]);
        let contents = read(&image).unwrap();
        assert_eq!((contents.filesystem.as_deref(), contents.filesystem_bytes), (Some("ext"), Some(8 << 20)));
        assert!(ends_before(&image, 8 << 20).is_ok() && ends_before(&image, (8 << 20) - 1).is_err());
    }
}
