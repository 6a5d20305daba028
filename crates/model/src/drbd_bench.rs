//! What a bench of a replica measures: the replica, its local disk, the patterns of load.

use std::time::Duration;

use crate::disk_load::{DiskPhase, DiskTarget, Durable};
use crate::inventory::HostName;
use crate::snapshot::StoragePattern;

/// Where the local disk is measured.
#[derive(Debug, Clone, PartialEq)]
pub enum LocalDisk {
    /// The same file, while the primary is disconnected from its peer.
    SameFile,
    /// A file or a device that the operator named.
    Beside(DiskTarget),
    /// Not at all.
    Skipped,
}

/// What is measured.
#[derive(Debug, Clone, PartialEq)]
pub struct BenchRequest {
    /// Resource.
    pub resource: String,
    /// Host that may write.
    pub primary: HostName,
    /// Host that it replicates to.
    pub peer: HostName,
    /// Where on the replica.
    pub replica: DiskTarget,
    /// Where beside it.
    pub local: LocalDisk,
    /// Rounds.
    pub rounds: u32,
    /// Longest time of each test.
    pub time: Duration,
}

/// The tests on disks: what streams, what is random, and what is waited for one by one.
pub const PHASES: [(StoragePattern, DiskPhase); 3] = [
    (StoragePattern::Write, phase(false, 1 << 20, 8, Durable::Never)),
    (StoragePattern::RandomWrite, phase(true, 4 << 10, 16, Durable::Never)),
    (StoragePattern::SyncWrite, phase(false, 4 << 10, 1, Durable::Data(1))),
];

const fn phase(random: bool, block_bytes: u32, depth: u16, durable: Durable) -> DiskPhase {
    DiskPhase { random, reads: 0, block_bytes, depth, threads: 1, direct: true, durable, batch: 1 }
}
