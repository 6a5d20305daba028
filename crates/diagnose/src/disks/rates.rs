//! Two readings of the counters of block devices: what each device did in between. The arithmetic is that of
//! iostat (`iostat(1)`), with the interval by the clock of the host.

use std::collections::BTreeMap;

use linerate_model::disk::{DiskKind, DiskRates, DiskTraffic, SECTOR_BYTES};
use linerate_model::fact::FactKey;
use linerate_model::names::natural;

use super::times::times;
use super::tree::Layout;

type Counters = BTreeMap<FactKey, i64>;

/// Moment of the reading.
const CLOCK: &str = "disk.clock_us";
/// Times are 32-bit numbers in many kernels and start again at nothing.
const WRAP: i64 = 1 << 32;

/// What every device did, and the seconds in between; `None` when the second reading is not later than the
/// first.
///
/// A device whose counters went back (it was taken away and another one came) is left out.
#[must_use]
pub fn between(before: &Counters, after: &Counters) -> Option<(f64, Vec<DiskRates>)> {
    let seconds = (after.get(CLOCK)? - before.get(CLOCK)?) as f64 / 1e6;
    if seconds <= 0.0 {
        return None;
    }
    let mut devices: Vec<&str> = after.keys().filter_map(|key| device_of(key)).collect();
    devices.dedup();
    devices.sort_by(|a, b| natural(a, b));
    Some((seconds, devices.into_iter().filter_map(|d| rates(before, after, d, seconds)).collect()))
}

fn device_of(key: &str) -> Option<&str> {
    Some(key.strip_prefix("disk.")?.split_once(".stat.")?.0)
}

/// How much a counter grew.
fn grown(before: i64, after: i64) -> Option<f64> {
    let growth = after - before;
    // Only what was near the end of 32 bits can have started again.
    let wrapped = growth < 0 && before < WRAP && before > WRAP / 2;
    let growth = if wrapped { growth + WRAP } else { growth };
    (growth >= 0).then_some(growth as f64)
}

fn rates(before: &Counters, after: &Counters, device: &str, seconds: f64) -> Option<DiskRates> {
    // A counter that the kernel does not have did not grow.
    let growth = |name: &str| {
        let key = format!("disk.{device}.stat.{name}");
        match (before.get(&key), after.get(&key)) {
            (Some(before), Some(after)) => grown(*before, *after),
            (None, None) => Some(0.0),
            _ => None,
        }
    };
    let traffic = |requests: &str, one: &str| {
        let count = growth(requests)?;
        Some(DiskTraffic {
            requests_per_s: count / seconds,
            merged_per_s: growth(&format!("{requests}_merged"))? / seconds,
            bytes_per_s: growth(&format!("{one}_sectors"))? * f64::from(SECTOR_BYTES) / seconds,
            wait_ms: mean(growth(&format!("{one}_ms"))?, count),
            // Read a moment later than the other counters: what ended in between is of no rate.
            times: times(before, after, device, one).filter(|_| count > 0.0),
        })
    };
    let flushes = growth("flushes")?;
    Some(DiskRates {
        device: device.replace('/', "."),
        read: traffic("reads", "read")?,
        write: traffic("writes", "write")?,
        discard: traffic("discards", "discard")?,
        flushes_per_s: flushes / seconds,
        flush_ms: mean(growth("flush_ms")?, flushes),
        flush_times: times(before, after, device, "flush"),
        queue: growth("queue_ms")? / 1000.0 / seconds,
        // The kernel looks at a clock of some milliseconds and can count more than there was.
        busy: (growth("busy_ms")? / 1000.0 / seconds).min(1.0),
    })
}

fn mean(sum: f64, count: f64) -> Option<f64> {
    (count > 0.0).then(|| sum / count)
}

/// Gives a device whose traffic is counted at its ways alone the sum of theirs: so do older kernels (6.1
/// among them) with NVMe's own multipath.
pub fn join_paths(layout: &Layout, disks: &mut [DiskRates]) {
    for at in 0..disks.len() {
        let head = layout.get(&disks[at].device).filter(|disk| disk.kind == DiskKind::Multipath);
        let Some(head) = head.filter(|_| disks[at].is_idle()) else { continue };
        let sum = disks.iter().filter(|d| head.on.contains(&d.device)).fold(
            DiskRates { device: head.device.clone(), ..DiskRates::default() },
            |sum, path| DiskRates {
                device: sum.device,
                read: both(sum.read, path.read),
                write: both(sum.write, path.write),
                discard: both(sum.discard, path.discard),
                flushes_per_s: sum.flushes_per_s + path.flushes_per_s,
                flush_ms: mean_of((sum.flush_ms, sum.flushes_per_s), (path.flush_ms, path.flushes_per_s)),
                flush_times: None,
                queue: sum.queue + path.queue,
                // At least as much as the busiest of them.
                busy: sum.busy.max(path.busy),
            },
        );
        disks[at] = sum;
    }
}

fn both(a: DiskTraffic, b: DiskTraffic) -> DiskTraffic {
    DiskTraffic {
        requests_per_s: a.requests_per_s + b.requests_per_s,
        merged_per_s: a.merged_per_s + b.merged_per_s,
        bytes_per_s: a.bytes_per_s + b.bytes_per_s,
        wait_ms: mean_of((a.wait_ms, a.requests_per_s), (b.wait_ms, b.requests_per_s)),
        // Percentiles cannot be added; those of each way stand at the way.
        times: None,
    }
}

/// Mean of two means with their weights.
fn mean_of((a, times_a): (Option<f64>, f64), (b, times_b): (Option<f64>, f64)) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) if times_a + times_b > 0.0 => {
            Some((a * times_a + b * times_b) / (times_a + times_b))
        }
        (a, b) => a.or(b),
    }
}
