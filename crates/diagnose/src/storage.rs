//! Disk and replication figures: the ceiling of a replicated volume is the slower of the local disk and the
//! transport. Figures come in, findings and refused evidence go out.

use linerate_model::fact::FactValue;
use linerate_model::finding::{Direction, LayerScope, Metric, Suspect};
use linerate_model::names::natural;
use linerate_model::snapshot::{Snapshot, StorageFigure, StoragePattern, StorageSubject};

use crate::attribute::shape::Shape;
use crate::disks::figures;
use crate::rules::DiskRules;
use crate::words::{digits, percent};

/// A replicated figure below its ceiling.
pub(crate) struct StorageLoss {
    /// What is slow: `replication`, `random writes replicated`, `resync`.
    pub kind: &'static str,
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
pub(crate) const PLACE: (Suspect, Direction, LayerScope, Metric) =
    (Suspect::All, Direction::Both, LayerScope::Any, Metric::Storage);

/// Figures that must not be used, with the reason.
pub(crate) fn refused(snapshot: &Snapshot, rules: &DiskRules) -> Vec<String> {
    let written = |figure: &StorageFigure| {
        snapshot
            .storage
            .iter()
            .filter(|f| f.pattern.is_write() && (f.host == figure.host || f.host.is_empty()))
            // At random places everything is slower.
            .filter(|f| f.pattern.is_random() == figure.pattern.is_random())
            .map(|f| f.bytes_per_s)
            .fold(0.0, f64::max)
    };
    snapshot
        .storage
        .iter()
        .filter(|f| is_cached(f, written(f), rules))
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

/// Beginnings of the names of single drives. Of volumes, arrays and NVMe drives being busy says nothing: they
/// work on many requests at a time (`iostat(1)`, %util).
const DRIVES: [&str; 2] = ["sd", "hd"];

/// What is worth knowing about disks.
pub(crate) fn notes(snapshot: &Snapshot, rules: &DiskRules) -> Vec<String> {
    let mut notes = of_drives(snapshot, rules);
    notes.extend(volumes(snapshot));
    notes
}

/// Drives that are slow among their equals, and those that had no time left. A slow one is busy because it is
/// slow: one thing to say.
fn of_drives(snapshot: &Snapshot, rules: &DiskRules) -> Vec<String> {
    let slow = figures::slow(&snapshot.storage, rules);
    let is_slow = |f: &StorageFigure| slow.iter().any(|d| d.host == f.host && d.device == f.variant);
    let saturated = saturated(snapshot, is_slow, rules);
    slow.into_iter().map(|drive| drive.sentence).chain(saturated).collect()
}

/// Drives that had no time left under the load that they were seen with.
fn saturated(
    snapshot: &Snapshot,
    is_slow: impl Fn(&StorageFigure) -> bool,
    rules: &DiskRules,
) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    let devices = || snapshot.storage.iter().filter(|f| f.what == StorageSubject::Device);
    let is_drive = |f: &&StorageFigure| DRIVES.iter().any(|start| f.variant.starts_with(start));
    let is_full = |f: &&StorageFigure| {
        f.pattern == StoragePattern::Read && f.busy.is_some_and(|b| b >= rules.saturated)
    };
    for read in devices().filter(is_drive).filter(is_full).filter(|f| !is_slow(f)) {
        let same = |f: &&StorageFigure| {
            f.pattern == StoragePattern::Write && f.host == read.host && f.variant == read.variant
        };
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

/// What stands behind the names of the device mapper that figures speak of.
fn volumes(snapshot: &Snapshot) -> Vec<String> {
    let figures = snapshot
        .storage
        .iter()
        .filter(|f| f.what == StorageSubject::Device && f.pattern == StoragePattern::Write);
    figures
        .filter_map(|f| {
            let facts = &snapshot.facts.get(&f.host)?.readings;
            let name = facts.get(&format!("disk.{}.dm_name", f.variant))?;
            let below = match facts.get(&format!("disk.{}.on", f.variant)) {
                Some(FactValue::List(devices)) => {
                    let mut devices = devices.clone();
                    devices.sort_by(|a, b| natural(a, b));
                    format!(" on {}", devices.join(", "))
                }
                Some(other) => format!(" on {other}"),
                None => String::new(),
            };
            let busy = f.busy.map_or(String::new(), |b| format!(", busy for {} of the time", percent(b)));
            let requests =
                f.requests_per_s.map_or(String::new(), |r| format!(": {} requests a second", digits(r)));
            Some(format!("{} {} is the volume {name}{below}{requests}{busy}", f.host, f.variant))
        })
        .collect()
}

/// The line for a snapshot in which no pair was measured.
pub(crate) fn headline(snapshot: &Snapshot, rules: &DiskRules) -> String {
    let figures_known = snapshot.storage.len();
    match of_drives(snapshot, rules).into_iter().next() {
        Some(first) => first,
        None if figures_known == 1 => {
            "no pair was measured; one figure of disks, not at its limit".to_owned()
        }
        None if figures_known > 0 => {
            format!("no pair was measured; {figures_known} figures of disks, none of them at its limit")
        }
        None => "nothing was measured".to_owned(),
    }
}

fn is_cached(figure: &StorageFigure, written: f64, rules: &DiskRules) -> bool {
    // What a device counted has passed it.
    figure.what != StorageSubject::Device
        && figure.pattern.is_read()
        && written > 0.0
        && figure.bytes_per_s > rules.cache_factor * written
}

/// Figures far below what disk and transport carry, worst first; one per transport and kind.
pub(crate) fn losses(snapshot: &Snapshot, rules: &DiskRules) -> Vec<StorageLoss> {
    let figures = Figures(snapshot, rules);
    let each = snapshot.storage.iter();
    let mut losses: Vec<StorageLoss> = each.filter_map(|f| figures.loss(f)).collect();
    losses.sort_by(|a, b| (a.measured / a.expected).total_cmp(&(b.measured / b.expected)));
    losses
}

/// The figures of a snapshot, looked up by what they are.
struct Figures<'a>(&'a Snapshot, &'a DiskRules);

impl Figures<'_> {
    fn find(&self, what: StorageSubject, pattern: StoragePattern, variant: Option<&str>) -> Option<f64> {
        self.0
            .storage
            .iter()
            .find(|f| f.what == what && f.pattern == pattern && variant.is_none_or(|v| f.variant == v))
            .map(|f| f.bytes_per_s)
    }

    fn loss(&self, f: &StorageFigure) -> Option<StorageLoss> {
        match (f.what, f.pattern) {
            (StorageSubject::Replicated, StoragePattern::Write) => self.replicated(f),
            (StorageSubject::Replicated, StoragePattern::RandomWrite) => self.random(f),
            (StorageSubject::Resync, _) => self.resync(f),
            _ => None,
        }
    }

    /// Sequential writes: the slower of disk and transport is their ceiling.
    fn replicated(&self, f: &StorageFigure) -> Option<StorageLoss> {
        let disk = self.find(StorageSubject::LocalDisk, StoragePattern::Write, None)?;
        let transport = self.find(StorageSubject::Transport, StoragePattern::Stream, Some(&f.variant))?;
        let last = format!(
            "replicated over {}: {} MB/s, {} of the disk and {} of the transport",
            f.variant,
            digits(f.bytes_per_s / 1e6),
            percent(f.bytes_per_s / disk),
            percent(f.bytes_per_s / transport)
        );
        let evidence = vec![
            format!("the local disk writes {} MB/s", digits(disk / 1e6)),
            format!("the transport {} carries {} MB/s", f.variant, digits(transport / 1e6)),
            last,
        ];
        self.below(f, "replication", disk.min(transport), evidence)
    }

    /// Random writes, where sequential ones are fine: then each write costs more than its bytes.
    fn random(&self, f: &StorageFigure) -> Option<StorageLoss> {
        let disk = self.find(StorageSubject::LocalDisk, StoragePattern::RandomWrite, None)?;
        let stream = self.find(StorageSubject::Replicated, StoragePattern::Write, Some(&f.variant))?;
        let transport = self
            .find(StorageSubject::Transport, StoragePattern::Stream, Some(&f.variant))
            .unwrap_or(f64::INFINITY);
        let stream_share =
            stream / self.find(StorageSubject::LocalDisk, StoragePattern::Write, None)?.min(transport);
        let expected = disk.min(transport);
        if stream_share < self.1.replica_share_min {
            return None;
        }
        let evidence = vec![
            format!("the local disk writes {} MB/s at random", digits(disk / 1e6)),
            format!("sequential writes reach {} of the slower of disk and transport", percent(stream_share)),
            format!(
                "replicated random writes: {} MB/s, {} of the disk",
                digits(f.bytes_per_s / 1e6),
                percent(f.bytes_per_s / disk)
            ),
        ];
        let mut loss = self.below(f, "random writes replicated", expected, evidence)?;
        loss.shape.set("random_over_stream", f.bytes_per_s / expected / stream_share);
        Some(loss)
    }

    /// A replica that is brought up to date.
    fn resync(&self, f: &StorageFigure) -> Option<StorageLoss> {
        let transport = self
            .find(StorageSubject::Transport, StoragePattern::Stream, Some(&f.variant))
            .or_else(|| self.find(StorageSubject::Transport, StoragePattern::Stream, None))?;
        let disk = self.find(StorageSubject::LocalDisk, StoragePattern::Write, None).unwrap_or(f64::INFINITY);
        let mut evidence = vec![format!("the transport carries {} MB/s", digits(transport / 1e6))];
        if disk.is_finite() {
            evidence.push(format!("the local disk writes {} MB/s", digits(disk / 1e6)));
        }
        evidence.push(format!("the resync runs at {} MB/s", digits(f.bytes_per_s / 1e6)));
        let mut loss = self.below(f, "resync", disk.min(transport), evidence)?;
        loss.shape.set("resync", 1.0);
        Some(loss)
    }

    /// A loss where a figure is below its share of the ceiling.
    fn below(
        &self,
        f: &StorageFigure,
        kind: &'static str,
        expected: f64,
        evidence: Vec<String>,
    ) -> Option<StorageLoss> {
        let share = f.bytes_per_s / expected;
        if !share.is_finite() || share >= self.1.replica_share_min {
            return None;
        }
        let mut shape = Shape::default();
        shape.set("throughput_share", share);
        shape.set("resync", 0.0);
        Some(StorageLoss {
            kind,
            variant: f.variant.clone(),
            measured: f.bytes_per_s,
            expected,
            evidence,
            shape,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Rules;

    const RULES: &DiskRules = &Rules::DEFAULT.disks;

    fn device(name: &str, pattern: StoragePattern, requests: f64, merged: f64, busy: f64) -> StorageFigure {
        StorageFigure {
            host: "home".into(),
            what: StorageSubject::Device,
            variant: name.into(),
            pattern,
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
                device("sdx", StoragePattern::Read, 222.0, 0.0, 0.94),
                device("sdx", StoragePattern::Write, 888.0, 3047.0, 0.94),
                device("md1", StoragePattern::Read, 518.0, 0.0, 1.0),
                device("sdc", StoragePattern::Read, 110.0, 0.0, 0.55),
            ],
            ..Snapshot::default()
        };
        let said = notes(&snapshot, RULES);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(
            said[0]
                .starts_with("home sdx: busy for 94 % of the time with 1110 requests a second after merging"),
            "{said:?}"
        );
        assert_eq!(headline(&snapshot, RULES), said[0]);
        snapshot.storage.remove(0);
        assert!(
            headline(&snapshot, RULES).contains("no pair was measured; 3 figures"),
            "{}",
            headline(&snapshot, RULES)
        );
        assert_eq!(headline(&Snapshot::default(), RULES), "nothing was measured");
    }
}
