//! What a drive keeps: a sparse file, and before it a cache that a power cut empties.
//!
//! In: whole sectors. Out: the same, until the power goes. It never waits and never counts.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use linerate_model::random::Random;
use serde::{Deserialize, Serialize};

/// Smallest unit of a drive, bytes.
pub const SECTOR_BYTES: usize = 512;
/// A cache that is full writes back by itself: 256 MiB, far above that of any drive.
const CACHE_SECTORS_MAX: usize = (256 << 20) / SECTOR_BYTES;

type Sector = [u8; SECTOR_BYTES];

/// Unflushed writes that survive a power cut.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Keep {
    /// Nothing.
    #[default]
    Nothing,
    /// Each sector with probability 1/2: writes reach the medium out of order.
    Half,
    /// Everything: the machine loses power, its drives keep it.
    All,
}

/// See the file's head.
#[derive(Debug)]
pub struct Medium {
    file: File,
    /// Sectors that were written and not flushed.
    cache: BTreeMap<u64, Box<Sector>>,
}

impl Medium {
    /// A medium full of zeros.
    pub(super) fn create(path: &Path, size_bytes: u64) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
        file.set_len(size_bytes)?;
        Ok(Self { file, cache: BTreeMap::new() })
    }

    /// Sectors that a power cut would take.
    pub(super) fn unflushed(&self) -> u64 {
        self.cache.len() as u64
    }

    /// Reads whole sectors: what was written last, flushed or not.
    pub(super) fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(into, offset)?;
        let first = offset / SECTOR_BYTES as u64;
        let last = first + (into.len() / SECTOR_BYTES) as u64;
        for (number, sector) in self.cache.range(first..last) {
            let at = (number - first) as usize * SECTOR_BYTES;
            if let Some(target) = into.get_mut(at..at + SECTOR_BYTES) {
                target.copy_from_slice(sector.as_slice());
            }
        }
        Ok(())
    }

    /// Writes whole sectors, into the cache or through.
    pub(super) fn write(&mut self, offset: u64, data: &[u8], cached: bool) -> io::Result<()> {
        let first = offset / SECTOR_BYTES as u64;
        if !cached {
            return self.write_through(offset, data);
        }
        let (sectors, _) = data.as_chunks::<SECTOR_BYTES>();
        for (number, sector) in (first..).zip(sectors) {
            self.cache.insert(number, Box::new(*sector));
        }
        while self.cache.len() > CACHE_SECTORS_MAX {
            let Some((number, sector)) = self.cache.pop_first() else { break };
            self.write_through(number * SECTOR_BYTES as u64, sector.as_slice())?;
        }
        Ok(())
    }

    /// Zeros where there are zeros make the sparse file no larger.
    fn write_through(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        if data.iter().all(|byte| *byte == 0) {
            let mut there = vec![0; data.len()];
            self.file.read_exact_at(&mut there, offset)?;
            if there == data {
                return Ok(());
            }
        }
        self.file.write_all_at(data, offset)
    }

    /// Writes the cache back.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        while let Some((number, sector)) = self.cache.pop_first() {
            self.write_through(number * SECTOR_BYTES as u64, sector.as_slice())?;
        }
        Ok(())
    }

    /// Empties the cache, except for surviving writes. Returns the number of lost sectors.
    pub(super) fn power_cut(&mut self, keep: Keep, seed: u64) -> io::Result<u64> {
        let mut random = Random(seed);
        let mut lost = 0;
        while let Some((number, sector)) = self.cache.pop_first() {
            let survives = match keep {
                Keep::Nothing => false,
                Keep::Half => random.below(2) == 1,
                Keep::All => true,
            };
            if survives {
                self.write_through(number * SECTOR_BYTES as u64, sector.as_slice())?;
            } else {
                lost += 1;
            }
        }
        Ok(lost)
    }
}
