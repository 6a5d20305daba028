//! JSON of fio (`--output-format=json`): jobs come in, a figure for each that read or wrote goes out. A job
//! without `direct=1` may have met the page cache only; that is noted.

use linerate_model::snapshot::{StorageFigure, StoragePattern, StorageSubject};
use serde_json::Value;

use super::json::{self, list, number, text};
use super::storage_words;
use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// The format.
pub(crate) struct Fio;

impl Reader for Fio {
    fn name(&self) -> &'static str {
        "fio-json"
    }

    fn describes(&self) -> &'static str {
        "fio --output-format=json"
    }

    fn takes_long_lines(&self) -> bool {
        true
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        json::has_keys(block, '{', &["\"fio version\""])
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        json::read(block, out, "fio", |value, out| {
            for job in list(value, &["jobs"]).iter().chain(list(value, &["client_stats"])) {
                one(job, value.get("global options"), block, out);
            }
        })
    }
}

fn one(job: &Value, global: Option<&Value>, block: &Block<'_>, out: &mut Sink) {
    let option = |name: &str| text(job, &["job options", name]).or_else(|| text(global?, &[name]));
    let random = option("rw").or(option("readwrite")).is_some_and(|rw| rw.contains("rand"));
    let is_on = |name: &str| option(name).is_some_and(|value| !["", "0", "none"].contains(&value.trim()));
    let direct = is_on("direct");
    // Writes that wait for the drive have not met the page cache alone.
    let synced = ["fsync", "fdatasync", "end_fsync", "sync"].into_iter().any(is_on);
    let target = option("filename").or(option("directory")).unwrap_or_default();
    let what =
        if target.contains("drbd") { StorageSubject::Replicated } else { storage_words::location(block.at) };
    if number(job, &["error"]).is_some_and(|e| e != 0.0) {
        out.note(format!("{}: a job of fio ended with an error", block.at.file));
    }
    for (side, sequential, jumping) in [
        ("read", StoragePattern::Read, StoragePattern::RandomRead),
        ("write", StoragePattern::Write, StoragePattern::RandomWrite),
    ] {
        let bytes_per_s = number(job, &[side, "bw_bytes"])
            // Versions before 3 count in KiB.
            .or_else(|| number(job, &[side, "bw"]).map(|kib| kib * 1024.0))
            .filter(|b| *b > 0.0);
        let Some(bytes_per_s) = bytes_per_s else { continue };
        let is_written_through = synced && side == "write";
        let is_cached = !direct && !is_written_through;
        if is_cached && number(job, &[side, "iops"]).is_some() {
            out.note(format!(
                "{}: fio ran without --direct=1: its {side} figures may be those of the page cache",
                block.at.file
            ));
        }
        let wait = number(job, &[side, "lat_ns", "mean"]).map(|ns| ns / 1e6);
        out.figure(StorageFigure {
            what,
            variant: storage_words::transport(block.at).unwrap_or_default(),
            pattern: if random { jumping } else { sequential },
            bytes_per_s,
            requests_per_s: number(job, &[side, "iops"]),
            wait_ms: wait.or_else(|| number(job, &[side, "lat", "mean"]).map(|us| us / 1000.0)),
            ..StorageFigure::default()
        });
    }
}
