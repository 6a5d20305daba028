//! Block devices: what they are, and what they did in an interval.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::inventory::HostName;

/// Counters of a block device in the order of `/proc/diskstats` behind its name, as they are called in keys
/// (`disk.<dev>.stat.<name>`); the kernel's `Documentation/admin-guide/iostats.rst` says what they mean. All
/// grow, but `in_flight`. Older kernels end after 11 or 15 of them.
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

/// What counters of the times of requests begin with: `disk_time.<dev>.<direction>.<from>-<to>`, requests
/// that took from so many to so many nanoseconds; directions are `read`, `write`, `discard`, `flush`. They
/// come from the tracepoints of the kernel and are counted only for who asks for this prefix, from then on
/// until the session ends.
pub const TIMES: &str = "disk_time.";

/// What a block device is, as far as it matters for what its figures mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DiskKind {
    /// A drive with one set of heads: it works on one request at a time.
    Rotating,
    /// A drive without moving parts, a virtual one, or one of which nothing is known: it may work on many
    /// requests at a time.
    Solid,
    /// A part of another device.
    Partition,
    /// An array of md.
    Array,
    /// A volume of the device mapper: LVM, encryption, multipath.
    Volume,
    /// Several paths to one drive: of the device mapper, or of NVMe itself.
    Multipath,
    /// A device that DRBD replicates.
    Replicated,
    /// A file as a device, or memory.
    Made,
}

/// A block device of a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// Legs of it that failed: by the name of the kernel, or by their place from 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
    /// Legs of it that are being filled with what they have to hold: named as those that failed; of DRBD the
    /// devices of its own side.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rebuilding: Vec<String>,
}

impl Disk {
    /// What people call it, and the name of the kernel behind it where that is another.
    #[must_use]
    pub fn called(&self) -> String {
        if self.name == self.device {
            return self.device.clone();
        }
        format!("{} ({})", self.name, self.device)
    }
}

/// How long requests of one direction took from being handed to the driver of the device until they ended:
/// without their time in a scheduler before, which a mean of the kernel contains. Percentiles are within 13
/// %, the longest at most as long as it says and at least 0.8 of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiskTimes {
    /// Requests that were counted.
    pub requests: u64,
    /// Half of them took at most so long, milliseconds.
    pub p50_ms: f64,
    /// 90 of 100 took at most so long, milliseconds.
    pub p90_ms: f64,
    /// 99 of 100 took at most so long, milliseconds.
    pub p99_ms: f64,
    /// All of them took at most so long, milliseconds.
    pub max_ms: f64,
}

/// What went through a device in one direction, per second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// How long single requests took; `None` without requests, for devices without a queue of their own, and
    /// where the kernel does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<DiskTimes>,
}

/// What a device did in an interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// How long single flushes took, as [`DiskTraffic::times`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flush_times: Option<DiskTimes>,
    /// Requests under way, mean.
    pub queue: f64,
    /// Share of the time in which at least one request was under way, 0 to 1. Being busy all the time means
    /// that nothing is left only for a device that works on one request at a time.
    pub busy: f64,
}

impl DiskRates {
    /// The longest request of all directions, at most so long, milliseconds.
    #[must_use]
    pub fn longest_ms(&self) -> Option<f64> {
        let all = [self.read.times, self.write.times, self.discard.times, self.flush_times];
        all.iter().flatten().map(|times| times.max_ms).reduce(f64::max)
    }

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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiskInterval {
    /// Host.
    pub host: HostName,
    /// Its end, milliseconds since 1970, by the clock of the operator.
    pub at_ms: u64,
    /// Its length by the clock of the host, seconds.
    pub seconds: f64,
    /// One per device that has counters.
    pub disks: Vec<DiskRates>,
    /// Why no device of this host has [`DiskTimes`], where it is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times_missing: Option<String>,
}

/// What the figures of block devices show, as facts; its text is written by the reports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiskFinding {
    /// Host.
    pub host: HostName,
    /// Device, by the name of the kernel.
    pub device: String,
    /// What is wrong.
    pub what: DiskTrouble,
    /// What it follows from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<DiskEvidence>,
    /// In words, with figures; empty until a report writes it.
    #[serde(default)]
    pub sentence: String,
}

/// What a finding follows from; devices have the names that people know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DiskEvidence {
    /// [`DiskTrouble::Degraded`].
    Degraded {
        /// The array or volume.
        volume: String,
        /// The leg that failed.
        leg: DiskLeg,
        /// What has the array or volume, and its name there.
        repair: DiskRepair,
    },
    /// [`DiskTrouble::Rebuilding`].
    Rebuilding {
        /// The array, volume or replica.
        volume: String,
        /// What of it is being filled.
        filled: FilledLegs,
    },
    /// [`DiskTrouble::SlowAmongEquals`].
    Slow {
        /// The drive.
        drive: String,
        /// The device above it and its equals.
        of: String,
        /// How many equals.
        others: usize,
        /// Whether its writes are slow, else its reads.
        writes: bool,
        /// Of a request, and of one of its equals under the same load, ms.
        wait_ms: (f64, f64),
        /// 99 of 100 requests take at most so long, and those of its equals, ms.
        p99_ms: Option<(f64, f64)>,
        /// Intervals that show it, and all.
        intervals: (usize, usize),
    },
    /// [`DiskTrouble::Saturated`].
    Saturated {
        /// The drive.
        drive: String,
        /// Share of the time, 0 to 1.
        busy: f64,
        /// Reads per second.
        reads_per_s: f64,
        /// Writes per second.
        writes_per_s: f64,
        /// Requests that were merged into these, per second.
        merged_per_s: f64,
    },
    /// [`DiskTrouble::Uneven`].
    Uneven {
        /// The drive.
        drive: String,
        /// The device above it and its equals.
        of: String,
        /// Its writes per second, and the usual ones of its equals.
        writes_per_s: (f64, f64),
    },
    /// [`DiskTrouble::Merged`].
    Merged {
        /// The array or volume.
        volume: String,
        /// How many drives it stands on.
        drives: usize,
        /// Requests to it, per second.
        asked_per_s: f64,
        /// Requests to its drives, per second.
        reached_per_s: f64,
        /// Requests that were merged into these, per second.
        merged_per_s: f64,
    },
}

impl DiskEvidence {
    /// What it is evidence of.
    #[must_use]
    pub fn trouble(&self) -> DiskTrouble {
        match self {
            Self::Degraded { .. } => DiskTrouble::Degraded,
            Self::Rebuilding { .. } => DiskTrouble::Rebuilding,
            Self::Slow { .. } => DiskTrouble::SlowAmongEquals,
            Self::Saturated { .. } => DiskTrouble::Saturated,
            Self::Uneven { .. } => DiskTrouble::Uneven,
            Self::Merged { .. } => DiskTrouble::Merged,
        }
    }
}

/// A leg of an array or volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DiskLeg {
    /// Its drive.
    Drive(String),
    /// Its number from 0, where the drive is unknown.
    Number(String),
}

/// What a leg of an array or volume is replaced with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DiskRepair {
    /// An array of md, by the name of the kernel.
    Mdadm(String),
    /// A volume of LVM, by its name there.
    Lvm(String),
}

/// Legs that are being filled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FilledLegs {
    /// This side of a replica, from its peer.
    Side,
    /// One.
    One(DiskLeg),
    /// All that are left, in line with each other.
    All,
    /// So many; a spare that waits may be among them.
    Several(usize),
}

/// A finding of a watch, with the time in which it held.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiskEpisodes {
    /// What is wrong, with the figures of the last judgement in which it held.
    #[serde(flatten)]
    pub finding: DiskFinding,
    /// Begin of the first interval that shows it, milliseconds since 1970 by the clock of the operator.
    pub since_ms: u64,
    /// End of the last interval that shows it.
    pub last_ms: u64,
    /// Whether it held at the end of the watch, or of what is known of the host.
    pub open: bool,
    /// How often it began.
    pub times: u32,
    /// Length of all episodes together, seconds.
    pub seconds: f64,
}

/// What can be wrong with a block device, as far as its counters show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DiskTrouble {
    /// A leg of an array or volume that failed: everything goes on without it, and with one copy less.
    Degraded,
    /// A leg of an array, volume or replica that is being filled with what it has to hold: until then there
    /// is one copy less, and legs do not carry the same. Or all legs, which are brought in line with each
    /// other: until then they are not proven equal.
    Rebuilding,
    /// Much slower than its equals under the same load.
    SlowAmongEquals,
    /// It has no time left.
    Saturated,
    /// It gets much more or less to do than its equals.
    Uneven,
    /// Requests are merged on the way down, so that the drives are asked less than the volume: the volume's
    /// rate is not theirs.
    Merged,
}
