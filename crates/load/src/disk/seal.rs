//! A seal in every 512 bytes that a load writes: it distinguishes them from writes of other programs before
//! zeros are put back.
//!
//! In: memory that is going to be written, or what was read. Out: sealed memory; whether a sector is as a
//! load of this job wrote it.

use crate::job::Job;

/// What is sealed: the smallest block of a drive.
pub(super) const SECTOR: usize = 512;
/// A key of the job and a checksum of all that stands before it, at the end of the sector.
const SEAL_AT: usize = SECTOR - 8;

/// The seal of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seal([u8; 4]);

impl Seal {
    /// From the token of the job, which itself is not written: only its checksum.
    pub(super) fn of(job: &Job<'_>) -> Self {
        Self(crc32fast::hash(&job.spec.token).to_le_bytes())
    }

    /// Seals every whole sector.
    pub(super) fn put(self, memory: &mut [u8]) {
        for sector in memory.chunks_exact_mut(SECTOR) {
            let end = self.end(&sector[..SEAL_AT]);
            sector[SEAL_AT..].copy_from_slice(&end);
        }
    }

    /// Whether a sector was sealed by this job and not changed since.
    pub(super) fn is_in(self, sector: &[u8]) -> bool {
        sector.len() == SECTOR && sector[SEAL_AT..] == self.end(&sector[..SEAL_AT])
    }

    fn end(self, content: &[u8]) -> [u8; 8] {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(content);
        hasher.update(&self.0);
        let mut end = [0; 8];
        end[..4].copy_from_slice(&self.0);
        end[4..].copy_from_slice(&hasher.finalize().to_le_bytes());
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sector_with_one_other_byte_is_not_sealed() {
        let (seal, mut memory) = (Seal([1, 2, 3, 4]), vec![7; 2 * SECTOR + 5]);
        seal.put(&mut memory);
        assert!(memory.chunks_exact(SECTOR).all(|sector| seal.is_in(sector)));
        assert!(!Seal([1, 2, 3, 5]).is_in(&memory[..SECTOR]), "of another job");
        assert!(!seal.is_in(&[0; SECTOR]) && !seal.is_in(&memory[2 * SECTOR..]));
        for at in [0, 8, 300, SEAL_AT - 1, SEAL_AT, SECTOR - 1] {
            let mut changed = memory[..SECTOR].to_vec();
            changed[at] ^= 1;
            assert!(!seal.is_in(&changed), "{at}");
        }
    }
}
