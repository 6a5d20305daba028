//! The older form: a mirror over two sets of stripes (0+1) with its log in memory. Shown to be compared; nobody should build it.

use linerate_model::step::{LvmKind, Step};

use super::Wish;
use super::failures::Failures;
use super::layouts::Layout;
use super::lvm::{self, DATA_BEGINS, EXTENT_BYTES};

/// The layout.
pub(super) struct OldMirror;

impl Layout for OldMirror {
    fn name(&self) -> &'static str {
        "mirror"
    }

    fn title(&self) -> &'static str {
        "mirror of stripes (0+1)"
    }

    fn usable_bytes(&self, drive_bytes: u64, _chunk_bytes: u64) -> u64 {
        (drive_bytes - DATA_BEGINS) / EXTENT_BYTES * EXTENT_BYTES
    }

    // `choose_mirror()` of drivers/md/dm-raid1.c: the default one as long as it has no error.
    fn reads_one(&self) -> bool {
        true
    }

    // 128 stripes in each half.
    fn drives_max(&self) -> usize {
        256
    }

    // It has no such limit, and copies one region at a time (`MAX_RECOVERY` of dm-raid1.c).
    fn sync_bytes_per_s(&self) -> Option<f64> {
        None
    }

    fn failures(&self, wish: &Wish) -> Failures {
        Failures::of_halves(wish)
    }

    // Each half is a shelf, or half of the shelves.
    fn order(&self, wish: &Wish) -> Vec<String> {
        wish.shelves.concat()
    }

    fn pairs(&self, order: &[String]) -> Vec<(String, String)> {
        let (left, right) = order.split_at(order.len() / 2);
        left.iter().cloned().zip(right.iter().cloned()).collect()
    }

    fn remarks(&self, _wish: &Wish) -> Vec<String> {
        vec![
            "reads are answered by the first half alone, and copies are made one region after the other, which takes several times as long as the drives need".to_owned(),
            "its log lives in memory: all of it is copied again after every activation".to_owned(),
            "`--mirrors 1 --stripes N --mirrorlog core` without `--type mirror`, as older recipes have it, is refused by LVM 2.03"
                .to_owned(),
        ]
    }

    fn device(&self, wish: &Wish) -> String {
        format!("/dev/{}/{}", wish.group, wish.name)
    }

    fn steps(&self, wish: &Wish) -> Vec<Step> {
        lvm::steps(wish, LvmKind::MirrorOverStripes, &self.order(wish), self.device(wish))
    }
}
