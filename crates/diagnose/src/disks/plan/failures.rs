//! What one and two failures of drives do to a layout, and how long a drive takes to be made anew.

use serde::Serialize;

use super::Wish;
use super::layouts::SYNC_BYTES_PER_S;

/// What failures do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Failures {
    /// Drives that no longer count after one failure.
    pub lost_with_one: u64,
    /// Chance that a second failure, of any other drive, loses data, 0 to 1.
    pub second_loses: f64,
    /// Bytes that have to be written after a drive was replaced.
    pub rebuild_bytes: u64,
    /// How long that takes with drives that have nothing else to do, seconds. With programs beside it, two to five times as long.
    pub rebuild_s: f64,
    /// Chance that data are lost in a year, if drives fail independently and a failed one is replaced at once.
    pub loss_per_year: f64,
    /// Whether a whole shelf may fail.
    pub shelf_may_fail: Option<bool>,
    /// In words.
    pub says: String,
}

const YEAR_S: f64 = 365.25 * 86_400.0;

impl Failures {
    /// Stripes over pairs.
    pub(super) fn of_pairs(wish: &Wish) -> Self {
        let says = "one failure leaves one pair without its second copy; only the partner of that drive may not fail then";
        Self::of(wish, 1, 1, SYNC_BYTES_PER_S, says)
    }

    /// A mirror over two sets of stripes: one failure stops a whole half.
    pub(super) fn of_halves(wish: &Wish) -> Self {
        let half = drives(wish) / 2;
        let says = "one failure takes a whole half out; then any drive of the other half loses everything, and the whole half is copied anew";
        Self::of(wish, half, half, f64::INFINITY, says)
    }

    /// `lost` drives stop with the first failure, `deadly` of the others may not fail after it.
    /// `rate` is what the kernel copies at most, bytes per second.
    fn of(wish: &Wish, lost: u64, deadly: u64, rate: f64, says: &str) -> Self {
        let others = (drives(wish) - 1) as f64;
        let rebuild_s = wish.drive_bytes as f64 / rate.min(wish.class.bytes_per_s);
        let first = drives(wish) as f64 * wish.class.fail_per_year;
        let second = deadly as f64 * wish.class.fail_per_year * rebuild_s / YEAR_S;
        Self {
            lost_with_one: lost,
            second_loses: deadly as f64 / others,
            rebuild_bytes: lost * wish.drive_bytes,
            rebuild_s,
            loss_per_year: (first * second).min(1.0),
            shelf_may_fail: (wish.shelves.len() > 1).then_some(true),
            says: says.to_owned(),
        }
    }
}

fn drives(wish: &Wish) -> u64 {
    wish.shelves.iter().map(Vec::len).sum::<usize>() as u64
}
