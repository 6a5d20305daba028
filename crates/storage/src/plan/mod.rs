//! Planning a striped volume with copies or parity over many drives: what each layout would give, what one
//! and two failures do to it, how long a drive takes to be made anew, and the steps that build it.
//!
//! In: how many drives and their size and class, the levels, the share to use, the filesystem. Out: a
//! [`LayoutPlan`]. What the tools refuse (numbers of drives, sizes, units) is refused here, before anything
//! is written. Figures are those of the drives' class until they are measured; nothing is built here.

mod failures;
mod filesystems;
mod layout;
mod layouts;
mod levels;
mod lvm;
mod lvm_parity;
mod md;
mod old_mirror;
mod rates;
mod spec;
mod sync;

use schemars::JsonSchema;
use serde::Serialize;

use layout::{DRIVE_BYTES_MIN, Layout, Refusal};

pub use failures::Failures;
pub use filesystems::{FILESYSTEMS, Filesystem};
pub use layout::{LayoutPlan, LayoutTool};
pub use levels::{LEVELS, Level};
pub use rates::{
    CLASSES, DriveClass, DriveKind, ROTATING_BYTES_PER_S, ROTATING_PER_S, Rates, SMALL_WRITE, VolumeSpread,
};
pub use spec::VolumeSpec;
pub use sync::{parse_mdstat, parse_status};

/// Smallest and largest chunk; LVM takes powers of two from 4 KiB.
const CHUNK_KIB: std::ops::RangeInclusive<u64> = 4..=4096;

/// Why there is no plan.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PlanError {
    /// A level has its numbers.
    #[error("{seen} drives cannot be made into {level}\nhint: {takes} drives")]
    Drives {
        /// Number.
        seen: usize,
        /// Level.
        level: &'static str,
        /// What would do.
        takes: String,
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
    #[error("a drive of {seen} bytes is too small\nhint: drives of at least 16 MiB")]
    Size {
        /// Bytes.
        seen: u64,
    },
    /// No filesystem fits.
    #[error("a volume of {seen} bytes is too small for {filesystem}: at least {least}\nhint: {hint}")]
    Small {
        /// Bytes.
        seen: u64,
        /// Filesystem.
        filesystem: &'static str,
        /// Its smallest size, bytes.
        least: u64,
        /// What would do.
        hint: &'static str,
    },
    /// More than the drives hold.
    #[error(
        "a volume of {asked} bytes does not fit: {title} over these drives holds at most {most}\nhint: --volume {most} or less; all that fits without --volume"
    )]
    Volume {
        /// Bytes.
        asked: u64,
        /// Bytes.
        most: u64,
        /// Layout.
        title: &'static str,
    },
    /// A number of drives that no layout of the levels takes.
    #[error(
        "{title} cannot be built of these drives: {why}\nhint: another number of drives, or another level"
    )]
    NoLayout {
        /// Layout.
        title: &'static str,
        /// Why.
        why: String,
    },
    /// A name that no program may get.
    #[error(transparent)]
    Name(#[from] linerate_model::step::StepError),
}

/// All layouts side by side.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LayoutComparison {
    /// Number of drives.
    pub drives: usize,
    /// Size of one, bytes.
    pub drive_bytes: u64,
    /// Bytes on one drive before the next one follows.
    pub chunk_bytes: u64,
    /// What one drive is taken to do.
    pub class: DriveClass,
    /// Levels that are compared.
    pub levels: Vec<Level>,
    /// The layouts, the recommended one of each level first.
    pub layouts: Vec<LayoutPlan>,
    /// Layouts of these levels that cannot be built as it is asked for.
    pub not_offered: Vec<NotOffered>,
}

/// A layout that cannot be built as it is asked for.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct NotOffered {
    /// Tool that would make it.
    pub tool: LayoutTool,
    /// Level.
    pub level: Level,
    /// In words.
    pub title: &'static str,
    /// Why, and what would do.
    pub why: String,
}

/// All layouts for a spec.
///
/// # Errors
/// Names the number that does not fit, and what would.
pub fn plan(spec: &VolumeSpec) -> Result<LayoutComparison, PlanError> {
    check(spec)?;
    let (mut layouts, mut refused) = (Vec::new(), Vec::new());
    for layout in layouts::LAYOUTS.iter().filter(|layout| spec.levels.contains(&layout.level())) {
        match layout::planned(*layout, spec) {
            Ok(planned) => layouts.push(planned),
            Err(refusal) => refused.push((*layout, error(spec, layout.title(), refusal))),
        }
    }
    if layouts.is_empty() && !refused.is_empty() {
        return Err(refused.swap_remove(0).1);
    }
    let not_offered = |(layout, error): (&dyn Layout, PlanError)| {
        let (tool, level, title) = (layout.tool(), layout.level(), layout.title());
        NotOffered { tool, level, title, why: error.to_string() }
    };
    for step in layouts.iter().flat_map(|layout| &layout.steps) {
        step.operation().check()?;
    }
    Ok(LayoutComparison {
        drives: spec.drives() as usize,
        drive_bytes: spec.drive_bytes,
        chunk_bytes: spec.chunk_bytes,
        class: spec.class,
        levels: spec.levels.clone(),
        layouts,
        not_offered: refused.into_iter().map(not_offered).collect(),
    })
}

/// What holds for every layout.
fn check(spec: &VolumeSpec) -> Result<(), PlanError> {
    let seen = spec.drives() as usize;
    if let Some(level) = spec.levels.iter().find(|level| !level.takes(seen)) {
        return Err(PlanError::Drives { seen, level: level.title(), takes: level.drives_words() });
    }
    let equal = spec.shelves.windows(2).all(|two| two[0].len() == two[1].len());
    let has_pairs = spec.levels.contains(&Level::Raid10);
    if has_pairs && !(spec.shelves.len() == 1 || equal && spec.shelves.len().is_multiple_of(2)) {
        let sizes: Vec<String> = spec.shelves.iter().map(|shelf| shelf.len().to_string()).collect();
        return Err(PlanError::Shelves { seen: sizes.join(" and ") });
    }
    if !spec.chunk_bytes.is_power_of_two() || !CHUNK_KIB.contains(&(spec.chunk_bytes >> 10)) {
        return Err(PlanError::Chunk { seen: spec.chunk_bytes });
    }
    if spec.drive_bytes < DRIVE_BYTES_MIN {
        return Err(PlanError::Size { seen: spec.drive_bytes });
    }
    Ok(())
}

/// Why a layout is not offered.
fn error(spec: &VolumeSpec, title: &'static str, refusal: Refusal) -> PlanError {
    match refusal {
        Refusal::Drives(why) => PlanError::NoLayout { title, why },
        Refusal::Volume { most } => {
            PlanError::Volume { asked: spec.volume_bytes.unwrap_or_default(), most, title }
        }
        Refusal::Small { seen } => PlanError::Small {
            seen,
            filesystem: spec.filesystem.title(),
            least: spec.filesystem.bytes_min(),
            hint: if spec.volume_bytes.is_some() {
                "a larger --volume"
            } else {
                "larger drives, or more of them"
            },
        },
    }
}

#[cfg(test)]
mod tests;
