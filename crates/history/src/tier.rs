//! Resolutions, and how long each is kept. Times are minutes since 1970.

/// Milliseconds of a minute.
pub(crate) const MINUTE_MS: u64 = 60_000;

/// A resolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tier {
    /// Its number in the file.
    pub(crate) number: i64,
    /// Minutes of a slot.
    pub slot: u64,
    /// Slots of a block, which is one row of a series.
    pub block: u64,
    /// Minutes that it is kept.
    pub kept: u64,
}

const DAY: u64 = 24 * 60;

impl Tier {
    /// As measured.
    pub const MINUTES: Self = Self { number: 0, slot: 1, block: 60, kept: 7 * DAY };
    /// Smallest, median, largest and count of a quarter of an hour, a season long.
    pub const QUARTERS: Self = Self { number: 1, slot: 15, block: 96, kept: 90 * DAY };
    /// The same of two hours, for two years.
    pub const LONG: Self = Self { number: 2, slot: 120, block: 60, kept: 731 * DAY };
    /// The finest first.
    pub const ALL: [Self; 3] = [Self::MINUTES, Self::QUARTERS, Self::LONG];
    /// Those that are made of minutes.
    pub(crate) const SUMMARIES: [Self; 2] = [Self::QUARTERS, Self::LONG];

    /// Minutes of a block.
    #[must_use]
    pub const fn span(self) -> u64 {
        self.slot * self.block
    }

    /// Start of the block with this minute.
    pub(crate) const fn start(self, minute: u64) -> u64 {
        minute / self.span() * self.span()
    }

    /// Slots that a series has in this resolution.
    #[must_use]
    pub const fn slots_kept(self) -> u64 {
        self.kept / self.slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A summary is made of minutes: they are there until its block is over. Blocks of a resolution end where
    /// slots of the next one do, so that one takes over from the other without a seam.
    #[test]
    fn summaries_find_their_minutes() {
        for tier in Tier::SUMMARIES {
            assert!(tier.span() + Tier::MINUTES.span() <= Tier::MINUTES.kept, "{tier:?}");
        }
        for pair in Tier::ALL.windows(2) {
            assert!(pair[0].kept < pair[1].kept);
            assert_eq!((pair[0].span() * 24) % pair[1].slot, 0);
            assert_eq!(DAY % pair[1].slot, 0);
        }
    }
}
