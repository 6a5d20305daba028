//! Records that identify themselves: every block of 4 KiB carries its run, file, version, offset and a
//! checksum, and every byte follows from these. A reader can distinguish an older version, a block of another
//! file and garbage.
//!
//! In: which record. Out: its bytes. No file, no clock.

use linerate_model::durability::PatternRule;
use linerate_model::random::Random;

/// Bytes that are described together; file systems keep or lose them together.
pub(super) const BLOCK_BYTES: usize = 4096;
/// Bytes of the head of a block.
const HEAD_BYTES: usize = 40;
const MAGIC: [u8; 8] = *b"LRDURAB1";

/// Sizes of contents: what mail, source text and small objects have.
const WHOLE_BYTES: (u64, u64) = (4 << 10, 64 << 10);
/// Sizes of records of a log.
const GROWN_BYTES: (u64, u64) = (512, 8 << 10);

/// A file of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) run: u64,
    /// Checksum of the name of the pattern.
    pub(super) pattern: u32,
    pub(super) slot: u32,
}

impl Key {
    pub(super) fn new(run: u64, pattern: &str, slot: u32) -> Self {
        Self { run, pattern: crc32fast::hash(pattern.as_bytes()), slot }
    }

    fn seed(self, version: u32, block: u32) -> u64 {
        let state = self.run ^ (u64::from(self.pattern) << 32) ^ u64::from(self.slot);
        let first = Random(state).next_u64();
        Random(first ^ (u64::from(version) << 32) ^ u64::from(block)).next_u64()
    }
}

/// Bytes of a version of a file, or of a record of a file that grows.
pub(super) fn length(shape: PatternRule, key: Key, version: u32) -> usize {
    let (low, high) = if shape == PatternRule::Grown { GROWN_BYTES } else { WHOLE_BYTES };
    // A file that is overwritten keeps its length.
    let seed = key.seed(if shape == PatternRule::InPlace { 0 } else { version }, u32::MAX);
    let bytes = (low + Random(seed).next_u64() % (high - low + 1)) as usize;
    // The last block is large enough for its head.
    match bytes % BLOCK_BYTES {
        rest @ 1..HEAD_BYTES => bytes - rest,
        _ => bytes,
    }
}

/// All bytes of it.
pub(super) fn content(shape: PatternRule, key: Key, version: u32) -> Vec<u8> {
    let total = length(shape, key, version);
    let mut bytes = Vec::with_capacity(total);
    let mut number = 0;
    while bytes.len() < total {
        let size = (total - bytes.len()).min(BLOCK_BYTES);
        let from = bytes.len();
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&key.run.to_le_bytes());
        for word in [key.pattern, key.slot, version, number, total as u32] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.extend_from_slice(&[0; 4]);
        let filled = bytes.len();
        bytes.resize(from + size, 0);
        Random(key.seed(version, number)).fill(&mut bytes[filled..]);
        let sum = checksum(&bytes[from..]);
        bytes[from + HEAD_BYTES - 4..from + HEAD_BYTES].copy_from_slice(&sum.to_le_bytes());
        number += 1;
    }
    bytes
}

/// Of a block of at least [`HEAD_BYTES`], without the bytes of the checksum itself.
fn checksum(block: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&block[..HEAD_BYTES - 4]);
    hasher.update(&block[HEAD_BYTES..]);
    hasher.finalize()
}

/// Head of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) key: Key,
    pub(super) version: u32,
    pub(super) block: u32,
    /// The checksum is that of the bytes; never of a block that was cut.
    pub(super) sound: bool,
}

/// Reads the head of a block; `None` when it is not of this format.
pub(super) fn head(block: &[u8]) -> Option<Head> {
    if block.len() < HEAD_BYTES || block[..8] != MAGIC {
        return None;
    }
    let word = |at: usize| u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]);
    let run = u64::from(word(8)) | (u64::from(word(12)) << 32);
    let key = Key { run, pattern: word(16), slot: word(20) };
    Some(Head { key, version: word(24), block: word(28), sound: checksum(block) == word(36) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPES: [PatternRule; 5] = [
        PatternRule::Fresh,
        PatternRule::Truncated,
        PatternRule::InPlace,
        PatternRule::Grown,
        PatternRule::Replaced,
    ];

    #[test]
    fn every_block_has_a_head_and_is_large_enough_for_it() {
        for shape in SHAPES {
            for slot in 0..200 {
                let key = Key::new(7, "create", slot);
                let bytes = content(shape, key, 3);
                assert_eq!(bytes.len(), length(shape, key, 3));
                for (number, block) in bytes.chunks(BLOCK_BYTES).enumerate() {
                    let expected = Head { key, version: 3, block: number as u32, sound: true };
                    assert_eq!(head(block), Some(expected), "{shape:?} {slot}");
                }
            }
        }
    }

    #[test]
    fn no_two_blocks_are_alike_and_a_changed_bit_is_seen() {
        let mut blocks: Vec<Vec<u8>> = Vec::new();
        for (run, slot, version) in [(7, 0, 1), (8, 0, 1), (7, 1, 1), (7, 0, 2)] {
            let bytes = content(PatternRule::InPlace, Key::new(run, "overwrite", slot), version);
            blocks.extend(bytes.chunks_exact(BLOCK_BYTES).map(<[u8]>::to_vec));
        }
        let all = blocks.len();
        let mut changed = blocks[0].clone();
        changed[2000] ^= 1;
        assert!(!head(&changed).unwrap().sound);
        blocks.sort();
        blocks.dedup();
        assert_eq!(blocks.len(), all);
        assert_eq!((head(&[]), head(&[0; BLOCK_BYTES])), (None, None));
    }

    #[test]
    fn only_an_overwritten_file_keeps_its_length() {
        let lengths = |shape| {
            let mut all: Vec<usize> = (1..20).map(|v| length(shape, Key::new(1, "x", 0), v)).collect();
            all.sort_unstable();
            all.dedup();
            all.len()
        };
        assert_eq!(lengths(PatternRule::InPlace), 1);
        assert!(lengths(PatternRule::Replaced) > 10 && lengths(PatternRule::Grown) > 10);
    }
}
