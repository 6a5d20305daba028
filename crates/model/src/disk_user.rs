//! Who causes the load of disks: processes, control groups or users, with what they read and wrote.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Beginning of the keys of what processes read and wrote: `process_io.<pid>-<start>.<what>`. Only read when
/// asked for.
pub const PROCESS_IO: &str = "process_io.";

/// By what the load is added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DiskUserKind {
    /// Each process by itself.
    Process,
    /// All processes of a control group.
    Cgroup,
    /// All processes of a user.
    User,
}

/// One of them in an interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiskUser {
    /// Command and number of a process, path of a control group, name of a user.
    pub name: String,
    /// How many processes are in it.
    pub processes: usize,
    /// Bytes per second that storage gave it.
    pub read_bytes_per_s: f64,
    /// Bytes per second that it wrote for storage, counted when it wrote into the cache, without what it
    /// deleted before that was stored.
    pub write_bytes_per_s: f64,
}
