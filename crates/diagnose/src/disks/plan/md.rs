//! RAID10 of md with two copies beside each other: one device for the array, and the right geometry by itself.

use linerate_model::step::{MdStep, Step};

use super::Wish;
use super::layouts::{Layout, chunk_kib, filesystem};

/// The layout.
pub(super) struct MdRaid10;

/// Room that mdadm 3.3 and later leave before the data for a later change of shape: halved until it is below a thousandth of the drive
/// (`super1.c`), bytes.
const HEADROOM_BYTES: u64 = 128 << 20;
/// Superblock and bitmap before it, bytes.
const SUPER_BYTES: u64 = 1 << 20;

impl MdRaid10 {
    fn step(&self, wish: &Wish) -> MdStep {
        MdStep { name: wish.name.clone(), chunk_kib: chunk_kib(wish), devices: self.order(wish) }
    }
}

impl Layout for MdRaid10 {
    fn name(&self) -> &'static str {
        "md"
    }

    fn title(&self) -> &'static str {
        "md RAID10 (near 2)"
    }

    fn usable_bytes(&self, drive_bytes: u64, chunk_bytes: u64) -> u64 {
        let mut headroom = HEADROOM_BYTES;
        while headroom << 10 > drive_bytes {
            headroom >>= 1;
        }
        // The data begin at a whole MiB.
        let begins = (headroom + SUPER_BYTES) >> 20 << 20;
        (drive_bytes - begins) / chunk_bytes * chunk_bytes
    }

    fn remarks(&self, wish: &Wish) -> Vec<String> {
        vec![
            "su and sw are set here too, so that the filesystem is the same on every layout".to_owned(),
            format!(
                "a spare is added by `mdadm /dev/md/{} --add DRIVE`; write the line of `mdadm --detail --scan` into mdadm.conf",
                wish.name
            ),
        ]
    }

    fn device(&self, wish: &Wish) -> String {
        self.step(wish).path()
    }

    fn steps(&self, wish: &Wish) -> Vec<Step> {
        vec![Step::Md(self.step(wish)), filesystem(wish, self.device(wish))]
    }
}
