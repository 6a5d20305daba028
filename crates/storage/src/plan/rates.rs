//! What a volume should reach, from what one drive does: the one formula of the plan.

use schemars::JsonSchema;
use serde::Serialize;

/// Random requests that a drive with rotating discs ends in a second when it can choose among several: what
/// was planned with and met in practice (casebook D1 and D2: 120 to 150).
pub const ROTATING_PER_S: f64 = 150.0;
/// In a row, mean over the discs, bytes per second (the same data sheets: 156 MB/s mean, 210 outside, half of
/// that inside).
pub const ROTATING_BYTES_PER_S: f64 = 150e6;
/// Reads and writes on the drives for a write smaller than a row: old data and parity are read, new ones
/// written.
pub const SMALL_WRITE: [f64; 3] = [1.0, 4.0, 6.0];
/// What md copies at most, also for LVM and also when nothing else is done: `dev.raid.speed_limit_max`,
/// 200,000 KiB/s unless it is changed (md(4)). Of a RAID10 that is made in line it counts what the volume
/// holds (`resync_max_sectors` of drivers/md/raid10.c), of RAID5 and RAID6 what each drive holds
/// (drivers/md/raid5.c).
pub(super) const SYNC_BYTES_PER_S: f64 = 200_000.0 * 1024.0;

/// Kind of the drives of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DriveKind {
    /// Rotating, 7,200 revolutions.
    Hdd,
    /// Rotating, 10,000 revolutions.
    Sas,
    /// Flash behind SATA.
    Ssd,
    /// Flash behind PCIe.
    Nvme,
}

impl std::fmt::Display for DriveKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.serialize(f)
    }
}

/// What one drive does.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct DriveClass {
    /// Kind.
    pub name: DriveKind,
    /// Random requests per second.
    pub requests_per_s: f64,
    /// Bytes per second in a row.
    pub bytes_per_s: f64,
    /// Share of such drives that fail in a year.
    pub fail_per_year: f64,
}

/// Classes of drives. Figures are for planning: a round value of the class, to be replaced by what
/// `linerate measure disk` measures.
///
/// `hdd`: the same figures with which `reach` judges what was measured. `sas`: 10,000 revolutions, 3 ms for
/// half of one and 4 ms of seek. `ssd`: what a port of 6 Gbit/s carries behind its 8b/10b code. `nvme`: four
/// lanes of PCIe 3 less its framing; a middling data-centre drive. Failures per year: Backblaze drive
/// statistics 2024 (1.6 % of hard drives, 1 % of SSDs).
pub const CLASSES: &[DriveClass] = &[
    DriveClass {
        name: DriveKind::Hdd,
        requests_per_s: ROTATING_PER_S,
        bytes_per_s: ROTATING_BYTES_PER_S,
        fail_per_year: 0.016,
    },
    DriveClass { name: DriveKind::Sas, requests_per_s: 140.0, bytes_per_s: 180e6, fail_per_year: 0.016 },
    DriveClass { name: DriveKind::Ssd, requests_per_s: 50_000.0, bytes_per_s: 500e6, fail_per_year: 0.01 },
    DriveClass { name: DriveKind::Nvme, requests_per_s: 300_000.0, bytes_per_s: 3e9, fail_per_year: 0.01 },
];

/// How a volume spreads data over its drives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VolumeSpread {
    /// Drives.
    pub drives: u64,
    /// How often each block is kept.
    pub copies: u64,
    /// Drives' worth of parity: 1 for RAID5, 2 for RAID6.
    pub parity: u64,
    /// Whether only the first copy answers reads.
    pub reads_one: bool,
}

impl VolumeSpread {
    /// Drives whose content is not a copy or parity of others.
    #[must_use]
    pub fn data_drives(self) -> u64 {
        (self.drives / self.copies.max(1)).saturating_sub(self.parity).max(1)
    }
}

/// What a volume should reach.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Rates {
    /// Random reads per second: any drive may answer, where the layout reads from both copies.
    pub random_reads_per_s: f64,
    /// Random writes per second, each smaller than a row: to two drives, or with the parity of its row read
    /// and written again.
    pub random_writes_per_s: f64,
    /// Reading in a row, bytes per second. Each copy alone is read in a row; both at once skip over the
    /// other's part.
    pub read_bytes_per_s: f64,
    /// Writing in a row, bytes per second: of rows with parity that are written whole.
    pub write_bytes_per_s: f64,
}

impl Rates {
    /// Of one drive, by its class.
    #[must_use]
    pub fn of_one(class: DriveClass) -> Self {
        Self {
            random_reads_per_s: class.requests_per_s,
            random_writes_per_s: class.requests_per_s,
            read_bytes_per_s: class.bytes_per_s,
            write_bytes_per_s: class.bytes_per_s,
        }
    }

    /// Of a volume of such drives, where these are the rates of one, by its class or as it was measured.
    /// Merged requests come on top.
    #[must_use]
    pub fn over(self, shape: VolumeSpread) -> Self {
        let (all, data) = (shape.drives as f64, shape.data_drives() as f64);
        let each_write =
            shape.copies as f64 * SMALL_WRITE[(shape.parity as usize).min(SMALL_WRITE.len() - 1)];
        Self {
            random_reads_per_s: if shape.reads_one { data } else { all } * self.random_reads_per_s,
            random_writes_per_s: all * self.random_writes_per_s / each_write,
            read_bytes_per_s: data * self.read_bytes_per_s,
            write_bytes_per_s: data * self.write_bytes_per_s,
        }
    }

    /// Random reads per second of such a volume with one failed drive. What that drive held is read from its
    /// copy, or reckoned from as many of the others as hold different data.
    #[must_use]
    pub fn degraded_reads(self, shape: VolumeSpread) -> f64 {
        let (all, data) = (shape.drives as f64, shape.data_drives() as f64);
        let left = if shape.reads_one { data } else { all - 1.0 };
        let for_a_lost_one = if shape.parity > 0 { data } else { 1.0 };
        let each_read = ((all - 1.0) + for_a_lost_one) / all;
        left * self.random_reads_per_s / each_read
    }
}
