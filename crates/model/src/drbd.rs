//! What a host says about its replicas of DRBD.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::inventory::HostName;
use crate::step::Space;

/// What is done to a resource that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrbdMove {
    /// The primary goes to the other side.
    Failover,
    /// One side of a split brain gives up what it wrote.
    Repair,
    /// Both sides are compared.
    Verify,
}

impl DrbdMove {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Failover, Self::Repair, Self::Verify];

    /// As it stands in the name of its build.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Failover => "failover",
            Self::Repair => "repair",
            Self::Verify => "verify",
        }
    }
}

/// A resource as one host sees it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Replica {
    /// Host.
    #[serde(default)]
    pub host: HostName,
    /// Resource.
    pub resource: String,
    /// `Primary`, `Secondary`.
    pub role: String,
    /// Its devices.
    pub volumes: Vec<DrbdVolume>,
    /// Whom it replicates to. A side that stands alone has nobody.
    pub peers: Vec<Peer>,
}

/// A device of a resource.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DrbdVolume {
    /// Number in the resource.
    pub number: u32,
    /// Number of the device: 0 is `/dev/drbd0`.
    pub minor: u32,
    /// State of the own disk: `UpToDate`, `Inconsistent`, `Outdated`, `Diskless`, …
    pub disk: String,
    /// Size, KiB.
    pub size_kib: u64,
}

/// A peer of a resource.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Peer {
    /// Its name here; `peer` on 8.4.
    pub name: String,
    /// `Connected`, `Connecting`, `StandAlone`, …
    pub connection: String,
    /// `Primary`, `Secondary`, `Unknown`.
    pub role: String,
    /// The network does not take what is to be sent.
    pub congested: bool,
    /// Its devices.
    pub volumes: Vec<PeerVolume>,
}

/// A device at a peer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PeerVolume {
    /// Number in the resource.
    pub number: u32,
    /// `Established`, `SyncSource`, `SyncTarget`, `VerifyS`, `Off`, …
    pub replication: String,
    /// State of the disk there.
    pub disk: String,
    /// What differs as far as it is known, KiB.
    pub out_of_sync_kib: u64,
    /// Sent since it is connected, KiB.
    pub sent_kib: u64,
}

impl PeerVolume {
    /// Whether blocks are copied now.
    #[must_use]
    pub fn is_syncing(&self) -> bool {
        ["SyncSource", "SyncTarget", "PausedSyncS", "PausedSyncT"].contains(&self.replication.as_str())
    }
}

impl Replica {
    /// Whether every peer is connected, and there is one.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        !self.peers.is_empty() && self.peers.iter().all(|peer| peer.connection == "Connected")
    }

    /// Whether all own disks are up to date.
    #[must_use]
    pub fn is_up_to_date(&self) -> bool {
        !self.volumes.is_empty() && self.volumes.iter().all(|volume| volume.disk == "UpToDate")
    }

    /// All devices at all peers.
    pub fn peer_volumes(&self) -> impl Iterator<Item = &PeerVolume> {
        self.peers.iter().flat_map(|peer| &peer.volumes)
    }

    /// What differs from the peers as far as it is known, KiB.
    #[must_use]
    pub fn out_of_sync_kib(&self) -> u64 {
        self.peer_volumes().map(|volume| volume.out_of_sync_kib).sum()
    }
}

/// What is wrong with a resource, or will be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DrbdAlarm {
    /// Resource.
    pub resource: String,
    /// What.
    pub what: DrbdTrouble,
    /// What it follows from, where its text is written by a report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<DrbdEvidence>,
    /// In words, with figures.
    pub sentence: String,
    /// What to do.
    pub advice: String,
}

/// What is wrong with a resource that no state shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DrbdEvidence {
    /// A cause that the knowledge has.
    Cause {
        /// Host that shows it.
        host: HostName,
        /// Its title.
        title: String,
        /// Its mechanism.
        mechanism: String,
        /// Readings that it follows from, with their values.
        readings: Vec<(String, String)>,
        /// What to do, and its risk.
        remedy: Option<(String, String)>,
    },
    /// The filesystem on it is full.
    Full {
        /// Host that has it mounted.
        host: HostName,
        /// Where.
        folder: String,
        /// Its size.
        space: Space,
    },
}

/// What can be wrong with a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DrbdTrouble {
    /// Both sides were written to without each other.
    SplitBrain,
    /// The sides hold data of different origin.
    Unrelated,
    /// Blocks differ though both sides say that they are up to date.
    OutOfSync,
    /// A side works without a disk of its own.
    Diskless,
    /// No side has good data.
    NoGoodData,
    /// A side does not look for its peer any more.
    StandAlone,
    /// A side looks for its peer and does not find it.
    PeerMissing,
    /// A host has the resource in its files and not in use.
    NotUp,
    /// The network does not take what is to be sent.
    Congested,
    /// A side holds data that are not the newest.
    Behind,
    /// The filesystem on the resource has no room left.
    Full,
    /// A synchronisation runs at the limit that was set for it.
    ResyncThrottled,
    /// The activity log covers so little that writes wait for notes on the disk.
    SmallActivityLog,
    /// Writes are kept in order by barriers.
    Barriers,
}
