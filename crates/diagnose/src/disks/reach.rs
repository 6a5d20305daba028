//! What a volume should reach under a load, and which term binds.
//!
//! What comes in: what the volume is made of, what is asked of it. What goes out: requests and bytes per
//! second with the arithmetic in a sentence, or nothing where nobody can know it from the outside. Pure.

use std::fmt::Write as _;

use linerate_model::disk_load::{DiskPhase, DiskResult, Doubt, Durable};
use linerate_model::units::{percent, short};
use linerate_storage::plan::{ROTATING_BYTES_PER_S, ROTATING_PER_S, SMALL_WRITE};
use serde::Serialize;

use super::RULES;
use super::volume::{Class, VolumeMembers};

/// What binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Term {
    /// Ways of the heads.
    Seeks,
    /// Requests under way do not keep all drives busy.
    Depth,
    /// Bytes per second of the drives.
    Transfer,
    /// The wire to each drive.
    Link,
    /// Waiting for the medium at each flush.
    Flush,
}

impl Term {
    /// For a column.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Seeks => "seeks",
            Self::Depth => "depth",
            Self::Transfer => "transfer",
            Self::Link => "link",
            Self::Flush => "flush",
        }
    }
}

/// What should be reached.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DiskExpectation {
    /// Requests per second.
    pub requests_per_s: f64,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// What binds.
    pub binds: Term,
    /// The arithmetic in words.
    pub sentence: String,
}

/// How many drives.
pub(super) fn counted(drives: f64) -> String {
    if (drives - 1.0).abs() < 1e-9 { "1 drive".to_owned() } else { format!("{} drives", short(drives)) }
}

/// A bound: requests per second, what it comes from, and how.
type Bound = (f64, Term, String);

/// What a volume should reach; `None` where its drives do not tell (virtual ones, those behind a controller,
/// files, NVMe whose lanes nobody knows): there is no figure to hold against it.
#[must_use]
pub fn reach(volume: &VolumeMembers, phase: &DiskPhase) -> Option<DiskExpectation> {
    let volume = &volume.at_work();
    let bounds = match volume.class {
        Class::Rotating => rotating(volume, phase),
        // What a chip needs for a request or a flush is its maker's secret; only of bytes in a row the wire
        // is a bound that it comes near.
        Class::Solid | Class::Nvme if phase.random || phase.durable != Durable::Never => return None,
        Class::Solid => vec![wire(volume, phase)],
        Class::Nvme => vec![volume.link.as_ref().map(|_| wire(volume, phase))?],
        Class::Virtual | Class::Controller | Class::Made => return None,
    };
    let (requests_per_s, binds, sentence) = bounds.into_iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
    let bytes_per_s = requests_per_s * f64::from(phase.block_bytes);
    Some(DiskExpectation { requests_per_s, bytes_per_s, binds, sentence })
}

/// Shares of reads and writes.
fn shares(phase: &DiskPhase) -> (f64, f64) {
    let reads = f64::from(phase.reads.min(100)) / 100.0;
    (reads, 1.0 - reads)
}

/// How many pieces a request is cut into: each is a request of its own to a drive.
fn pieces(volume: &VolumeMembers, phase: &DiskPhase) -> f64 {
    let chunk = volume.chunk_bytes.filter(|_| volume.data_drives() > 1);
    chunk.map_or(1.0, |chunk| u64::from(phase.block_bytes).div_ceil(chunk.max(1)) as f64)
}

/// Requests to drives for one request to the volume.
fn per_request(volume: &VolumeMembers, phase: &DiskPhase) -> f64 {
    let (reads, writes) = shares(phase);
    let row = volume.chunk_bytes.unwrap_or(0) * u64::from(volume.data_drives());
    let whole_row = row > 0 && u64::from(phase.block_bytes).is_multiple_of(row);
    let parity = if whole_row {
        1.0 + f64::from(volume.parity) / f64::from(volume.data_drives())
    } else {
        SMALL_WRITE[(volume.parity as usize).min(2)]
    };
    (reads + writes * f64::from(volume.copies) * parity) * pieces(volume, phase)
}

fn rotating(volume: &VolumeMembers, phase: &DiskPhase) -> Vec<Bound> {
    let mut bounds = if phase.random { vec![seeks(volume, phase)] } else { vec![transfer(volume, phase)] };
    if volume.link.is_some() {
        bounds.push(wire(volume, phase));
    }
    let each_waits = phase.direct && volume.write_back == Some(false);
    match phase.durable {
        _ if !phase.writes() => {}
        Durable::Data(every) | Durable::Full(every) => bounds.push(flush(volume, phase, every)),
        Durable::Each => bounds.push(flush(volume, phase, 1)),
        // One after the other in a row; of several the next one is there in time.
        Durable::Never if each_waits && !phase.random && phase.reads == 0 && phase.depth == 1 => {
            bounds.push(without_cache(phase));
        }
        Durable::Never => {}
    }
    bounds
}

/// At random places: each piece costs a way of the heads, half a revolution and its own bytes.
fn seeks(volume: &VolumeMembers, phase: &DiskPhase) -> Bound {
    let drives = f64::from(volume.drives);
    let cost = per_request(volume, phase);
    // What is under way at the drives, and how many of them have something to do.
    let under_way = f64::from(phase.outstanding()) * cost;
    // What a write cache has taken has ended for the writer, and the drive puts it down in the order that it
    // likes.
    let taken = volume.write_back == Some(true)
        && phase.reads == 0
        && phase.durable == Durable::Never
        && volume.parity == 0;
    let busy = if taken { drives } else { drives.min(under_way) };
    let each = if taken { RULES.queue_choice } else { under_way / busy };
    let alone = 1000.0 / (RULES.seek_ms + RULES.revolution_ms / 2.0);
    let choice = ((each - 1.0) / (RULES.queue_choice - 1.0)).clamp(0.0, 1.0);
    let seek_rate = alone + (ROTATING_PER_S - alone) * choice;
    let piece = f64::from(phase.block_bytes) / pieces(volume, phase);
    let rate = 1.0 / (1.0 / seek_rate + piece / ROTATING_BYTES_PER_S);
    // Small requests cost no time for their bytes worth a word.
    let rate = if piece <= 16_384.0 { seek_rate } else { rate };
    let requests = busy * rate / cost;
    let depth = busy < drives || each < RULES.queue_choice;
    let mut sentence = format!("{} x {} a second", counted(busy), short(rate));
    if (cost - 1.0).abs() > 1e-9 {
        let _ = write!(sentence, ", {} requests to drives for each", short(cost));
    }
    let _ = write!(sentence, " = {} requests a second", short(requests));
    if depth {
        let needed = (RULES.queue_choice * drives / cost).ceil();
        let _ = write!(
            sentence,
            "; {} under way leave {} little choice or nothing to do, {} would keep them busy (--depth)",
            phase.outstanding(),
            counted(f64::from(volume.drives)),
            short(needed)
        );
    }
    (requests, if depth { Term::Depth } else { Term::Seeks }, sentence)
}

/// In a row: bytes per second of the drives that work at the same time.
fn transfer(volume: &VolumeMembers, phase: &DiskPhase) -> Bound {
    let block = f64::from(phase.block_bytes);
    let drives = f64::from(volume.data_drives());
    let under_way = f64::from(phase.outstanding()) * block;
    // Without the cache of the kernel nobody reads ahead: only what is under way keeps drives busy.
    let spread = match volume.chunk_bytes {
        Some(chunk) if phase.direct => (under_way / chunk as f64).ceil().clamp(1.0, drives),
        _ => drives,
    };
    let bytes = spread * ROTATING_BYTES_PER_S;
    let mut sentence = format!(
        "{} x {} MB/s = {} MB/s in a row, where neighbours are merged",
        counted(spread),
        short(ROTATING_BYTES_PER_S / 1e6),
        short(bytes / 1e6)
    );
    if spread < drives {
        let _ = write!(
            sentence,
            "; {} KiB under way reach {} of {} drives",
            short(under_way / 1024.0),
            short(spread),
            short(drives)
        );
    }
    (bytes / block, if spread < drives { Term::Depth } else { Term::Transfer }, sentence)
}

/// How often a file system waits for the medium until a write is safe, and for what beside the data.
///
/// A new time of a file is a record of the journal of ext4 and of the log of XFS (`fs/ext4/fsync.c`,
/// `fs/xfs/xfs_file.c` of Linux); its last block is sent behind a flush of what came before, and flushed
/// itself. `fdatasync` of content in its old place needs no record. Where content gets a new place each time,
/// the tree that leads to it has to be safe too (`fs/btrfs/tree-log.c`).
fn waits(filesystem: &str, durable: Durable) -> (f64, &'static str) {
    match (filesystem, durable) {
        ("btrfs", _) => (2.0, ", once for the data and once for the tree of btrfs"),
        ("ext3" | "ext4" | "xfs", Durable::Full(_)) => {
            (2.0, ", once for the data and once for the record in the journal")
        }
        _ => (1.0, ""),
    }
}

/// Revolutions in a second of all threads, each of which waits for its own.
fn turns(phase: &DiskPhase) -> f64 {
    f64::from(phase.threads) * 1000.0 / RULES.revolution_ms
}

/// Each flush waits until the place comes round again; mirrors and stripes wait together. Without a write
/// cache each write waits by itself.
fn flush(volume: &VolumeMembers, phase: &DiskPhase, every: u32) -> Bound {
    let every = f64::from(every.max(1));
    let (waits, what) = waits(&volume.filesystem, phase.durable);
    let by_itself = phase.direct && volume.write_back == Some(false);
    let turns_for_all = if by_itself { every + waits - 1.0 } else { waits };
    let requests = turns(phase) * every / turns_for_all;
    let sentence = format!(
        "{} waits for {}, {} ms each at 7,200 a minute{what}: {} safe writes a second of {} threads",
        if by_itself { "without a write cache a write" } else { "a flush" },
        if waits > 1.0 { "two revolutions" } else { "a revolution" },
        short(RULES.revolution_ms),
        short(requests),
        phase.threads
    );
    (requests, Term::Flush, sentence)
}

/// Writes in a row, one after the other, on drives without a write cache: when the next one comes, its place
/// has just gone by.
fn without_cache(phase: &DiskPhase) -> Bound {
    let requests = turns(phase);
    let sentence = format!(
        "without a write cache each write waits for a revolution, {} ms at 7,200 a minute: {} writes a second of {} threads; more under way would not miss their place (--depth)",
        short(RULES.revolution_ms),
        short(requests),
        phase.threads
    );
    (requests, Term::Depth, sentence)
}

/// The wire to each drive: of one without moving parts all that is known.
fn wire(volume: &VolumeMembers, phase: &DiskPhase) -> Bound {
    let (reads, _) = shares(phase);
    let drives = f64::from(if reads >= 1.0 { volume.drives } else { volume.data_drives() });
    let (each, words) = match &volume.link {
        Some(link) => (link.bytes_per_s, link.words.as_str()),
        None => (RULES.sata_bytes_per_s, "SATA at 6 Gbit/s"),
    };
    let bytes = drives * each;
    let sentence = format!(
        "{} x {} MB/s of {words}: no drive can be faster than its wire, many are slower",
        counted(drives),
        short(each / 1e6)
    );
    (bytes / f64::from(phase.block_bytes), Term::Link, sentence)
}

/// A measured phase beside what should be reached.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Beside {
    /// What should be reached, where that is known.
    pub should: Option<DiskExpectation>,
    /// Measured over it; `None` without one, or where the figure is no evidence.
    pub share: Option<f64>,
    /// What binds, in a word for a column.
    pub binds: String,
    /// The same in a sentence with figures.
    pub sentence: String,
}

/// Compares a measured phase with what should be reached, and says what binds as far as the measurement shows
/// it.
#[must_use]
pub fn beside(volume: Option<&VolumeMembers>, result: &DiskResult) -> Beside {
    let should = volume.and_then(|volume| reach(volume, &result.phase));
    let measured = result.requests_per_s();
    let share = should
        .as_ref()
        .filter(|s| s.requests_per_s > 0.0 && result.is_evidence())
        .map(|s| measured / s.requests_per_s);
    let (binds, sentence) = binds(result, should.as_ref());
    Beside { should, share, binds, sentence }
}

fn binds(result: &DiskResult, should: Option<&DiskExpectation>) -> (String, String) {
    if let Some(doubt) = result.doubts.iter().find(|d| d.refuses_rate()) {
        return ("no evidence".to_owned(), result.reason(*doubt));
    }
    let busy = result.cpu_s / result.elapsed_s.max(f64::MIN_POSITIVE);
    let threads = f64::from(result.phase.threads);
    if busy >= RULES.cpu_full * threads {
        let sentence = format!(
            "the CPU is what limits: {} of a CPU for {threads} threads; more --threads would show",
            percent(busy)
        );
        return ("CPU".to_owned(), sentence);
    }
    let merged = merged(result);
    let p50 = |histogram: &linerate_model::histogram::Histogram| histogram.quantile(0.5).unwrap_or(0) as f64;
    let (flush, whole) = (p50(&result.flush_ns), p50(&result.write.took_ns));
    if flush > 0.0 && flush >= RULES.flush_share * whole {
        let of = short(flush / 1e6);
        return (
            "flush".to_owned(),
            format!("the flush takes {of} of the {} ms of a safe write{merged}", short(whole / 1e6)),
        );
    }
    if result.doubts.contains(&Doubt::WriteBack) {
        let (last, all) = (short(result.last_flush_s * 1e3), short(result.elapsed_s * 1e3));
        return (
            "cache".to_owned(),
            format!("writes ended in memory; the flush at the end took {last} of {all} ms{merged}"),
        );
    }
    if let Some(should) = should {
        return (should.binds.word().to_owned(), format!("{}{merged}", should.sentence));
    }
    if result.phase.outstanding() == 1 {
        // The mean, with what a flush after several adds to each: a median of what is waited for now and then
        // says nothing of the rate.
        let requests = (result.read.requests + result.write.requests).max(1);
        let each_us = result.elapsed_s * 1e6 / requests as f64;
        return (
            "latency".to_owned(),
            format!("one request at a time: each takes {} us on average{merged}", short(each_us)),
        );
    }
    let what = if result.device.is_some_and(|d| d.busy > RULES.busy_device) {
        "the device has always something to do"
    } else {
        "the device answers no faster"
    };
    ("device".to_owned(), format!("{what} at {} requests under way{merged}", result.phase.outstanding()))
}

/// What became of requests on the way to the device, where neighbours were joined.
fn merged(result: &DiskResult) -> String {
    let Some(device) = result.device else { return String::new() };
    let asked = (result.read.requests + result.write.requests) as f64;
    // A tenth more or less is the file system's own.
    if (device.merged as f64) <= asked * RULES.merged_min || device.requests as f64 >= asked {
        return String::new();
    }
    let (asked, reached) = (short(asked), short(device.requests as f64));
    format!("; of {asked} requests {reached} reached the device, for neighbours were merged")
}
