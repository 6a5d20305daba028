//! The older form: a mirror over two sets of stripes (0+1) with its log in memory. Shown to be compared; not
//! recommended.

use linerate_model::step::{LvmKind, Step};

use super::failures::Failures;
use super::layout::{Layout, LayoutTool};
use super::levels::Level;
use super::lvm::{self, DATA_BEGINS, EXTENT_BYTES};
use super::rates::VolumeSpread;
use super::spec::VolumeSpec;

/// The layout.
pub(super) struct OldMirror;

impl Layout for OldMirror {
    fn name(&self) -> &'static str {
        "mirror"
    }

    fn tool(&self) -> LayoutTool {
        LayoutTool::Mirror
    }

    fn level(&self) -> Level {
        Level::Raid10
    }

    fn title(&self) -> &'static str {
        "mirror of stripes (0+1)"
    }

    fn usable_bytes(&self, drive_bytes: u64, _chunk_bytes: u64) -> u64 {
        (drive_bytes - DATA_BEGINS) / EXTENT_BYTES * EXTENT_BYTES
    }

    fn grain_bytes(&self, spec: &VolumeSpec) -> u64 {
        lvm::row_bytes(self.shape(spec))
    }

    // `choose_mirror()` of drivers/md/dm-raid1.c: the default one as long as it has no error.
    fn shape(&self, spec: &VolumeSpec) -> VolumeSpread {
        VolumeSpread { reads_one: true, ..self.level().shape(spec.drives()) }
    }

    // 128 stripes in each half.
    fn drives_range(&self) -> std::ops::RangeInclusive<usize> {
        4..=256
    }

    // It has no such limit, and copies one region at a time (`MAX_RECOVERY` of dm-raid1.c).
    fn sync_bytes_per_s(&self) -> Option<f64> {
        None
    }

    fn failures(&self, spec: &VolumeSpec, each_bytes: u64) -> Failures {
        Failures::of_halves(spec, each_bytes)
    }

    // Each half is a shelf, or half of the shelves.
    fn order(&self, spec: &VolumeSpec) -> Vec<String> {
        spec.shelves.concat()
    }

    fn pairs(&self, order: &[String]) -> Vec<(String, String)> {
        let (left, right) = order.split_at(order.len() / 2);
        left.iter().cloned().zip(right.iter().cloned()).collect()
    }

    fn remarks(&self, spec: &VolumeSpec) -> Vec<String> {
        let mut remarks = vec![
            "reads are answered by the first half alone, and copies are made one region after the other, which takes several times as long as the drives need".to_owned(),
            "its log lives in memory: all of it is copied again after every activation".to_owned(),
            "`--mirrors 1 --stripes N --mirrorlog core` without `--type mirror`, as older recipes have it, is refused by LVM 2.03"
                .to_owned(),
        ];
        remarks.extend(lvm::rest_words(spec));
        remarks
    }

    fn device(&self, spec: &VolumeSpec) -> String {
        lvm::path(spec)
    }

    fn steps(&self, spec: &VolumeSpec, bytes: u64) -> Vec<Step> {
        lvm::steps(spec, (LvmKind::MirrorOverStripes, self.shape(spec)), &self.order(spec), bytes)
    }
}
