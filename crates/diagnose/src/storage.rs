//! Disk and replication figures: the ceiling of a replicated volume is the slower of the local disk and the
//! transport. Figures come in, findings and refused evidence go out.

use linerate_model::fact::FactValue;
use linerate_model::finding::{Direction, LayerScope, Metric, ReplicaLoss, ReplicaPattern, Suspect};
use linerate_model::names::natural;
use linerate_model::remark::{DiskRemark, Refused};
use linerate_model::snapshot::{Snapshot, StorageFigure, StoragePattern, StorageSubject};

use crate::attribute::shape::Shape;
use crate::disks::figures;
use crate::rules::DiskRules;

/// A replicated figure below its ceiling.
pub(crate) struct StorageLoss {
    /// What is slow.
    pub of: ReplicaLoss,
    /// Bytes per second reached.
    pub measured: f64,
    /// Bytes per second of the slower of disk and transport.
    pub expected: f64,
    /// Values for the knowledge.
    pub shape: Shape,
}

/// The location of all storage findings.
pub(crate) const PLACE: (Suspect, Direction, LayerScope, Metric) =
    (Suspect::All, Direction::Both, LayerScope::Any, Metric::Storage);

/// Figures that must not be used.
pub(crate) fn cached(snapshot: &Snapshot, rules: &DiskRules) -> Vec<Refused> {
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
        .map(|f| Refused::PageCache { figure: Box::new(f.clone()), written: written(f) })
        .collect()
}

/// Beginnings of the names of single drives. Of volumes, arrays and NVMe drives being busy says nothing: they
/// work on many requests at a time (`iostat(1)`, %util).
const DRIVES: [&str; 2] = ["sd", "hd"];

/// What is worth knowing about disks.
pub(crate) fn remarks(snapshot: &Snapshot, rules: &DiskRules) -> Vec<DiskRemark> {
    let mut remarks = of_drives(snapshot, rules);
    remarks.extend(slow_writes(snapshot, rules));
    remarks.extend(volumes(snapshot));
    remarks
}

/// Writes of imported figures that one rotating drive would do much faster. The slowest of each host.
fn slow_writes(snapshot: &Snapshot, rules: &DiskRules) -> Vec<DiskRemark> {
    if snapshot.imported.is_none() {
        return Vec::new();
    }
    let is_slow = |figure: &&StorageFigure| {
        let of_writes = figure.pattern == StoragePattern::Write && figure.bytes_per_s > 0.0;
        let is_test = matches!(figure.what, StorageSubject::LocalDisk | StorageSubject::Replicated);
        // The rate of small synchronous writes is that of their waits.
        let is_slow = match figure.wait_ms {
            Some(wait_ms) => wait_ms >= rules.write_wait_ms_min && figure.bytes_per_s < rules.write_slow_max,
            None => figure.bytes_per_s < rules.write_slow_max,
        };
        of_writes && is_test && is_slow
    };
    let mut found: Vec<&StorageFigure> = Vec::new();
    for figure in snapshot.storage.iter().filter(is_slow) {
        match found.iter_mut().find(|known| known.host == figure.host) {
            Some(known) if known.bytes_per_s > figure.bytes_per_s => *known = figure,
            Some(_) => {}
            None => found.push(figure),
        }
    }
    let remark = |figure: &StorageFigure| DiskRemark::SlowWrites {
        host: figure.host.clone(),
        wait_ms: figure.wait_ms,
        bytes_per_s: figure.bytes_per_s,
    };
    found.into_iter().map(remark).collect()
}

/// Drives that are slow among their equals, and those that had no time left. A slow one is busy because it is
/// slow: one thing to say.
fn of_drives(snapshot: &Snapshot, rules: &DiskRules) -> Vec<DiskRemark> {
    let slow = figures::slow(&snapshot.storage, rules);
    let is_slow = |f: &StorageFigure| slow.iter().any(|d| d.host == f.host && d.device == f.variant);
    let saturated = saturated(snapshot, is_slow, rules);
    let slow = slow.into_iter().map(|drive| DiskRemark::Slow {
        host: drive.host.to_owned(),
        device: drive.device.to_owned(),
        pattern: drive.pattern,
        wait_ms: drive.waits_ms[0],
        usual_ms: drive.waits_ms[1],
        others: drive.others,
    });
    slow.chain(saturated).collect()
}

/// Drives that had no time left under the load that they were seen with.
fn saturated(
    snapshot: &Snapshot,
    is_slow: impl Fn(&StorageFigure) -> bool,
    rules: &DiskRules,
) -> Vec<DiskRemark> {
    let devices = || snapshot.storage.iter().filter(|f| f.what == StorageSubject::Device);
    let is_drive = |f: &&StorageFigure| DRIVES.iter().any(|start| f.variant.starts_with(start));
    let is_full = |f: &&StorageFigure| {
        f.pattern == StoragePattern::Read && f.busy.is_some_and(|b| b >= rules.saturated)
    };
    let full = devices().filter(is_drive).filter(is_full).filter(|f| !is_slow(f));
    full.map(|read| {
        let same = |f: &&StorageFigure| {
            f.pattern == StoragePattern::Write && f.host == read.host && f.variant == read.variant
        };
        let write = devices().find(same);
        let sum = |pick: fn(&StorageFigure) -> Option<f64>| {
            pick(read).unwrap_or(0.0) + write.and_then(pick).unwrap_or(0.0)
        };
        DiskRemark::Saturated {
            host: read.host.clone(),
            device: read.variant.clone(),
            busy: read.busy.unwrap_or(0.0),
            per_s: sum(|f| f.requests_per_s),
            merged_per_s: sum(|f| f.merged_per_s),
        }
    })
    .collect()
}

/// What stands behind the names of the device mapper that figures speak of.
fn volumes(snapshot: &Snapshot) -> Vec<DiskRemark> {
    let is_write =
        |f: &&StorageFigure| f.what == StorageSubject::Device && f.pattern == StoragePattern::Write;
    let figures = snapshot.storage.iter().filter(is_write);
    figures
        .filter_map(|f| {
            let facts = &snapshot.facts.get(&f.host)?.readings;
            let name = facts.get(&format!("disk.{}.dm_name", f.variant))?;
            let on = match facts.get(&format!("disk.{}.on", f.variant)) {
                Some(FactValue::List(devices)) => {
                    let mut devices = devices.clone();
                    devices.sort_by(|a, b| natural(a, b));
                    devices
                }
                Some(other) => vec![other.to_string()],
                None => Vec::new(),
            };
            Some(DiskRemark::Volume {
                host: f.host.clone(),
                device: f.variant.clone(),
                name: name.to_string(),
                on,
                per_s: f.requests_per_s,
                busy: f.busy,
            })
        })
        .collect()
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

    fn transport(&self, variant: &str) -> Option<f64> {
        self.find(StorageSubject::Transport, StoragePattern::Stream, Some(variant))
    }

    /// Sequential writes: the slower of disk and transport is their ceiling.
    fn replicated(&self, f: &StorageFigure) -> Option<StorageLoss> {
        let disk = self.find(StorageSubject::LocalDisk, StoragePattern::Write, None)?;
        self.below(f, ReplicaPattern::Write, Some(disk), Some(self.transport(&f.variant)?))
    }

    /// Random writes, where sequential ones are fine: then each write costs more than its bytes.
    fn random(&self, f: &StorageFigure) -> Option<StorageLoss> {
        let disk = self.find(StorageSubject::LocalDisk, StoragePattern::RandomWrite, None)?;
        let stream = self.find(StorageSubject::Replicated, StoragePattern::Write, Some(&f.variant))?;
        let transport = self.transport(&f.variant);
        let local = self.find(StorageSubject::LocalDisk, StoragePattern::Write, None)?;
        let sequential = stream / local.min(transport.unwrap_or(f64::INFINITY));
        if sequential < self.1.replica_share_min {
            return None;
        }
        let mut loss = self.below(f, ReplicaPattern::RandomWrite, Some(disk), transport)?;
        loss.of.sequential_share = Some(sequential);
        loss.shape.set("random_over_stream", f.bytes_per_s / loss.expected / sequential);
        Some(loss)
    }

    /// A replica that is brought up to date.
    fn resync(&self, f: &StorageFigure) -> Option<StorageLoss> {
        let any = || self.find(StorageSubject::Transport, StoragePattern::Stream, None);
        let transport = self.transport(&f.variant).or_else(any)?;
        let disk = self.find(StorageSubject::LocalDisk, StoragePattern::Write, None);
        let mut loss = self.below(f, ReplicaPattern::Resync, disk, Some(transport))?;
        loss.shape.set("resync", 1.0);
        Some(loss)
    }

    /// A loss where a figure is below its share of the slower of disk and transport.
    fn below(
        &self,
        f: &StorageFigure,
        pattern: ReplicaPattern,
        disk: Option<f64>,
        transport: Option<f64>,
    ) -> Option<StorageLoss> {
        let expected = disk.into_iter().chain(transport).fold(f64::INFINITY, f64::min);
        let share = f.bytes_per_s / expected;
        if !share.is_finite() || share >= self.1.replica_share_min {
            return None;
        }
        let mut shape = Shape::default();
        shape.set("throughput_share", share);
        shape.set("resync", 0.0);
        let of = ReplicaLoss {
            pattern,
            transport: f.variant.clone(),
            disk_bytes_per_s: disk,
            transport_bytes_per_s: transport,
            sequential_share: None,
        };
        Some(StorageLoss { of, measured: f.bytes_per_s, expected, shape })
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
        let found = remarks(&snapshot, RULES);
        let [DiskRemark::Saturated { device, busy, per_s, .. }] = &found[..] else { panic!("{found:?}") };
        assert_eq!((device.as_str(), *busy, *per_s), ("sdx", 0.94, 1110.0));
        snapshot.storage.remove(0);
        assert!(remarks(&snapshot, RULES).is_empty());
    }
}
