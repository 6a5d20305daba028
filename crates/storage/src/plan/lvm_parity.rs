//! RAID5 and RAID6 of LVM: the code of md in the kernel (`dm-raid`), with resizing and snapshots.

use linerate_model::step::{LvmKind, Step};

use super::layout::{Layout, LayoutTool};
use super::levels::Level;
use super::lvm;
use super::spec::VolumeSpec;

/// The layout of a level with parity.
pub(super) struct LvmParity(pub(super) Level);

/// Most stripes of LVM (`MAX_STRIPES` of LVM2); a stripe of a RAID is a drive with different data.
const STRIPES_MAX: usize = 128;

impl LvmParity {
    fn kind(&self) -> LvmKind {
        if self.0 == Level::Raid6 { LvmKind::Raid6 } else { LvmKind::Raid5 }
    }
}

impl Layout for LvmParity {
    fn name(&self) -> &'static str {
        if self.0 == Level::Raid6 { "lvm-raid6" } else { "lvm-raid5" }
    }

    fn tool(&self) -> LayoutTool {
        LayoutTool::Lvm
    }

    fn level(&self) -> Level {
        self.0
    }

    fn title(&self) -> &'static str {
        if self.0 == Level::Raid6 { "LVM RAID6" } else { "LVM RAID5" }
    }

    // LVM wants three stripes of RAID6 (lvmraid(7)), where md does with two.
    fn drives_range(&self) -> std::ops::RangeInclusive<usize> {
        let parity = self.0.parity() as usize;
        let least = if self.0 == Level::Raid6 { 5 } else { 3 };
        least..=STRIPES_MAX + parity
    }

    fn usable_bytes(&self, drive_bytes: u64, _chunk_bytes: u64) -> u64 {
        lvm::raid_usable_bytes(drive_bytes)
    }

    fn grain_bytes(&self, spec: &VolumeSpec) -> u64 {
        lvm::row_bytes(self.shape(spec))
    }

    // A second volume has metadata of its own.
    fn free_bytes(&self, spec: &VolumeSpec, left: u64) -> u64 {
        left.saturating_sub(lvm::row_bytes(self.shape(spec)))
    }

    fn remarks(&self, spec: &VolumeSpec) -> Vec<String> {
        let mut remarks = vec![
            "a drive that fails is replaced by `lvconvert --repair` with a spare of the group".to_owned(),
            "after a power cut the rows that were being written are compared again; a drive that fails before that has ended damages them (the write hole); LVM has no journal against it, md has one".to_owned(),
            "LVM leaves the stripe cache at the 256 entries of the kernel; where small writes matter, md can have a larger one".to_owned(),
            format!("{} hidden devices: `linerate disk watch` folds them away", 2 * spec.drives()),
        ];
        remarks.extend(lvm::rest_words(spec));
        remarks
    }

    fn device(&self, spec: &VolumeSpec) -> String {
        lvm::path(spec)
    }

    fn steps(&self, spec: &VolumeSpec, bytes: u64) -> Vec<Step> {
        lvm::steps(spec, (self.kind(), self.shape(spec)), &self.order(spec), bytes)
    }
}
