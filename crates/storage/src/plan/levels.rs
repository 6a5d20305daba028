//! Levels: how a volume keeps what a failed drive held, and what that costs in drives.

use schemars::JsonSchema;
use serde::Serialize;

use super::rates::VolumeSpread;

/// How what a failed drive held is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Stripes over mirrored pairs.
    Raid10,
    /// Stripes with one parity block in each row.
    Raid5,
    /// Stripes with two parity blocks in each row.
    Raid6,
}

/// All of them, in the order in which they are compared.
pub const LEVELS: [Level; 3] = [Level::Raid10, Level::Raid5, Level::Raid6];

/// Largest number of drives that is planned for.
pub(super) const DRIVES_MAX: usize = 512;
/// RAID6 of Linux: the generator of its second parity has 255 powers (H. P. Anvin, "The mathematics of
/// RAID-6"), and each drive needs one.
const RAID6_DRIVES_MAX: usize = 255;

impl Level {
    /// For people.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Raid10 => "RAID10",
            Self::Raid5 => "RAID5",
            Self::Raid6 => "RAID6",
        }
    }

    /// Drives' worth of parity.
    #[must_use]
    pub fn parity(self) -> u64 {
        match self {
            Self::Raid10 => 0,
            Self::Raid5 => 1,
            Self::Raid6 => 2,
        }
    }

    /// Over so many drives.
    pub(super) fn shape(self, drives: u64) -> VolumeSpread {
        let copies = if self == Self::Raid10 { 2 } else { 1 };
        VolumeSpread { drives, copies, parity: self.parity(), reads_one: false }
    }

    /// Whether it can be made of so many drives.
    pub(super) fn takes(self, drives: usize) -> bool {
        match self {
            Self::Raid10 => (4..=DRIVES_MAX).contains(&drives) && drives.is_multiple_of(2),
            Self::Raid5 => (3..=DRIVES_MAX).contains(&drives),
            Self::Raid6 => (4..=RAID6_DRIVES_MAX).contains(&drives),
        }
    }

    /// How many it can be made of.
    pub(super) fn drives_words(self) -> String {
        match self {
            Self::Raid10 => format!("an even number from 4 to {DRIVES_MAX}"),
            Self::Raid5 => format!("3 to {DRIVES_MAX}"),
            Self::Raid6 => format!("4 to {RAID6_DRIVES_MAX}"),
        }
    }

    /// What a write smaller than a row costs.
    #[must_use]
    pub fn small_write(self) -> &'static str {
        match self {
            Self::Raid10 => "RAID10: a write goes to two drives.",
            Self::Raid5 => {
                "RAID5: a small write takes 4 requests: old data and parity are read, new ones written."
            }
            Self::Raid6 => {
                "RAID6: a small write takes 6 requests: old data and two parities are read, new ones written."
            }
        }
    }
}
