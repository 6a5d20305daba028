//! All observations of one run. Immutable: a later run has this one as parent.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::announced::Announcement;
use crate::disk::DiskInterval;
use crate::fact::{Gap, HostFacts};
use crate::fact_change::FactChange;
use crate::imported::Imported;
use crate::inventory::{HostName, Inventory};
use crate::outlier::StoredSeries;
use crate::path_methods::PathMethods;
use crate::run_id::RunId;
use crate::sample::Sample;

/// All observations of one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Snapshot {
    /// [`crate::SCHEMA`] of the writer.
    pub schema: u32,
    /// This run.
    pub id: RunId,
    /// The run that this one repeats or follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<RunId>,
    /// Start, Unix milliseconds.
    #[serde(default)]
    pub start_ms: u64,
    /// Who was asked.
    pub inventory: Inventory,
    /// Facts by host.
    #[serde(default)]
    pub facts: BTreeMap<HostName, HostFacts>,
    /// What changed on its hosts in the 14 days before it was over, by the log of the store: the newest
    /// change of each fact.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FactChange>,
    /// Tests with their results, in the order in which they ended.
    #[serde(default)]
    pub samples: Vec<Sample>,
    /// Disk and replication figures of imported evidence, by a free name.
    #[serde(default)]
    pub storage: Vec<StorageFigure>,
    /// What block devices did while they were watched, in the order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<DiskInterval>,
    /// Counters that were watched over a time, at several hosts in the same intervals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub watched: Vec<CounterWatch>,
    /// What a time series database stored of the hosts, in the same intervals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stored: Vec<StoredSeries>,
    /// What could not be seen at all.
    #[serde(default)]
    pub gaps: Vec<Gap>,
    /// What the time budget left out.
    #[serde(default)]
    pub left_out: Vec<String>,
    /// The load that was announced before the measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub announced: Option<Box<Announcement>>,
    /// Methods of the transfers over fast paths; all others are made by the plain ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<PathMethods>,
    /// Where it comes from, when it was not measured by us but read from what others measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(alias = "foreign")]
    pub imported: Option<Box<Imported>>,
}

/// A counter of a host over a time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CounterWatch {
    /// Host.
    pub host: HostName,
    /// Key of the counter.
    pub key: String,
    /// Length of an interval, seconds.
    pub every_s: f64,
    /// Growth in each interval; the same intervals for all hosts.
    pub growth: Vec<f64>,
}

/// What a figure of storage was measured on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StorageSubject {
    /// A disk alone.
    #[default]
    LocalDisk,
    /// A replica.
    Replicated,
    /// The transport between its hosts.
    Transport,
    /// One block device under whatever load there was.
    Device,
    /// A replica that is brought up to date.
    Resync,
}

/// How it was loaded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StoragePattern {
    /// Random reads.
    RandomRead,
    /// Random writes.
    RandomWrite,
    /// Sequential reads.
    Read,
    /// The RTT of a transport.
    RoundTrip,
    /// Bytes over a transport.
    Stream,
    /// Writes that are waited for one by one.
    SyncWrite,
    /// Sequential writes.
    #[default]
    Write,
}

impl StoragePattern {
    /// Whether it reads.
    #[must_use]
    pub fn is_read(self) -> bool {
        matches!(self, Self::Read | Self::RandomRead)
    }

    /// Whether it writes.
    #[must_use]
    pub fn is_write(self) -> bool {
        matches!(self, Self::Write | Self::RandomWrite | Self::SyncWrite)
    }

    /// Whether it jumps about.
    #[must_use]
    pub fn is_random(self) -> bool {
        matches!(self, Self::RandomRead | Self::RandomWrite)
    }
}

impl std::fmt::Display for StorageSubject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.serialize(f)
    }
}

impl std::fmt::Display for StoragePattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.serialize(f)
    }
}

/// One figure of storage or of the transport under it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StorageFigure {
    /// On which host, or empty when it stands for all.
    #[serde(default)]
    pub host: String,
    /// What was measured.
    pub what: StorageSubject,
    /// Name of the variant, such as the transport: `ipoib`, `sdp`.
    #[serde(default)]
    pub variant: String,
    /// How.
    pub pattern: StoragePattern,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Requests per second that reached the device, after merging.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_s: Option<f64>,
    /// Requests per second that were merged into others before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged_per_s: Option<f64>,
    /// Mean time of a request from its queueing to its end, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<f64>,
    /// Share of the time in which the device had something to do, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy: Option<f64>,
}
