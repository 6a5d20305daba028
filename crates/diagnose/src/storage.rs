//! Disk and replication figures: the ceiling of a replicated volume is the slower of the local disk and the transport.
//! Figures come in, findings and refused evidence go out.

use linerate_model::finding::{Direction, Element, LayerScope, Response};
use linerate_model::snapshot::{Snapshot, StorageFigure};

use crate::attribute::shape::Shape;
use crate::words::{digits, percent};

/// A read this many times as fast as the disk writes came from memory.
const CACHE_FACTOR: f64 = 10.0;
/// Below this share of its ceiling a replicated volume is a finding.
const SHARE_MIN: f64 = 0.7;

/// A replicated figure below its ceiling.
pub(crate) struct StorageLoss {
    /// Variant of the transport.
    pub variant: String,
    /// Bytes per second reached.
    pub measured: f64,
    /// Bytes per second of the slower of disk and transport.
    pub expected: f64,
    /// In words.
    pub evidence: Vec<String>,
    /// Values for the knowledge.
    pub shape: Shape,
}

/// The place of all storage findings.
pub(crate) const PLACE: (Element, Direction, LayerScope, Response) =
    (Element::All, Direction::Both, LayerScope::Any, Response::Storage);

/// Figures that must not be used, with the reason.
pub(crate) fn refused(snapshot: &Snapshot) -> Vec<String> {
    let written = |figure: &StorageFigure| {
        snapshot
            .storage
            .iter()
            .filter(|f| f.pattern.contains("write") && (f.host == figure.host || f.host.is_empty()))
            .map(|f| f.bytes_per_s)
            .fold(0.0, f64::max)
    };
    snapshot
        .storage
        .iter()
        .filter(|f| is_cached(f, written(f)))
        .map(|f| {
            format!(
                "{} {} {} of {} MB/s: {} times what is written there, so it was read from the page cache, not from the disk",
                f.what,
                f.variant,
                f.pattern,
                digits(f.bytes_per_s / 1e6),
                digits(f.bytes_per_s / written(f))
            )
        })
        .collect()
}

/// A drive that is busy for this share of the time has nothing left.
const SATURATED: f64 = 0.8;
/// Beginnings of the names of single drives. Of volumes, arrays and NVMe drives being busy says nothing: they work on many requests
/// at a time (`iostat(1)`, %util).
const DRIVES: [&str; 2] = ["sd", "hd"];

/// Drives that had no time left under the load that they were seen with.
pub(crate) fn notes(snapshot: &Snapshot) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    let devices = || snapshot.storage.iter().filter(|f| f.what == "device");
    let is_drive = |f: &&StorageFigure| DRIVES.iter().any(|start| f.variant.starts_with(start));
    let is_full = |f: &&StorageFigure| f.pattern == "read" && f.busy.is_some_and(|b| b >= SATURATED);
    for read in devices().filter(is_drive).filter(is_full) {
        let same =
            |f: &&StorageFigure| f.pattern == "write" && f.host == read.host && f.variant == read.variant;
        let write = devices().find(same);
        let sum = |pick: fn(&StorageFigure) -> Option<f64>| {
            pick(read).unwrap_or(0.0) + write.and_then(pick).unwrap_or(0.0)
        };
        let merged = match sum(|f| f.merged_per_s) {
            merged if merged >= 1.0 => format!(" after merging {} a second", digits(merged)),
            _ => String::new(),
        };
        let place = if read.host.is_empty() { String::new() } else { format!("{} ", read.host) };
        notes.push(format!(
            "{place}{}: busy for {} of the time with {} requests a second{merged}: if it is a rotating disk, it is the limit",
            read.variant,
            percent(read.busy.unwrap_or(0.0)),
            digits(sum(|f| f.requests_per_s)),
        ));
    }
    notes
}

/// The line for a snapshot in which no pair was measured.
pub(crate) fn headline(snapshot: &Snapshot) -> String {
    let figures = snapshot.storage.len();
    match notes(snapshot).into_iter().next() {
        Some(first) => first,
        None if figures > 0 => {
            format!("no pair was measured; {figures} figures of disks, none of them at its limit")
        }
        None => "nothing was measured".to_owned(),
    }
}

fn is_cached(figure: &StorageFigure, written: f64) -> bool {
    figure.pattern.contains("read") && written > 0.0 && figure.bytes_per_s > CACHE_FACTOR * written
}

/// Replicated figures far below disk and transport, worst first; one per transport.
pub(crate) fn losses(snapshot: &Snapshot) -> Vec<StorageLoss> {
    let find = |what: &str, pattern: &str, variant: Option<&str>| {
        snapshot
            .storage
            .iter()
            .find(|f| f.what == what && f.pattern == pattern && variant.is_none_or(|v| f.variant == v))
            .map(|f| f.bytes_per_s)
    };
    let mut losses: Vec<StorageLoss> = snapshot
        .storage
        .iter()
        .filter(|f| f.what == "replicated" && f.pattern == "write")
        .filter_map(|f| {
            let disk = find("local-disk", "write", None)?;
            let transport = find("transport", "stream", Some(&f.variant))?;
            let expected = disk.min(transport);
            let share = f.bytes_per_s / expected;
            if share >= SHARE_MIN {
                return None;
            }
            let mut shape = Shape::default();
            shape.set("throughput_share", share);
            let evidence = vec![
                format!("the local disk writes {} MB/s", digits(disk / 1e6)),
                format!("the transport {} carries {} MB/s", f.variant, digits(transport / 1e6)),
                format!(
                    "replicated over {}: {} MB/s, {} of the disk and {} of the transport",
                    f.variant,
                    digits(f.bytes_per_s / 1e6),
                    percent(f.bytes_per_s / disk),
                    percent(f.bytes_per_s / transport)
                ),
            ];
            Some(StorageLoss {
                variant: f.variant.clone(),
                measured: f.bytes_per_s,
                expected,
                evidence,
                shape,
            })
        })
        .collect();
    losses.sort_by(|a, b| (a.measured / a.expected).total_cmp(&(b.measured / b.expected)));
    losses
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(name: &str, pattern: &str, requests: f64, merged: f64, busy: f64) -> StorageFigure {
        StorageFigure {
            host: "home".into(),
            what: "device".into(),
            variant: name.into(),
            pattern: pattern.into(),
            requests_per_s: Some(requests),
            merged_per_s: Some(merged),
            busy: Some(busy),
            ..StorageFigure::default()
        }
    }

    /// Casebook D1 and D2.
    #[test]
    fn drives_without_time_left_are_named_and_volumes_are_not() {
        let mut snapshot = Snapshot {
            storage: vec![
                device("sdx", "read", 222.0, 0.0, 0.94),
                device("sdx", "write", 888.0, 3047.0, 0.94),
                device("md1", "read", 518.0, 0.0, 1.0),
                device("sdc", "read", 110.0, 0.0, 0.55),
            ],
            ..Snapshot::default()
        };
        let said = notes(&snapshot);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(
            said[0]
                .starts_with("home sdx: busy for 94 % of the time with 1110 requests a second after merging"),
            "{said:?}"
        );
        assert_eq!(headline(&snapshot), said[0]);
        snapshot.storage.remove(0);
        assert!(headline(&snapshot).contains("no pair was measured; 3 figures"), "{}", headline(&snapshot));
        assert_eq!(headline(&Snapshot::default()), "nothing was measured");
    }
}
