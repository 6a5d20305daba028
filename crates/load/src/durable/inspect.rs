//! What is left of a file: read and compared with every byte that it should have.
//!
//! In: a path and which file it is. Out: what is there. Reads at most as much as was written, and never
//! follows a link.

use std::fs::OpenOptions;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use linerate_model::durability::{CONTENT_BYTES_MAX, FileState, PatternRule};
use linerate_sys::filesystem;

use super::record::{BLOCK_BYTES, Head, Key, content, head};

/// Checks a file. A file that cannot be read is corrupt, with the kernel's error.
pub(super) fn inspect(path: &Path, shape: PatternRule, key: Key) -> FileState {
    match read(path, shape, key) {
        Ok(seen) => seen,
        Err(error) if error.kind() == io::ErrorKind::NotFound => FileState::Missing,
        Err(error) => corrupt(0, format!("it cannot be read: {error}")),
    }
}

fn corrupt(version: u32, what: String) -> FileState {
    FileState::Corrupt { version, what }
}

fn read(path: &Path, shape: PatternRule, key: Key) -> io::Result<FileState> {
    if !std::fs::symlink_metadata(path)?.is_file() {
        return Ok(corrupt(0, "it is no plain file any more".into()));
    }
    let file = OpenOptions::new().read(true).custom_flags(filesystem::NO_FOLLOW).open(path)?;
    if shape == PatternRule::Grown {
        return grown(BufReader::with_capacity(64 << 10, file), key);
    }
    let mut bytes = Vec::new();
    file.take(CONTENT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    Ok(whole(&bytes, shape, key))
}

fn is_zeros(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

/// What a block is, seen from the file that it is in.
enum Block {
    /// Bytes of this version, all that there are.
    Good(u32),
    Zeros,
    Other(String),
}

fn block(bytes: &[u8], number: usize, shape: PatternRule, key: Key) -> Block {
    if is_zeros(bytes) {
        return Block::Zeros;
    }
    let Some(Head { key: its, version, block, sound }) = head(bytes) else {
        return Block::Other(format!("block {number} holds nothing of ours"));
    };
    if its == key && block as usize == number {
        let expected = content(shape, key, version);
        let from = number * BLOCK_BYTES;
        if expected.get(from..from + bytes.len()) == Some(bytes) {
            return Block::Good(version);
        }
    } else if sound {
        let of = if its.run == key.run { "of this run" } else { "of another run" };
        return Block::Other(format!(
            "block {number} holds block {block} of version {version} of another file ({}) {of}",
            its.slot
        ));
    }
    Block::Other(format!("block {number} is damaged"))
}

/// A file that is written at once.
fn whole(bytes: &[u8], shape: PatternRule, key: Key) -> FileState {
    if bytes.is_empty() {
        return FileState::Empty;
    }
    let length = bytes.len() as u64;
    if is_zeros(bytes) {
        return FileState::Zeros { version: 0, bytes: length };
    }
    let (mut versions, mut zeros) = (Vec::new(), 0);
    for (number, bytes) in bytes.chunks(BLOCK_BYTES).enumerate() {
        match block(bytes, number, shape, key) {
            Block::Good(version) => versions.push(version),
            Block::Zeros => zeros += 1,
            Block::Other(what) => return corrupt(0, what),
        }
    }
    let blocks = versions.len() + zeros;
    let (Some(oldest), Some(newest)) = (versions.iter().min().copied(), versions.iter().max().copied())
    else {
        return FileState::Zeros { version: 0, bytes: length };
    };
    if zeros > 0 {
        return corrupt(0, format!("{zeros} of {blocks} blocks are zeros"));
    }
    if oldest < newest {
        return FileState::Torn { oldest, newest };
    }
    if bytes.len() < content(shape, key, newest).len() {
        return FileState::Short { version: newest, bytes: length };
    }
    FileState::Whole { version: newest }
}

/// A file that grew record by record.
fn grown(mut file: impl Read, key: Key) -> io::Result<FileState> {
    let (mut version, mut bytes) = (0, 0);
    loop {
        let expected = content(PatternRule::Grown, key, version + 1);
        let mut found = Vec::with_capacity(expected.len());
        (&mut file).take(expected.len() as u64).read_to_end(&mut found)?;
        bytes += found.len() as u64;
        if found == expected {
            version += 1;
            continue;
        }
        if found.is_empty() {
            return Ok(if version == 0 { FileState::Empty } else { FileState::Whole { version } });
        }
        if expected.starts_with(&found) {
            return Ok(FileState::Short { version, bytes });
        }
        if is_zeros(&found) {
            return Ok(FileState::Zeros { version, bytes });
        }
        return Ok(corrupt(version, format!("something else follows record {version}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: PatternRule = PatternRule::Replaced;

    fn key() -> Key {
        Key::new(7, "replace", 3)
    }

    fn version(version: u32) -> Vec<u8> {
        content(SHAPE, key(), version)
    }

    #[test]
    fn every_kind_of_loss_is_distinguished() {
        let good = version(2);
        let see = |bytes: &[u8]| whole(bytes, SHAPE, key());
        assert_eq!(see(&good), FileState::Whole { version: 2 });
        assert_eq!(see(&[]), FileState::Empty);
        assert_eq!(see(&vec![0; good.len()]), FileState::Zeros { version: 0, bytes: good.len() as u64 });
        for bytes in [60, 4096, good.len() - 1] {
            assert_eq!(see(&good[..bytes]), FileState::Short { version: 2, bytes: bytes as u64 });
        }
        let what = |bytes: &[u8]| match see(bytes) {
            FileState::Corrupt { version: 0, what } => what,
            other => panic!("{other:?}"),
        };
        let mut bytes = good.clone();
        bytes[4096..8192].fill(0);
        assert!(what(&bytes).contains("blocks are zeros"));
        bytes = good.clone();
        bytes[5000] ^= 0x10;
        assert_eq!(what(&bytes), "block 1 is damaged");
        bytes = good.clone();
        bytes[..4096].copy_from_slice(&content(SHAPE, Key { slot: 9, ..key() }, 1)[..4096]);
        assert!(what(&bytes).contains("of another file (9) of this run"));
        bytes.push(1);
        what(&bytes);
        assert_eq!(what(b"hello"), "block 0 holds nothing of ours");
        // Two blocks are swapped.
        let swapped: Vec<u8> = [&good[4096..8192], &good[..4096], &good[8192..]].concat();
        assert!(what(&swapped).contains("block 0"));
    }

    #[test]
    fn an_overwritten_file_may_be_of_two_versions() {
        let (old, new) = (content(PatternRule::InPlace, key(), 4), content(PatternRule::InPlace, key(), 6));
        assert!(old.len() == new.len() && new.len() > 4096);
        let mixed = [&new[..4096], &old[4096..]].concat();
        assert_eq!(whole(&mixed, PatternRule::InPlace, key()), FileState::Torn { oldest: 4, newest: 6 });
    }

    #[test]
    fn a_file_that_grows_is_whole_up_to_a_record() {
        let records: Vec<Vec<u8>> = (1..5).map(|v| content(PatternRule::Grown, key(), v)).collect();
        let see = |bytes: &[u8]| grown(bytes, key()).unwrap();
        let three = records[..3].concat();
        assert_eq!(see(&[]), FileState::Empty);
        assert_eq!(see(&three), FileState::Whole { version: 3 });
        let cut = three.len() - 1;
        assert_eq!(see(&three[..cut]), FileState::Short { version: 2, bytes: cut as u64 });
        let zeros = [&three[..], &[0; 100]].concat();
        assert_eq!(see(&zeros), FileState::Zeros { version: 3, bytes: zeros.len() as u64 });
        let hole = [&records[0][..], &vec![0; records[1].len()], &records[2]].concat();
        assert!(matches!(see(&hole), FileState::Zeros { version: 1, .. }));
        let other = [&three[..], b"something else that is long enough"].concat();
        assert!(matches!(see(&other), FileState::Corrupt { version: 3, .. }));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>, head in 0_usize..4096) {
            whole(&bytes, SHAPE, key());
            grown(bytes.as_slice(), key()).unwrap();
            let tail = [&version(1)[..head], &bytes].concat();
            whole(&tail, SHAPE, key());
        }
    }
}
