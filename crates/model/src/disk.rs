//! Block devices: what they are, and what they did in an interval.

use serde::{Deserialize, Serialize};

use crate::inventory::HostName;

/// Counters of a block device in the order of `/proc/diskstats` behind its name, as they are called in keys
/// (`disk.<dev>.stat.<name>`); the kernel's `Documentation/admin-guide/iostats.rst` says what they mean. All grow, but `in_flight`.
/// Older kernels end after 11 or 15 of them.
pub const FIELDS: [&str; 17] = [
    "reads",
    "reads_merged",
    "read_sectors",
    "read_ms",
    "writes",
    "writes_merged",
    "write_sectors",
    "write_ms",
    "in_flight",
    "busy_ms",
    "queue_ms",
    "discards",
    "discards_merged",
    "discard_sectors",
    "discard_ms",
    "flushes",
    "flush_ms",
];

/// A sector of these counters, whatever the device has, bytes.
pub const SECTOR_BYTES: u32 = 512;

/// What a block device is, as far as it matters for what its figures mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiskKind {
    /// A drive with one set of heads: it works on one request at a time.
    Rotating,
    /// A drive without moving parts, a virtual one, or one of which nothing is known: it may work on many requests at a time.
    Solid,
    /// A part of another device.
    Partition,
    /// An array of md.
    Array,
    /// A volume of the device mapper: LVM, encryption, multipath.
    Volume,
    /// Several ways to one drive: of the device mapper, or of NVMe itself.
    Multipath,
    /// A device that DRBD replicates.
    Replicated,
    /// A file as a device, or memory.
    Made,
}

/// A block device of a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Disk {
    /// Name of the kernel: `sda`, `dm-2`, `nvme0n1`.
    pub device: String,
    /// What people call it: `vg0/home`; the name of the kernel where there is no other.
    pub name: String,
    /// Major and minor number: `253:2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<String>,
    /// What it is.
    pub kind: DiskKind,
    /// Size, bytes.
    pub size_bytes: u64,
    /// Devices that it stands on.
    #[serde(default)]
    pub on: Vec<String>,
    /// Where it is mounted.
    #[serde(default)]
    pub mounts: Vec<String>,
    /// Whether it is a part of a volume that nobody uses by itself (images and metadata of LVM's RAID).
    #[serde(default)]
    pub inner: bool,
}

/// What went one way through a device, per second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct DiskTraffic {
    /// Requests that reached the device, after merging.
    pub requests_per_s: f64,
    /// Requests that were merged into others before.
    pub merged_per_s: f64,
    /// Bytes.
    pub bytes_per_s: f64,
    /// Mean time of a request from its queueing to its end, milliseconds; `None` without requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<f64>,
}

/// What a device did in an interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DiskRates {
    /// Name of the kernel.
    pub device: String,
    /// Reads.
    pub read: DiskTraffic,
    /// Writes.
    pub write: DiskTraffic,
    /// Discards; nothing where the kernel does not count them.
    #[serde(default)]
    pub discard: DiskTraffic,
    /// Flushes per second.
    #[serde(default)]
    pub flushes_per_s: f64,
    /// Mean time of a flush, milliseconds; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flush_ms: Option<f64>,
    /// Requests under way, mean.
    pub queue: f64,
    /// Share of the time in which at least one request was under way, 0 to 1. Being busy all the time means that nothing is left only
    /// for a device that works on one request at a time.
    pub busy: f64,
}

impl DiskRates {
    /// Requests of all directions per second.
    #[must_use]
    pub fn requests_per_s(&self) -> f64 {
        self.read.requests_per_s + self.write.requests_per_s
    }

    /// Whether nothing at all went through.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.requests_per_s() + self.discard.requests_per_s + self.flushes_per_s == 0.0 && self.busy == 0.0
    }
}

/// All devices of a host in an interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DiskInterval {
    /// Host.
    pub host: HostName,
    /// Its end, milliseconds since 1970, by the clock of the operator.
    pub at_ms: u64,
    /// Its length by the clock of the host, seconds.
    pub seconds: f64,
    /// One per device that has counters.
    pub disks: Vec<DiskRates>,
}

/// What the figures of block devices say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DiskFinding {
    /// Host.
    pub host: HostName,
    /// Device, by the name of the kernel.
    pub device: String,
    /// What is wrong.
    pub what: DiskTrouble,
    /// In words, with figures.
    pub sentence: String,
}

/// What can be wrong with a block device, as far as its counters show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiskTrouble {
    /// Much slower than its equals under the same load.
    SlowAmongEquals,
    /// It has no time left.
    Saturated,
    /// It gets much more or less to do than its equals.
    Uneven,
    /// Requests are merged on the way down, so that the drives are asked less than the volume: the volume's rate is not theirs.
    Merged,
}
