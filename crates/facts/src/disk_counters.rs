//! Counters `disk.<dev>.stat.*` of `/proc/diskstats`. Read only when somebody asks for them: a server with
//! many drives has thousands, and no test of a network is explained by them.

use std::collections::BTreeMap;

use linerate_model::disk::FIELDS;
use linerate_model::fact::{FactDecl, FactKey, Gap};
use linerate_sys::root::Root;
use linerate_sys::sched::monotonic_ns;

use super::readings::fact;

/// Most devices that are read.
const DISKS_MAX: usize = 2048;

pub(super) fn declarations() -> Vec<FactDecl> {
    vec![
        fact("disk.clock_us", "us", "Monotonic clock of the host when the counters of disks were read."),
        fact(
            "disk.*.stat.*",
            "count, sectors of 512 bytes or ms, as the name says",
            "Counter of /proc/diskstats: reads, reads_merged, read_sectors, read_ms, the same for writes and discards, busy_ms, queue_ms, flushes, flush_ms. Only when asked for.",
        ),
    ]
}

/// Reads them, and the moment of it.
pub(super) fn read(root: &Root, counters: &mut BTreeMap<FactKey, i64>, gaps: &mut Vec<Gap>) {
    let text = match root.read("/proc/diskstats") {
        Ok(text) => text,
        Err(error) => return gaps.push(Gap { what: "disk.*.stat.*".into(), reason: error.to_string() }),
    };
    counters.insert("disk.clock_us".into(), i64::try_from(monotonic_ns() / 1000).unwrap_or(i64::MAX));
    for line in text.lines().take(DISKS_MAX) {
        let mut words = line.split_ascii_whitespace().skip(2);
        let Some(name) = words.next() else { continue };
        let disk = name.replace('.', "/");
        for (field, value) in FIELDS.iter().zip(words).filter(|(field, _)| **field != "in_flight") {
            if let Ok(value) = value.parse() {
                counters.insert(format!("disk.{disk}.stat.{field}"), value);
            }
        }
    }
}
