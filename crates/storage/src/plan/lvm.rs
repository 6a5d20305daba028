//! RAID10 of LVM: the same code of the kernel as md (`dm-raid`), with spares, snapshots and resizing, and 72
//! hidden devices for 36 drives.

use linerate_model::step::{LvmKind, LvmStep, Step};

use super::layout::{Layout, LayoutTool, chunk_kib, filesystem};
use super::levels::Level;
use super::rates::VolumeSpread;
use super::spec::VolumeSpec;

/// The layout.
pub(super) struct LvmRaid10;

/// Extent of a group unless another is asked for (`vgcreate(8)`), bytes.
pub(super) const EXTENT_BYTES: u64 = 4 << 20;
/// Where the first extent begins on a drive (`default_data_alignment`, `lvm.conf(5)`), bytes.
pub(super) const DATA_BEGINS: u64 = 1 << 20;

/// Extents that a volume is made with: all that are free, unless a size is asked for.
pub(super) fn extents(spec: &VolumeSpec, bytes: u64) -> Option<u64> {
    spec.volume_bytes.map(|_| bytes / EXTENT_BYTES)
}

/// Where a volume of LVM is found.
pub(super) fn path(spec: &VolumeSpec) -> String {
    format!("/dev/{}/{}", spec.group, spec.name)
}

/// Steps of LVM over drives that end with a volume of so many bytes and its filesystem.
pub(super) fn steps(
    spec: &VolumeSpec,
    (kind, shape): (LvmKind, VolumeSpread),
    devices: &[String],
    bytes: u64,
) -> Vec<Step> {
    vec![
        Step::Lvm(LvmStep::Drives { devices: devices.to_vec(), align_kib: None }),
        Step::Lvm(LvmStep::Group { name: spec.group.clone(), devices: devices.to_vec() }),
        Step::Lvm(LvmStep::Volume {
            group: spec.group.clone(),
            name: spec.name.clone(),
            kind,
            chunk_kib: chunk_kib(spec),
            devices: devices.to_vec(),
            extents: extents(spec, bytes),
        }),
        filesystem(spec, shape, path(spec), bytes),
    ]
}

/// What one drive gives to a RAID of LVM: whole extents, less one for its metadata.
pub(super) fn raid_usable_bytes(drive_bytes: u64) -> u64 {
    (drive_bytes.saturating_sub(DATA_BEGINS) / EXTENT_BYTES).saturating_sub(1) * EXTENT_BYTES
}

/// A row of extents over all drives with different data.
pub(super) fn row_bytes(shape: VolumeSpread) -> u64 {
    shape.data_drives() * EXTENT_BYTES
}

/// The remark about the rest of a group.
pub(super) fn rest_words(spec: &VolumeSpec) -> Option<String> {
    spec.volume_bytes.map(|_| {
        format!("sizes are rounded up to whole extents; the rest of the group {} stays free for another volume (`vgs {}`)", spec.group, spec.group)
    })
}

impl Layout for LvmRaid10 {
    fn name(&self) -> &'static str {
        "lvm"
    }

    fn tool(&self) -> LayoutTool {
        LayoutTool::Lvm
    }

    fn level(&self) -> Level {
        Level::Raid10
    }

    fn title(&self) -> &'static str {
        "LVM RAID10"
    }

    // 253 images is the most of dm-raid (`DEFAULT_RAID_MAX_IMAGES` of LVM2), and pairs are even.
    fn drives_range(&self) -> std::ops::RangeInclusive<usize> {
        4..=252
    }

    fn usable_bytes(&self, drive_bytes: u64, _chunk_bytes: u64) -> u64 {
        raid_usable_bytes(drive_bytes)
    }

    fn grain_bytes(&self, spec: &VolumeSpec) -> u64 {
        row_bytes(self.shape(spec))
    }

    // A second volume has metadata of its own.
    fn free_bytes(&self, spec: &VolumeSpec, left: u64) -> u64 {
        left.saturating_sub(row_bytes(self.shape(spec)))
    }

    fn remarks(&self, spec: &VolumeSpec) -> Vec<String> {
        let (drives, kib) = (spec.drives(), spec.chunk_bytes >> 10);
        let mut remarks = vec![
            format!(
                "the volume reports an optimal size of {drives} x {kib} KiB, where only {} drives hold different data; mkfs would believe it, so the geometry is given",
                drives / 2
            ),
            "a drive that fails is replaced by `lvconvert --repair` with a spare of the group".to_owned(),
            format!("{} hidden devices: `linerate disk watch` folds them away", 2 * drives),
        ];
        remarks.extend(rest_words(spec));
        remarks
    }

    fn device(&self, spec: &VolumeSpec) -> String {
        path(spec)
    }

    fn steps(&self, spec: &VolumeSpec, bytes: u64) -> Vec<Step> {
        steps(spec, (LvmKind::Raid10, self.shape(spec)), &self.order(spec), bytes)
    }
}
