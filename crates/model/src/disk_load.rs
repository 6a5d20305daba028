//! What a load on a disk is asked for, and what it found, phase by phase.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;

/// Most phases of one plan.
pub const PHASES_MAX: usize = 32;
/// Most requests under way in a phase, all threads together.
pub const OUTSTANDING_MAX: u32 = 4096;
/// Most threads of a phase.
pub const THREADS_MAX: u16 = 256;
/// Largest request, bytes.
pub const BLOCK_BYTES_MAX: u32 = 16 << 20;
/// Smallest request, bytes: a sector.
pub const BLOCK_BYTES_MIN: u32 = 512;
/// Longest phase, milliseconds.
pub const PHASE_MS_MAX: u32 = 3_600_000;
/// Fewer requests that ended are too few for a figure.
pub const REQUESTS_MIN: u64 = 20;

/// What is read and written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DiskTarget {
    /// A file without a name in this folder, made for the load; it is gone when the program is, however that
    /// ends.
    Folder {
        /// The folder.
        path: PathBuf,
        /// Size of the file, bytes; less when filling it would take too long.
        bytes: u64,
    },
    /// A file or a block device that is there: it is only read.
    Existing {
        /// Its path.
        path: PathBuf,
    },
    /// A block device that provably holds nothing: it is written, and holds nothing again afterwards.
    Empty {
        /// Its path.
        path: PathBuf,
        /// What the operator typed: the device's own name, or nothing happens.
        really: String,
        /// How much of it is used, from 1 MiB on, bytes.
        bytes: u64,
    },
}

impl DiskTarget {
    /// Its path.
    #[must_use]
    pub fn path(&self) -> &PathBuf {
        match self {
            Self::Folder { path, .. } | Self::Existing { path } | Self::Empty { path, .. } => path,
        }
    }

    /// Whether it may be written.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        !matches!(self, Self::Existing { .. })
    }
}

/// When writes have to be safe from a loss of power.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Durable {
    /// Nobody asks.
    #[default]
    Never,
    /// `fdatasync` after so many writes of a thread.
    Data(u32),
    /// `fsync` after so many writes of a thread.
    Full(u32),
    /// Every write by itself (`O_DSYNC`).
    Each,
}

/// One phase of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiskPhase {
    /// At random places; otherwise each thread goes on where it was, in a part of its own.
    pub random: bool,
    /// Of a hundred requests so many are reads.
    pub reads: u8,
    /// Size of a request.
    pub block_bytes: u32,
    /// Requests under way of each thread.
    pub depth: u16,
    /// Threads.
    pub threads: u16,
    /// Around the cache of the kernel (`O_DIRECT`).
    pub direct: bool,
    /// When writes have to be safe.
    #[serde(default)]
    pub durable: Durable,
    /// How many ends of requests are waited for at a time: more cost less CPU and more time.
    #[serde(default = "one")]
    pub batch: u16,
}

fn one() -> u16 {
    1
}

impl DiskPhase {
    /// Requests under way, all threads together.
    #[must_use]
    pub fn outstanding(&self) -> u32 {
        u32::from(self.depth) * u32::from(self.threads)
    }

    /// Whether it writes.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.reads < 100
    }
}

/// 4k, 128k, 1M.
fn size(bytes: u32) -> String {
    match bytes {
        b if b % (1 << 20) == 0 => format!("{}M", b >> 20),
        b if b % (1 << 10) == 0 => format!("{}k", b >> 10),
        b => b.to_string(),
    }
}

impl std::fmt::Display for DiskPhase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let order = if self.random { "random" } else { "seq" };
        match self.reads {
            0 => write!(f, "{order} write")?,
            100 => write!(f, "{order} read")?,
            reads => write!(f, "{order} {reads}% read")?,
        }
        write!(f, " {}", size(self.block_bytes))?;
        if self.outstanding() > 1 {
            write!(f, " x{}", self.outstanding())?;
        }
        match self.durable {
            Durable::Never => {}
            Durable::Data(1) | Durable::Full(1) | Durable::Each => write!(f, " sync")?,
            Durable::Data(n) | Durable::Full(n) => write!(f, " sync/{n}")?,
        }
        if self.direct { Ok(()) } else { write!(f, " cached") }
    }
}

/// Requests of one direction.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiskRequests {
    /// Requests that ended well.
    pub requests: u64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// How long each took, nanoseconds: from its hand-over to the kernel to its end; a write that has to be
    /// safe ends with the flush that makes it so.
    pub took_ns: Histogram,
}

/// What happened in a tenth of a second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiskPoint {
    /// End of the interval since the start of the phase, milliseconds.
    pub at_ms: u32,
    /// Requests that ended in it.
    pub requests: u32,
    /// Bytes that they moved.
    pub bytes: u64,
    /// The slowest of them, microseconds.
    pub slowest_us: u32,
}

/// Why a figure is no evidence about the drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Doubt {
    /// The kernel read less from storage than was asked: its cache answered.
    FromCache,
    /// The device got less than was written, also by the flush at the end: the same pages were written again
    /// and again in the kernel's cache.
    KeptInCache,
    /// Read or written through the cache, and the file is smaller than the memory; the kernel does not say
    /// where it came from.
    FitsMemory,
    /// Writes ended in memory.
    WriteBack,
    /// The file system or the device is memory.
    Memory,
    /// What was read is all zero: a drive answers for space that nobody wrote without looking.
    Zeros,
    /// Too few requests for a figure.
    Few,
}

impl Doubt {
    /// The sentence for a person.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Self::FromCache => {
                "the kernel's cache answered, not the drive: read around it (without --cached), or a file larger than the memory"
            }
            Self::KeptInCache => {
                "the kernel's cache kept most of what was written: write around it (without --cached), or take a larger file (--size)"
            }
            Self::FitsMemory => {
                "through the cache, with a file that is smaller than the memory: measure around it (without --cached)"
            }
            Self::WriteBack => {
                "times are those of writes into memory; only MB/s, which has the final flush in it, is the drive's"
            }
            Self::Memory => "this is memory, not a drive",
            Self::Zeros => {
                "everything read was zero: drives answer so for space that nobody wrote, without looking"
            }
            Self::Few => "fewer than 20 requests ended: too few for a figure; give it more --time",
        }
    }

    /// Whether also the throughput is worthless, not only the times.
    #[must_use]
    pub fn refuses_rate(self) -> bool {
        self != Self::WriteBack
    }
}

/// What the kernel counted at the device below during a phase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceShare {
    /// Requests that reached it, after merging.
    pub requests: u64,
    /// Requests that were merged into others before.
    pub merged: u64,
    /// Bytes.
    pub bytes: u64,
    /// Of them those that were written.
    #[serde(default)]
    pub write_bytes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Share of the time in which at least one request was under way, 0 to 1.
    pub busy: f64,
}

/// What one phase found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiskResult {
    /// Which.
    pub phase: DiskPhase,
    /// Reads.
    pub read: DiskRequests,
    /// Writes.
    pub write: DiskRequests,
    /// Flushes: how long each took, nanoseconds.
    pub flush_ns: Histogram,
    /// From the first request to the end of the last, or of the flush after it, seconds.
    pub elapsed_s: f64,
    /// Of it the flush at the end of a phase that wrote into memory, seconds.
    #[serde(default)]
    pub last_flush_s: f64,
    /// CPU time of the program and of the kernel's helpers in its name, seconds.
    pub cpu_s: f64,
    /// A point every 100 ms, at most 600; longer phases keep their beginning.
    pub series: Vec<DiskPoint>,
    /// How requests were made.
    pub way: String,
    /// What of it the host did not allow, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
    /// The device that the target is on, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceShare>,
    /// Why it is no evidence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<Doubt>,
}

impl DiskResult {
    /// The sentence of a doubt for a person, with figures where there are some.
    #[must_use]
    pub fn reason(&self, doubt: Doubt) -> String {
        match (doubt, &self.device) {
            (Doubt::KeptInCache, Some(share)) => {
                let [written, reached] =
                    [self.write.bytes, share.write_bytes].map(|bytes| bytes as f64 / 1e6);
                format!(
                    "the kernel's cache took {:.0} of {written:.0} MB, {reached:.0} MB reached the device: write around it (without --cached), or take a larger file (--size)",
                    (written - reached).max(0.0)
                )
            }
            _ => doubt.sentence().to_owned(),
        }
    }

    /// Requests per second, both directions.
    #[must_use]
    pub fn requests_per_s(&self) -> f64 {
        per_s((self.read.requests + self.write.requests) as f64, self.elapsed_s)
    }

    /// Bytes per second, both directions.
    #[must_use]
    pub fn bytes_per_s(&self) -> f64 {
        per_s((self.read.bytes + self.write.bytes) as f64, self.elapsed_s)
    }

    /// Times of both directions together, nanoseconds.
    #[must_use]
    pub fn took_ns(&self) -> Histogram {
        let mut both = self.read.took_ns.clone();
        both.merge(&self.write.took_ns);
        both
    }

    /// Whether its throughput says something about the drive.
    #[must_use]
    pub fn is_evidence(&self) -> bool {
        !self.doubts.iter().any(|d| d.refuses_rate())
    }
}

fn per_s(count: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { count / seconds } else { 0.0 }
}

/// What a load on a disk found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiskEnd {
    /// Name of the kernel for the device that the target is on, or is; empty where there is none.
    #[serde(default)]
    pub device: String,
    /// File system of the target: `ext4`; empty for a device.
    #[serde(default)]
    pub filesystem: String,
    /// Bytes that were used.
    pub bytes: u64,
    /// Memory of the host, bytes.
    #[serde(default)]
    pub memory_bytes: u64,
    /// Seconds that making it ready took: filling a file, proving that a device is empty.
    #[serde(default)]
    pub prepared_s: f64,
    /// What should be known about the target, in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// One per phase that ended.
    pub phases: Vec<DiskResult>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_has_a_short_name() {
        let phase = DiskPhase {
            random: true,
            reads: 100,
            block_bytes: 4096,
            depth: 32,
            threads: 1,
            direct: true,
            durable: Durable::Never,
            batch: 1,
        };
        assert_eq!(phase.to_string(), "random read 4k x32");
        let sync = DiskPhase { random: false, reads: 0, depth: 1, durable: Durable::Data(1), ..phase };
        assert_eq!(sync.to_string(), "seq write 4k sync");
        let mixed = DiskPhase { reads: 70, block_bytes: 1 << 20, direct: false, threads: 4, ..phase };
        assert_eq!(mixed.to_string(), "random 70% read 1M x128 cached");
        assert_eq!(DiskPhase { block_bytes: 512, ..sync }.to_string(), "seq write 512 sync");
    }
}
