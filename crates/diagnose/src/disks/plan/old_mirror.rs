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
