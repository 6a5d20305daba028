//! Planning a mirrored, striped volume over many drives: what each layout would give, what one and two failures do to it, how long a drive takes to
//! be made anew, and the steps that build it.
//!
//! In: how many drives of which size and class. Out: a [`Plan`]. Figures are those of the drives' class until somebody measures; nothing is
//! built here.

mod failures;
mod layouts;
mod lvm;
mod md;
mod old_mirror;
mod rates;
mod sync;

use linerate_model::step::Step;
use serde::Serialize;

pub use failures::Failures;
pub use rates::{CLASSES, DriveClass, Rates};
pub use sync::{parse_mdstat, parse_status};

/// What is wished for.
#[derive(Debug, Clone, PartialEq)]
pub struct Wish {
    /// Paths of the drives by shelf, so that no pair stands in one shelf. One shelf is no shelf.
    pub shelves: Vec<Vec<String>>,
    /// Size of the smallest drive, bytes.
    pub drive_bytes: u64,
    /// Bytes on one drive before the next one follows.
    pub chunk_bytes: u64,
    /// What one drive does.
    pub class: DriveClass,
    /// Group of LVM.
    pub group: String,
    /// Name of the volume.
    pub name: String,
}

/// Smallest and largest chunk; LVM takes powers of two from 4 KiB.
const CHUNK_KIB: std::ops::RangeInclusive<u64> = 4..=4096;

/// Smallest filesystem that `mkfs.xfs` makes (xfsprogs 5.19 and later).
const XFS_BYTES_MIN: u64 = 300 << 20;

/// Why there is no plan.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PlanError {
    /// A mirror has pairs.
    #[error("{seen} drives make no pairs that can be striped\nhint: an even number from 4 to 512")]
    Drives {
        /// Number.
        seen: usize,
    },
    /// A pair must not stand in one shelf.
    #[error(
        "the shelves have {seen} drives, so that a pair would stand in one shelf\nhint: shelves of equal size, an even number of them or one"
    )]
    Shelves {
        /// Sizes.
        seen: String,
    },
    /// Not a power of two in the range.
    #[error("a chunk of {seen} bytes is none\nhint: a power of two from 4K to 4M, such as 64K")]
    Chunk {
        /// Bytes.
        seen: u64,
    },
    /// Nothing is left beside the metadata.
    #[error("a drive of {seen} bytes has no room\nhint: drives of at least 16 MiB")]
    Size {
        /// Bytes.
        seen: u64,
    },
    /// No filesystem fits.
    #[error(
        "a volume of {seen} bytes is too small for XFS, which takes {} or more\nhint: larger drives, or more of them",
        XFS_BYTES_MIN
    )]
    Small {
        /// Bytes.
        seen: u64,
    },
    /// A name that no program may get.
    #[error(transparent)]
    Name(#[from] linerate_model::step::StepError),
}

/// All layouts side by side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    /// Number of drives.
    pub drives: usize,
    /// Size of one, bytes.
    pub drive_bytes: u64,
    /// Bytes on one drive before the next one follows.
    pub chunk_bytes: u64,
    /// What one drive is taken to do.
    pub class: DriveClass,
    /// The layouts, the recommended one first.
    pub layouts: Vec<LayoutPlan>,
}

/// What a layout gives.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LayoutPlan {
    /// Name: `lvm`, `md`, `mirror`.
    pub name: &'static str,
    /// In words.
    pub title: &'static str,
    /// What can be stored, bytes.
    pub capacity_bytes: u64,
    /// What it should reach.
    pub rates: Rates,
    /// Whether only the first copy answers reads.
    pub reads_one: bool,
    /// Shortest time of the first synchronisation, seconds.
    pub first_sync_s: f64,
    /// What failures do.
    pub failures: Failures,
    /// Drives that hold the same, pair by pair; both halves for a mirror of two sets.
    pub pairs: Vec<(String, String)>,
    /// What to know about it.
    pub remarks: Vec<String>,
    /// Path of what is built.
    pub device: String,
    /// How it is built.
    pub steps: Vec<Step>,
}

/// All layouts for a wish.
///
/// # Errors
/// Names the number that does not fit, and what would.
pub fn plan(wish: &Wish) -> Result<Plan, PlanError> {
    let drives: usize = wish.shelves.iter().map(Vec::len).sum();
    if !(4..=layouts::DRIVES_MAX).contains(&drives) || !drives.is_multiple_of(2) {
        return Err(PlanError::Drives { seen: drives });
    }
    let equal = wish.shelves.windows(2).all(|two| two[0].len() == two[1].len());
    if !(wish.shelves.len() == 1 || equal && wish.shelves.len().is_multiple_of(2)) {
        let sizes: Vec<String> = wish.shelves.iter().map(|shelf| shelf.len().to_string()).collect();
        return Err(PlanError::Shelves { seen: sizes.join(" and ") });
    }
    if !wish.chunk_bytes.is_power_of_two() || !CHUNK_KIB.contains(&(wish.chunk_bytes >> 10)) {
        return Err(PlanError::Chunk { seen: wish.chunk_bytes });
    }
    if wish.drive_bytes < layouts::DRIVE_BYTES_MIN {
        return Err(PlanError::Size { seen: wish.drive_bytes });
    }
    let (fit, too_many): (Vec<&dyn layouts::Layout>, Vec<&dyn layouts::Layout>) =
        layouts::LAYOUTS.iter().copied().partition(|layout| drives <= layout.drives_max());
    let mut layouts: Vec<LayoutPlan> = fit.iter().map(|layout| layouts::planned(*layout, wish)).collect();
    for layout in too_many {
        let words =
            format!("{} is not offered: it takes at most {} drives", layout.title(), layout.drives_max());
        for offered in &mut layouts {
            offered.remarks.push(words.clone());
        }
    }
    if let Some(seen) = layouts.iter().map(|layout| layout.capacity_bytes).find(|seen| *seen < XFS_BYTES_MIN)
    {
        return Err(PlanError::Small { seen });
    }
    for step in layouts.iter().flat_map(|layout| &layout.steps) {
        step.deed().check()?;
    }
    Ok(Plan {
        drives,
        drive_bytes: wish.drive_bytes,
        chunk_bytes: wish.chunk_bytes,
        class: wish.class,
        layouts,
    })
}

#[cfg(test)]
mod tests;
