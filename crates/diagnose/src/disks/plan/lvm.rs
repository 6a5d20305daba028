//! RAID10 of LVM: the same code of the kernel as md (`dm-raid`), with spares, snapshots and resizing, and 72 hidden devices for 36 drives.

use linerate_model::step::{LvmKind, LvmStep, Step};

use super::Wish;
use super::layouts::{Layout, chunk_kib, filesystem};

/// The layout.
pub(super) struct LvmRaid10;

/// Extent of a group unless another is asked for (`vgcreate(8)`), bytes.
pub(super) const EXTENT_BYTES: u64 = 4 << 20;
/// Where the first extent begins on a drive (`default_data_alignment`, `lvm.conf(5)`), bytes.
pub(super) const DATA_BEGINS: u64 = 1 << 20;

/// Steps of LVM that end with a volume and its filesystem.
pub(super) fn steps(wish: &Wish, kind: LvmKind, devices: &[String], device: String) -> Vec<Step> {
    vec![
        Step::Lvm(LvmStep::Drives { devices: devices.to_vec() }),
        Step::Lvm(LvmStep::Group { name: wish.group.clone(), devices: devices.to_vec() }),
        Step::Lvm(LvmStep::Volume {
            group: wish.group.clone(),
            name: wish.name.clone(),
            kind,
            chunk_kib: chunk_kib(wish),
            devices: devices.to_vec(),
        }),
        filesystem(wish, device),
    ]
}

impl Layout for LvmRaid10 {
    fn name(&self) -> &'static str {
        "lvm"
    }

    fn title(&self) -> &'static str {
        "LVM RAID10"
    }

    // 253 images is the most of dm-raid (`DEFAULT_RAID_MAX_IMAGES` of LVM2), and pairs are even.
    fn drives_max(&self) -> usize {
        252
    }

    // One extent of each drive goes to its metadata.
    fn usable_bytes(&self, drive_bytes: u64, _chunk_bytes: u64) -> u64 {
        ((drive_bytes - DATA_BEGINS) / EXTENT_BYTES).saturating_sub(1) * EXTENT_BYTES
    }

    fn remarks(&self, wish: &Wish) -> Vec<String> {
        let drives = wish.shelves.iter().map(Vec::len).sum::<usize>() as u64;
        let kib = wish.chunk_bytes >> 10;
        vec![
            format!(
                "the volume reports an optimal size of {drives} x {kib} KiB, where only {} drives hold different data; mkfs.xfs would believe it, so su and sw are set",
                drives / 2
            ),
            "a drive that fails is replaced by `lvconvert --repair` with a spare of the group".to_owned(),
            format!("{} hidden devices: `linerate disk watch` folds them away", 2 * drives),
        ]
    }

    fn device(&self, wish: &Wish) -> String {
        format!("/dev/{}/{}", wish.group, wish.name)
    }

    fn steps(&self, wish: &Wish) -> Vec<Step> {
        steps(wish, LvmKind::Raid10, &self.order(wish), self.device(wish))
    }
}
