//! What a volume should reach under a load, and which term binds.
//!
//! What comes in: what the volume is made of, what is asked of it. What goes out: requests and bytes per
//! second with their arithmetic, or nothing where nobody can know it from the outside. Pure.

use linerate_model::disk_load::{DiskPhase, DiskResult, Doubt, Durable};
use linerate_storage::plan::{ROTATING_BYTES_PER_S, ROTATING_PER_S, SMALL_WRITE};
use schemars::JsonSchema;
use serde::Serialize;

use super::RULES;
use super::link::{DriveBus, DriveLink};
use super::volume::{Class, VolumeMembers};

/// What binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DiskExpectation {
    /// Requests per second.
    pub requests_per_s: f64,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// What binds.
    pub binds: Term,
    /// How it comes about.
    #[serde(skip)]
    pub arithmetic: Arithmetic,
    /// The arithmetic in words; empty until a report writes it.
    pub sentence: String,
}

/// What a bound is made of.
#[derive(Debug, Clone, PartialEq)]
pub enum Arithmetic {
    /// Requests at random offsets.
    Seeks {
        /// Drives that have something to do.
        busy: f64,
        /// Requests per second of each.
        each_per_s: f64,
        /// Requests to drives for one to the volume.
        cost: f64,
        /// All drives, and requests in flight that would keep them busy, where there are fewer.
        shortage: Option<(u32, f64)>,
    },
    /// Bytes in a row.
    Row {
        /// Drives that what is in flight reaches.
        reached: f64,
        /// All drives with content of their own.
        drives: f64,
        /// Bytes in flight.
        in_flight: f64,
    },
    /// Waiting for the medium.
    Flush {
        /// Whether each write waits by itself, for lack of a write cache.
        by_itself: bool,
        /// What is waited for beside the data.
        also: Option<AlsoSafe>,
    },
    /// A write misses its offset each time, for lack of a write cache.
    Missed,
    /// The wire to each of so many drives.
    Wire(f64, DriveLink),
}

/// What a file system has to have safe beside the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlsoSafe {
    /// A record in its journal.
    Journal,
    /// The tree that leads to the data.
    Tree,
}

impl Arithmetic {
    fn binds(&self) -> Term {
        match self {
            Self::Seeks { shortage: None, .. } => Term::Seeks,
            Self::Row { reached, drives, .. } if reached >= drives => Term::Transfer,
            Self::Seeks { .. } | Self::Row { .. } | Self::Missed => Term::Depth,
            Self::Flush { .. } => Term::Flush,
            Self::Wire(..) => Term::Link,
        }
    }
}

/// Requests per second, and what they come from.
type Bound = (f64, Arithmetic);

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
    let (requests_per_s, arithmetic) = bounds.into_iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(DiskExpectation {
        requests_per_s,
        bytes_per_s: requests_per_s * f64::from(phase.block_bytes),
        binds: arithmetic.binds(),
        arithmetic,
        sentence: String::new(),
    })
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
            // When the next one comes, its offset has just gone by.
            bounds.push((turns(phase), Arithmetic::Missed));
        }
        Durable::Never => {}
    }
    bounds
}

/// At random places: each piece costs a move of the heads, half a revolution and its own bytes.
fn seeks(volume: &VolumeMembers, phase: &DiskPhase) -> Bound {
    let drives = f64::from(volume.drives);
    let cost = per_request(volume, phase);
    // What is under way at the drives, and how many of them have something to do.
    let in_flight = f64::from(phase.outstanding()) * cost;
    // What a write cache has taken has ended for the writer, and the drive puts it down in the order that it
    // likes.
    let taken = volume.write_back == Some(true)
        && phase.reads == 0
        && phase.durable == Durable::Never
        && volume.parity == 0;
    let busy = if taken { drives } else { drives.min(in_flight) };
    let each = if taken { RULES.queue_choice } else { in_flight / busy };
    let alone = 1000.0 / (RULES.seek_ms + RULES.revolution_ms / 2.0);
    let choice = ((each - 1.0) / (RULES.queue_choice - 1.0)).clamp(0.0, 1.0);
    let seek_rate = alone + (ROTATING_PER_S - alone) * choice;
    let piece = f64::from(phase.block_bytes) / pieces(volume, phase);
    let rate = 1.0 / (1.0 / seek_rate + piece / ROTATING_BYTES_PER_S);
    // Small requests cost no time for their bytes worth a word.
    let rate = if piece <= 16_384.0 { seek_rate } else { rate };
    let short = busy < drives || each < RULES.queue_choice;
    let shortage = short.then(|| (volume.drives, (RULES.queue_choice * drives / cost).ceil()));
    (busy * rate / cost, Arithmetic::Seeks { busy, each_per_s: rate, cost, shortage })
}

/// In a row: bytes per second of the drives that work at the same time.
fn transfer(volume: &VolumeMembers, phase: &DiskPhase) -> Bound {
    let block = f64::from(phase.block_bytes);
    let drives = f64::from(volume.data_drives());
    let in_flight = f64::from(phase.outstanding()) * block;
    // Without the cache of the kernel nobody reads ahead: only what is under way keeps drives busy.
    let reached = match volume.chunk_bytes {
        Some(chunk) if phase.direct => (in_flight / chunk as f64).ceil().clamp(1.0, drives),
        _ => drives,
    };
    (reached * ROTATING_BYTES_PER_S / block, Arithmetic::Row { reached, drives, in_flight })
}

/// What a file system waits for until a write is safe, beside the data.
///
/// A new time of a file is a record of the journal of ext4 and of the log of XFS (`fs/ext4/fsync.c`,
/// `fs/xfs/xfs_file.c` of Linux); its last block is sent behind a flush of what came before, and flushed
/// itself. `fdatasync` of content in its old place needs no record. Where content gets a new place each time,
/// the tree that leads to it has to be safe too (`fs/btrfs/tree-log.c`).
fn also_safe(filesystem: &str, durable: Durable) -> Option<AlsoSafe> {
    match (filesystem, durable) {
        ("btrfs", _) => Some(AlsoSafe::Tree),
        ("ext3" | "ext4" | "xfs", Durable::Full(_)) => Some(AlsoSafe::Journal),
        _ => None,
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
    let also = also_safe(&volume.filesystem, phase.durable);
    let waits = if also.is_some() { 2.0 } else { 1.0 };
    let by_itself = phase.direct && volume.write_back == Some(false);
    let turns_for_all = if by_itself { every + waits - 1.0 } else { waits };
    (turns(phase) * every / turns_for_all, Arithmetic::Flush { by_itself, also })
}

/// The wire to each drive: of one without moving parts all that is known.
fn wire(volume: &VolumeMembers, phase: &DiskPhase) -> Bound {
    let (reads, _) = shares(phase);
    let drives = f64::from(if reads >= 1.0 { volume.drives } else { volume.data_drives() });
    let usual = DriveLink { bytes_per_s: RULES.sata_bytes_per_s, bus: DriveBus::Sata(6.0) };
    let link = volume.link.unwrap_or(usual);
    (drives * link.bytes_per_s / f64::from(phase.block_bytes), Arithmetic::Wire(drives, link))
}

/// A measured phase beside what should be reached.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Beside {
    /// What should be reached, where that is known.
    pub should: Option<DiskExpectation>,
    /// Measured over it; `None` without one, or where the figure is no evidence.
    pub share: Option<f64>,
    /// What binds, as far as the measurement shows it.
    #[serde(skip)]
    pub limit: DiskLimit,
    /// Requests that were asked for, and those that reached the device, where neighbours were merged.
    #[serde(skip)]
    pub merged: Option<(f64, f64)>,
    /// What binds, in a word for a column; empty until a report writes it.
    pub binds: String,
    /// The same in a sentence with figures; empty until a report writes it.
    pub sentence: String,
}

/// What a measured phase is limited by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DiskLimit {
    /// The figure is no evidence.
    Unknown(Doubt),
    /// So many CPUs that the load took.
    Cpu(f64),
    /// Flushes: medians of one and of a safe write with it, ms.
    Flush(f64, f64),
    /// Writes ended in memory.
    Cache,
    /// What is expected to.
    Expected,
    /// Each request takes so many microseconds, and there is one at a time.
    Latency(f64),
    /// The device, which is busy all the time.
    Busy,
    /// The device.
    Device,
}

/// Compares a measured phase with what should be reached.
#[must_use]
pub fn beside(volume: Option<&VolumeMembers>, result: &DiskResult) -> Beside {
    let should = volume.and_then(|volume| reach(volume, &result.phase));
    let measured = result.requests_per_s();
    let share = should
        .as_ref()
        .filter(|s| s.requests_per_s > 0.0 && result.is_evidence())
        .map(|s| measured / s.requests_per_s);
    let limit = limit(result, should.is_some());
    Beside { should, share, limit, merged: merged(result), binds: String::new(), sentence: String::new() }
}

fn limit(result: &DiskResult, is_expected: bool) -> DiskLimit {
    if let Some(doubt) = result.doubts.iter().find(|d| d.refuses_rate()) {
        return DiskLimit::Unknown(*doubt);
    }
    let busy = result.cpu_s / result.elapsed_s.max(f64::MIN_POSITIVE);
    if busy >= RULES.cpu_full * f64::from(result.phase.threads) {
        return DiskLimit::Cpu(busy);
    }
    let p50 = |histogram: &linerate_model::histogram::Histogram| histogram.quantile(0.5).unwrap_or(0) as f64;
    let (flush, whole) = (p50(&result.flush_ns), p50(&result.write.took_ns));
    if flush > 0.0 && flush >= RULES.flush_share * whole {
        return DiskLimit::Flush(flush / 1e6, whole / 1e6);
    }
    if result.doubts.contains(&Doubt::WriteBack) {
        return DiskLimit::Cache;
    }
    if is_expected {
        return DiskLimit::Expected;
    }
    if result.phase.outstanding() == 1 {
        // The mean, with what a flush after several adds to each: a median of what is waited for now and then
        // says nothing of the rate.
        let requests = (result.read.requests + result.write.requests).max(1);
        return DiskLimit::Latency(result.elapsed_s * 1e6 / requests as f64);
    }
    let is_busy = result.device.is_some_and(|d| d.busy > RULES.busy_device);
    if is_busy { DiskLimit::Busy } else { DiskLimit::Device }
}

/// Requests that were asked for, and those of them that reached the device, where neighbours were joined.
fn merged(result: &DiskResult) -> Option<(f64, f64)> {
    let device = result.device?;
    let asked = (result.read.requests + result.write.requests) as f64;
    let reached = device.requests as f64;
    // A tenth more or less is the file system's own.
    ((device.merged as f64) > asked * RULES.merged_min && reached < asked).then_some((asked, reached))
}
