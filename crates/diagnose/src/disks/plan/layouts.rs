//! The list of layouts. Each is one file beside this one and one line in [`LAYOUTS`]; it says in what it differs from stripes over pairs.

use linerate_model::step::Step;

use super::failures::Failures;
use super::rates::Rates;
use super::{LayoutPlan, Wish};

/// All of them, the recommended one first.
pub(super) const LAYOUTS: &[&dyn Layout] =
    &[&super::md::MdRaid10, &super::lvm::LvmRaid10, &super::old_mirror::OldMirror];

/// A smaller drive has no room beside the metadata.
pub(super) const DRIVE_BYTES_MIN: u64 = 16 << 20;

/// A way to put pairs and stripes over drives.
pub(super) trait Layout: Sync {
    /// Short name.
    fn name(&self) -> &'static str;
    /// In words.
    fn title(&self) -> &'static str;
    /// What one drive of this size gives to data, bytes.
    fn usable_bytes(&self, drive_bytes: u64, chunk_bytes: u64) -> u64;
    /// What failures do: those of stripes over pairs, unless the layout is another.
    fn failures(&self, wish: &Wish) -> Failures {
        Failures::of_pairs(wish)
    }
    /// Drives in the order in which the command needs them: those of all shelves in turns, so that neighbours stand in different ones.
    fn order(&self, wish: &Wish) -> Vec<String> {
        let shelves = &wish.shelves;
        let longest = shelves.iter().map(Vec::len).max().unwrap_or(0);
        (0..longest).flat_map(|at| shelves.iter().filter_map(move |shelf| shelf.get(at).cloned())).collect()
    }
    /// Which of them hold the same, by their order: neighbours.
    fn pairs(&self, order: &[String]) -> Vec<(String, String)> {
        order.chunks_exact(2).map(|two| (two[0].clone(), two[1].clone())).collect()
    }
    /// Whether only the first copy answers reads.
    fn reads_one(&self) -> bool {
        false
    }
    /// Most drives that its tools take.
    fn drives_max(&self) -> usize {
        DRIVES_MAX
    }
    /// What the kernel copies of it per second at most, unless that is changed.
    fn sync_bytes_per_s(&self) -> Option<f64> {
        Some(SYNC_BYTES_PER_S)
    }
    /// What to know.
    fn remarks(&self, wish: &Wish) -> Vec<String>;
    /// Where the volume is found.
    fn device(&self, wish: &Wish) -> String;
    /// The steps, from drives to filesystem.
    fn steps(&self, wish: &Wish) -> Vec<Step>;
}

/// What md copies at most, also for LVM and also when nothing else is done: `dev.raid.speed_limit_max`, 200,000 KiB/s unless it is changed (md(4); of a
/// RAID10 that is made in line it counts what the volume holds, `resync_max_sectors` of drivers/md/raid10.c).
pub(super) const SYNC_BYTES_PER_S: f64 = 200_000.0 * 1024.0;
/// Largest number of drives that is planned for.
pub(super) const DRIVES_MAX: usize = 512;

fn capacity(layout: &dyn Layout, wish: &Wish, drives: u64) -> u64 {
    drives / 2 * layout.usable_bytes(wish.drive_bytes, wish.chunk_bytes)
}

/// All pairs are copied at the same time, as far as the kernel does not hold them back.
fn first_sync_s(layout: &dyn Layout, wish: &Wish, drives: u64) -> f64 {
    let pairs = drives as f64 / 2.0 * wish.class.bytes_per_s;
    capacity(layout, wish, drives) as f64 / layout.sync_bytes_per_s().map_or(pairs, |limit| limit.min(pairs))
}

/// Says so where the kernel holds copying back.
fn limited(layout: &dyn Layout, wish: &Wish, drives: u64) -> Option<String> {
    let pairs = drives as f64 / 2.0 * wish.class.bytes_per_s;
    let limit = layout.sync_bytes_per_s().filter(|limit| *limit < pairs)?;
    Some(format!(
        "the kernel copies at most {:.0} MB/s of it, which makes the first synchronisation {:.0} times as long as the drives need; `sysctl dev.raid.speed_limit_max` (KiB/s) raises that, and a rebuild of fast drives with it",
        limit / 1e6,
        pairs / limit
    ))
}

/// A layout worked out.
pub(super) fn planned(layout: &dyn Layout, wish: &Wish) -> LayoutPlan {
    let order = layout.order(wish);
    let drives = order.len() as u64;
    LayoutPlan {
        name: layout.name(),
        title: layout.title(),
        capacity_bytes: capacity(layout, wish, drives),
        rates: Rates::of_one(wish.class).over(drives, layout.reads_one()),
        reads_one: layout.reads_one(),
        first_sync_s: first_sync_s(layout, wish, drives),
        failures: layout.failures(wish),
        pairs: layout.pairs(&order),
        remarks: layout.remarks(wish).into_iter().chain(limited(layout, wish, drives)).collect(),
        device: layout.device(wish),
        steps: layout.steps(wish),
    }
}

/// A chunk as the commands want it.
pub(super) fn chunk_kib(wish: &Wish) -> u32 {
    u32::try_from(wish.chunk_bytes >> 10).unwrap_or(u32::MAX)
}

/// The filesystem of every layout.
pub(super) fn filesystem(wish: &Wish, device: String) -> Step {
    let stripes = wish.shelves.iter().map(Vec::len).sum::<usize>() / 2;
    Step::Filesystem(linerate_model::step::FilesystemStep::Xfs {
        device,
        chunk_kib: chunk_kib(wish),
        stripes: u32::try_from(stripes).unwrap_or(u32::MAX),
    })
}
