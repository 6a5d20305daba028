//! Text of fio: `NAME: (groupid=…)` with lines `READ:`, `write:` and their latencies. Lines come in, a figure
//! for each job and direction goes out, or one for the group where it was reported as one.

use linerate_model::snapshot::{StorageFigure, StoragePattern, StorageSubject};

use super::storage_words;
use crate::reader::{Block, Reader};
use crate::sink::Sink;
use crate::units::{number, spoken};

/// The format.
pub(crate) struct FioText;

/// Lines of a job behind which something else begins.
const GAP_MAX: usize = 40;

/// `randwrite: (g=0): rw=randwrite, bs=(R) 4096B-4096B, …, ioengine=libaio, iodepth=32`: what it does.
fn job(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once(": (g=")?;
    rest.split_once("rw=")?.1.split(',').next()
}

/// `w: (groupid=0, jobs=4): err= 0: pid=1234: …`: the number of its error.
fn result(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once(": (groupid=")?;
    rest.split_once("err=")?.1.trim().split(|c: char| !c.is_ascii_digit()).next()
}

/// Bytes per second of `BW=117MiB/s (123MB/s)`, `bw=119808KB/s`, `bw=54123KiB/s`; old versions print binary
/// units without an `i`.
fn rate(text: &str) -> Option<f64> {
    let text = text.split([',', ' ', '(', ';']).next()?;
    let is_old = text.contains('B') && !text.contains("iB");
    let bytes = spoken(text)? / 8.0;
    let prefix = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let power = match prefix.chars().next()? {
        'K' | 'k' => 1,
        'M' => 2,
        'G' => 3,
        _ => 0,
    };
    Some(if is_old { bytes * 1.024_f64.powi(power) } else { bytes })
}

/// Requests per second of `IOPS=12.3k`, `iops=30018`.
fn iops(text: &str) -> Option<f64> {
    let text = text.split([',', ' ']).next()?;
    text.strip_suffix('k').map_or_else(|| number(text), |thousands| Some(number(thousands)? * 1000.0))
}

/// Value behind a word, in small letters or large ones.
fn after<'l>(line: &'l str, word: &str) -> Option<&'l str> {
    let at = line.to_ascii_lowercase().find(word)?;
    line.get(at + word.len()..)
}

/// `lat (usec): min=123, max=4567, avg=890.12, stdev=…`: the mean, milliseconds.
fn latency(line: &str) -> Option<f64> {
    let rest = line.trim().strip_prefix("lat (")?;
    let (unit, rest) = rest.split_once(')')?;
    let factor = match unit {
        "nsec" => 1e-6,
        "usec" => 1e-3,
        "msec" => 1.0,
        _ => return None,
    };
    number(after(rest, "avg=")?.trim().split(',').next()?).map(|mean| mean * factor)
}

/// The direction of a line of results, and what stands behind it.
fn side(line: &str) -> Option<(bool, &str)> {
    let line = line.trim();
    let (head, rest) = line.split_once(':')?;
    let is_read = match head.trim() {
        "read" => true,
        "write" => false,
        _ => return None,
    };
    let known = after(rest, "bw=").is_some() && after(rest, "iops=").is_some();
    known.then_some((is_read, rest))
}

impl Reader for FioText {
    fn name(&self) -> &'static str {
        "fio"
    }

    fn describes(&self) -> &'static str {
        "text of fio"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        let line = block.first();
        job(line).is_some() || result(line).is_some() || side(line).is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let mut random = block.at.command.value(&["--rw", "-rw", "--readwrite"]).is_some_and(is_random);
        let mut jobs_seen = false;
        let mut figures: Vec<StorageFigure> = Vec::new();
        let (mut taken, mut idle) = (0, 0);
        for (at, line) in block.lines.iter().enumerate() {
            idle += 1;
            if let Some(rw) = job(line) {
                (random, jobs_seen) = (is_random(rw), true);
            } else if let Some(error) = result(line) {
                if error != "0" {
                    out.note(format!("{}: a job of fio ended with an error", block.at.file));
                }
            } else if let Some((is_read, rest)) = side(line) {
                figures.extend(figure(is_read, random, rest, block));
            } else if let Some((wait, figure)) = latency(line).zip(figures.last_mut()) {
                figure.wait_ms = Some(wait);
            } else if !is_beside(line) || idle > GAP_MAX {
                break;
            } else {
                taken = if line.trim().is_empty() { taken } else { at + 1 };
                continue;
            }
            (taken, idle) = (at + 1, 0);
        }
        let whole = [&block.at.command.whole, &block.at.label];
        let is_direct = whole.iter().any(|t| t.contains("direct=1") || t.contains("direct 1"));
        // Writes that wait for the drive have not met the page cache alone.
        let synced = block.lines[..taken].iter().any(|line| line.contains("fsync/fdatasync/"))
            || whole.iter().any(|t| ["fsync=", "fdatasync=", "-sync="].iter().any(|flag| t.contains(flag)));
        let is_of_writes = figures
            .iter()
            .all(|figure| matches!(figure.pattern, StoragePattern::Write | StoragePattern::RandomWrite));
        let is_written_through = synced && is_of_writes;
        if jobs_seen && !figures.is_empty() && !is_direct && !is_written_through {
            out.note(format!(
                "{}: the text does not show --direct=1: the figures of fio may be those of the page cache",
                block.at.file
            ));
        }
        for figure in figures {
            out.figure(figure);
        }
        taken.max(1)
    }
}

fn is_random(rw: &str) -> bool {
    rw.contains("rand")
}

fn figure(is_read: bool, random: bool, rest: &str, block: &Block<'_>) -> Option<StorageFigure> {
    let target = block.at.command.value(&["--filename", "--directory"]).unwrap_or_default();
    let what =
        if target.contains("drbd") { StorageSubject::Replicated } else { storage_words::location(block.at) };
    Some(StorageFigure {
        what,
        variant: storage_words::transport(block.at).unwrap_or_default(),
        pattern: match (is_read, random) {
            (true, true) => StoragePattern::RandomRead,
            (true, false) => StoragePattern::Read,
            (false, true) => StoragePattern::RandomWrite,
            (false, false) => StoragePattern::Write,
        },
        bytes_per_s: rate(after(rest, "bw=")?.trim())?,
        requests_per_s: iops(after(rest, "iops=")?.trim()),
        ..StorageFigure::default()
    })
}

/// Lines of a report that hold no figures that are used.
fn is_beside(line: &str) -> bool {
    let line = line.trim();
    let begins = [
        "fio-",
        "Starting ",
        "...",
        "Jobs: ",
        "clat",
        "slat",
        "fsync/fdatasync/",
        "sync (",
        "sync percentiles",
        "lat (",
        "bw ",
        "bw(",
        "iops ",
        "cpu ",
        "IO depths",
        "submit",
        "complete",
        "issued",
        "latency ",
        "Run status",
        "READ:",
        "WRITE:",
        "Disk stats",
        "| ",
        "note:",
    ];
    line.is_empty()
        || begins.iter().any(|begin| line.starts_with(begin))
        || line.contains("ios=") && line.contains("util=")
        || line.contains(": Laying out IO file")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_of_old_and_new_versions() {
        assert_eq!(rate("117MiB/s (123MB/s)(6870MiB/60001msec)"), Some(117.0 * 1_048_576.0));
        assert!(rate("119808KB/s, iops=29951").is_some_and(|b| (b - 119_808.0 * 1024.0).abs() < 1.0));
        assert_eq!(iops("12.3k, BW=48.0MiB/s"), Some(12_300.0));
        assert_eq!(latency("     lat (usec): min=100, max=5000, avg=890.12, stdev=20"), Some(0.890_12));
    }
}
