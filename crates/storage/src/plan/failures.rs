//! What one and two failures of drives do to a layout, and how long a drive takes to be made anew.

use schemars::JsonSchema;
use serde::Serialize;

use super::levels::Level;
use super::rates::SYNC_BYTES_PER_S;
use super::spec::VolumeSpec;

/// What failures do.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Failures {
    /// Drives that no longer count after one failure.
    pub lost_with_one: u64,
    /// Chance that a second failure, of any other drive, loses data, 0 to 1.
    pub second_loses: f64,
    /// Bytes that have to be written after a drive was replaced.
    pub rebuild_bytes: u64,
    /// Bytes that have to be read for that, from all drives together.
    pub rebuild_read_bytes: u64,
    /// How long that takes with drives that have nothing else to do, seconds. With programs beside it, two to
    /// five times as long.
    pub rebuild_s: f64,
    /// Chance that data are lost in a year, if drives fail independently and a failed one is replaced at
    /// once.
    pub loss_per_year: f64,
    /// Whether a whole shelf may fail.
    pub shelf_may_fail: Option<bool>,
    /// In words.
    pub says: String,
}

const YEAR_S: f64 = 365.25 * 86_400.0;

/// In what layouts differ when drives fail.
struct Loss {
    /// Drives that stop with the first failure.
    stopped: u64,
    /// Of the others, those that may not fail after it.
    deadly: u64,
    /// Drives that are read to make one anew.
    read: u64,
    /// What the kernel copies at most, bytes per second.
    rate: f64,
    /// In words.
    effect: &'static str,
}

impl Failures {
    /// Of a level, where a drive has so many bytes of the volume.
    pub(super) fn of_level(spec: &VolumeSpec, level: Level, each_bytes: u64) -> Self {
        let others = spec.drives() - 1;
        let (deadly, read, effect) = match level {
            Level::Raid10 => (
                1,
                1,
                "one failure leaves one pair without its second copy; only the partner of that drive may not fail then",
            ),
            Level::Raid5 => (
                others,
                others,
                "one failure leaves no parity; then any second failure, or a sector that cannot be read, loses data until the drive is made anew from all others",
            ),
            Level::Raid6 => (
                0,
                others,
                "one failure leaves one parity; any second drive may fail too, a third one loses everything",
            ),
        };
        let loss = Loss { stopped: 1, deadly, read, rate: SYNC_BYTES_PER_S, effect };
        let mut failures = Self::of(spec, &loss, each_bytes);
        if level == Level::Raid6 {
            failures.loss_per_year = third_loses(spec, failures.rebuild_s);
        }
        if level.parity() > 0 {
            let largest = spec.shelves.iter().map(Vec::len).max().unwrap_or(0) as u64;
            failures.shelf_may_fail = failures.shelf_may_fail.map(|_| largest <= level.parity());
        }
        failures
    }

    /// A mirror over two sets of stripes: one failure stops a whole half.
    pub(super) fn of_halves(spec: &VolumeSpec, each_bytes: u64) -> Self {
        let half = spec.drives() / 2;
        let effect = "one failure takes a whole half out; then any drive of the other half loses everything, \
             and the whole half is copied anew";
        let loss = Loss { stopped: half, deadly: half, read: half, rate: f64::INFINITY, effect };
        Self::of(spec, &loss, each_bytes)
    }

    fn of(spec: &VolumeSpec, loss: &Loss, each_bytes: u64) -> Self {
        let others = (spec.drives() - 1) as f64;
        let rebuild_s = each_bytes as f64 / loss.rate.min(spec.class.bytes_per_s);
        let first = spec.drives() as f64 * spec.class.fail_per_year;
        let second = loss.deadly as f64 * spec.class.fail_per_year * rebuild_s / YEAR_S;
        Self {
            lost_with_one: loss.stopped,
            second_loses: loss.deadly as f64 / others,
            rebuild_bytes: loss.stopped * each_bytes,
            rebuild_read_bytes: loss.read * each_bytes,
            rebuild_s,
            loss_per_year: (first * second).min(1.0),
            shelf_may_fail: (spec.shelves.len() > 1).then_some(true),
            says: loss.effect.to_owned(),
        }
    }
}

/// Chance of three failures within the time in which a drive is made anew, in a year (the Markov chain of
/// RAID6 with one repair at a time).
fn third_loses(spec: &VolumeSpec, rebuild_s: f64) -> f64 {
    let (drives, fail) = (spec.drives() as f64, spec.class.fail_per_year);
    let within = rebuild_s / YEAR_S;
    (drives * fail * (drives - 1.0) * fail * within * (drives - 2.0) * fail * within).min(1.0)
}
