//! `node_disk_*`: counters of block devices, and the figures of single drives that they give.

use linerate_model::disk::SECTOR_BYTES;
use linerate_model::outlier::StoredSeries;
use linerate_model::snapshot::{StorageFigure, StoragePattern, StorageSubject};

use super::super::family::Family;
use super::super::metric::{Row, Use};

/// The family.
pub(super) struct Diskstats;

const SECTOR: f64 = 1.0 / SECTOR_BYTES as f64;

#[rustfmt::skip]
const ROWS: &[Row] = &[
    ("node_disk_reads_completed_total", "disk.{device}.stat.reads", Use::Counter, 1.0),
    ("node_disk_reads_merged_total", "disk.{device}.stat.reads_merged", Use::Counter, 1.0),
    ("node_disk_read_bytes_total", "disk.{device}.stat.read_sectors", Use::Counter, SECTOR),
    ("node_disk_read_time_seconds_total", "disk.{device}.stat.read_ms", Use::Counter, 1e3),
    ("node_disk_writes_completed_total", "disk.{device}.stat.writes", Use::Counter, 1.0),
    ("node_disk_writes_merged_total", "disk.{device}.stat.writes_merged", Use::Counter, 1.0),
    ("node_disk_written_bytes_total", "disk.{device}.stat.write_sectors", Use::Counter, SECTOR),
    ("node_disk_write_time_seconds_total", "disk.{device}.stat.write_ms", Use::Counter, 1e3),
    ("node_disk_io_time_seconds_total", "disk.{device}.stat.busy_ms", Use::Counter, 1e3),
    ("node_disk_io_time_weighted_seconds_total", "disk.{device}.stat.queue_ms", Use::Counter, 1e3),
];

impl Family for Diskstats {
    fn name(&self) -> &'static str {
        "diskstats"
    }

    fn rows(&self) -> &'static [Row] {
        ROWS
    }

    fn query(&self, name: &str) -> String {
        format!("{name}{{device!~\"loop.*|ram.*|zram.*|sr.*\"}}")
    }
}

/// What a counter grew by in the seconds in which it was stored.
fn rate(series: Option<&StoredSeries>) -> Option<f64> {
    let series = series?;
    let growth: Vec<f64> = (0..series.intervals).filter_map(|t| series.at(t)).collect();
    (!growth.is_empty()).then(|| growth.iter().sum::<f64>() / (series.every_s * growth.len() as f64))
}

/// The figures of a drive over the whole range, from what its counters grew by.
pub(in super::super) fn figures<'a>(
    device: &str,
    counter: impl Fn(&str) -> Option<&'a StoredSeries>,
) -> Vec<StorageFigure> {
    let busy = rate(counter("busy_ms")).map(|ms| (ms / 1e3).clamp(0.0, 1.0));
    let directions = [
        (StoragePattern::Read, "reads", "reads_merged", "read_sectors", "read_ms"),
        (StoragePattern::Write, "writes", "writes_merged", "write_sectors", "write_ms"),
    ];
    let figure = |(pattern, requests, merged, sectors, ms)| {
        let requests_per_s = rate(counter(requests))?;
        let wait_ms = rate(counter(ms)).filter(|_| requests_per_s > 0.0).map(|ms| ms / requests_per_s);
        Some(StorageFigure {
            what: StorageSubject::Device,
            variant: device.to_owned(),
            pattern,
            bytes_per_s: rate(counter(sectors)).unwrap_or(0.0) * f64::from(SECTOR_BYTES),
            requests_per_s: Some(requests_per_s),
            merged_per_s: rate(counter(merged)),
            wait_ms,
            busy,
            ..StorageFigure::default()
        })
    };
    directions.into_iter().filter_map(figure).collect()
}
