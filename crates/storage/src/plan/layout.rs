//! One layout of drives: what it defines, and what follows from that for a request. A layout defines in what
//! it differs from stripes over pairs.

use linerate_model::step::Step;
use schemars::JsonSchema;
use serde::Serialize;

use super::failures::Failures;
use super::levels::{DRIVES_MAX, Level};
use super::rates::{Rates, SYNC_BYTES_PER_S, VolumeSpread};
use super::spec::VolumeSpec;

/// Tool that makes a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LayoutTool {
    /// mdadm.
    Md,
    /// LVM.
    Lvm,
    /// LVM's old mirror over stripes.
    Mirror,
}

impl LayoutTool {
    /// All of them.
    pub const ALL: &[Self] = &[Self::Md, Self::Lvm, Self::Mirror];

    /// As `--layout` names it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Md => "md",
            Self::Lvm => "lvm",
            Self::Mirror => "mirror",
        }
    }
}

/// What a layout gives.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LayoutPlan {
    /// Name: `md`, `lvm`, `mirror`, `md-raid5` and so on.
    pub name: &'static str,
    /// Tool that makes it.
    pub tool: LayoutTool,
    /// Level.
    pub level: Level,
    /// In words.
    pub title: &'static str,
    /// What can be stored, bytes.
    pub capacity_bytes: u64,
    /// What stays free for another volume, bytes, where a size was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_bytes: Option<u64>,
    /// What it should reach.
    pub rates: Rates,
    /// Random reads per second with one failed drive.
    pub degraded_reads_per_s: f64,
    /// Drives, copies, parity.
    #[serde(flatten)]
    pub shape: VolumeSpread,
    /// Shortest time of the first synchronisation, seconds.
    pub first_sync_s: f64,
    /// What failures do.
    pub failures: Failures,
    /// Its drives, in the order of the command.
    pub devices: Vec<String>,
    /// Drives that hold the same, pair by pair; both halves for a mirror of two sets; none with parity.
    pub pairs: Vec<(String, String)>,
    /// What to know about it.
    pub remarks: Vec<String>,
    /// Path of what is built.
    pub device: String,
    /// How it is built.
    pub steps: Vec<Step>,
}

/// A smaller drive has no capacity beside the metadata.
pub(super) const DRIVE_BYTES_MIN: u64 = 16 << 20;

/// A method to put pairs, parity and stripes over drives.
pub(super) trait Layout: Sync {
    /// Short name, of its own.
    fn name(&self) -> &'static str;
    /// Tool that makes it: one layout of a level.
    fn tool(&self) -> LayoutTool;
    /// Level.
    fn level(&self) -> Level;
    /// In words.
    fn title(&self) -> &'static str;
    /// What one drive of this size gives to data, bytes.
    fn usable_bytes(&self, drive_bytes: u64, chunk_bytes: u64) -> u64;
    /// Copies, parity and drives.
    fn shape(&self, spec: &VolumeSpec) -> VolumeSpread {
        self.level().shape(spec.drives())
    }
    /// What it holds at most, bytes.
    fn bytes_max(&self, spec: &VolumeSpec) -> u64 {
        self.shape(spec).data_drives() * self.usable_bytes(spec.drive_bytes, spec.chunk_bytes)
    }
    /// Granularity of the size of a volume that does not take all, bytes.
    fn grain_bytes(&self, spec: &VolumeSpec) -> u64;
    /// What a second volume could hold of so many bytes that are left.
    fn free_bytes(&self, _spec: &VolumeSpec, left: u64) -> u64 {
        left
    }
    /// What the first synchronisation brings in line, of a volume of so many bytes.
    fn synced_bytes(&self, _spec: &VolumeSpec, bytes: u64) -> u64 {
        bytes
    }
    /// What failures do, where a drive has so many bytes of it: those of its level, unless the layout is
    /// another.
    fn failures(&self, spec: &VolumeSpec, each_bytes: u64) -> Failures {
        Failures::of_level(spec, self.level(), each_bytes)
    }
    /// Drives in the order in which the command needs them: those of all shelves in turns, so that neighbours
    /// stand in different ones.
    fn order(&self, spec: &VolumeSpec) -> Vec<String> {
        spec.in_turns()
    }
    /// Which of them hold the same, by their order: neighbours; none where parity stands for copies.
    fn pairs(&self, order: &[String]) -> Vec<(String, String)> {
        match self.level() {
            Level::Raid10 => order.chunks_exact(2).map(|two| (two[0].clone(), two[1].clone())).collect(),
            Level::Raid5 | Level::Raid6 => Vec::new(),
        }
    }
    /// Fewest and most drives that its tools take.
    fn drives_range(&self) -> std::ops::RangeInclusive<usize> {
        0..=DRIVES_MAX
    }
    /// What the kernel copies of it per second at most, unless that is changed.
    fn sync_bytes_per_s(&self) -> Option<f64> {
        Some(SYNC_BYTES_PER_S)
    }
    /// What to know.
    fn remarks(&self, spec: &VolumeSpec) -> Vec<String>;
    /// Where the volume is found.
    fn device(&self, spec: &VolumeSpec) -> String;
    /// The steps, from drives to filesystem, for a volume of so many bytes.
    fn steps(&self, spec: &VolumeSpec, bytes: u64) -> Vec<Step>;
}

/// How much faster drives are than what the kernel copies: above one it holds them back.
fn held_back(layout: &dyn Layout, spec: &VolumeSpec) -> f64 {
    let together = match layout.level() {
        Level::Raid10 => layout.shape(spec).data_drives() as f64,
        Level::Raid5 | Level::Raid6 => 1.0,
    };
    layout.sync_bytes_per_s().map_or(0.0, |limit| together * spec.class.bytes_per_s / limit)
}

/// All drives work at the same time, as far as the kernel does not hold them back.
fn first_sync_s(layout: &dyn Layout, spec: &VolumeSpec, bytes: u64) -> f64 {
    let each = bytes as f64 / layout.shape(spec).data_drives() as f64;
    each / spec.class.bytes_per_s * held_back(layout, spec).max(1.0)
}

/// A remark where the kernel limits the rate of copying.
fn limited(layout: &dyn Layout, spec: &VolumeSpec) -> Option<String> {
    let (limit, times) = (layout.sync_bytes_per_s()?, held_back(layout, spec));
    (times > 1.0).then(|| {
        format!(
            "the kernel copies at most {:.0} MB/s of it, which makes the first synchronisation {times:.0} times as long as the drives need; `sysctl dev.raid.speed_limit_max` (KiB/s) raises that, and a rebuild of fast drives with it",
            limit / 1e6
        )
    })
}

/// Why a layout cannot be built as it is asked for.
pub(super) enum Refusal {
    /// Its tools take another number of drives.
    Drives(String),
    /// The volume that is asked for does not fit.
    Volume {
        /// What would.
        most: u64,
    },
    /// The filesystem needs more.
    Small {
        /// Bytes.
        seen: u64,
    },
}

/// Size of the volume, where it can be built.
fn sized(layout: &dyn Layout, spec: &VolumeSpec) -> Result<u64, Refusal> {
    let (drives, range) = (spec.drives() as usize, layout.drives_range());
    if drives > *range.end() {
        return Err(Refusal::Drives(format!("it takes at most {} drives", range.end())));
    }
    if drives < *range.start() {
        return Err(Refusal::Drives(format!("it takes at least {} drives", range.start())));
    }
    let most = layout.bytes_max(spec);
    let bytes = match spec.volume_bytes {
        Some(asked) => asked.div_ceil(layout.grain_bytes(spec)).saturating_mul(layout.grain_bytes(spec)),
        None => most,
    };
    if bytes > most {
        Err(Refusal::Volume { most })
    } else if bytes < spec.filesystem.bytes_min() {
        Err(Refusal::Small { seen: bytes })
    } else {
        Ok(bytes)
    }
}

/// A layout worked out, or why it is not offered.
pub(super) fn planned(layout: &dyn Layout, spec: &VolumeSpec) -> Result<LayoutPlan, Refusal> {
    let capacity_bytes = sized(layout, spec)?;
    let (order, shape) = (layout.order(spec), layout.shape(spec));
    let synced = layout.synced_bytes(spec, capacity_bytes);
    let one = Rates::of_one(spec.class);
    // All of a drive is made anew, unless the volume takes only a part of it.
    let each = if spec.volume_bytes.is_some() { synced / shape.data_drives() } else { spec.drive_bytes };
    let left = layout.bytes_max(spec).saturating_sub(capacity_bytes);
    Ok(LayoutPlan {
        name: layout.name(),
        tool: layout.tool(),
        level: layout.level(),
        title: layout.title(),
        capacity_bytes,
        free_bytes: spec.volume_bytes.map(|_| layout.free_bytes(spec, left)),
        rates: one.over(shape),
        degraded_reads_per_s: one.degraded_reads(shape),
        shape,
        first_sync_s: first_sync_s(layout, spec, synced),
        failures: layout.failures(spec, each),
        pairs: layout.pairs(&order),
        devices: order,
        remarks: layout.remarks(spec).into_iter().chain(limited(layout, spec)).collect(),
        device: layout.device(spec),
        steps: layout.steps(spec, capacity_bytes),
    })
}

/// A chunk as the commands want it.
pub(super) fn chunk_kib(spec: &VolumeSpec) -> u32 {
    u32::try_from(spec.chunk_bytes >> 10).unwrap_or(u32::MAX)
}

/// The filesystem of every layout, over a volume of so many bytes.
pub(super) fn filesystem(spec: &VolumeSpec, shape: VolumeSpread, device: String, bytes: u64) -> Step {
    let stripes = u32::try_from(shape.data_drives()).unwrap_or(u32::MAX);
    spec.filesystem.step(device, bytes, (chunk_kib(spec), stripes))
}
