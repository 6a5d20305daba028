//! The kept set on the hosts of a cluster, and what became of it: which value was kept, which is in force,
//! and which one the files of the host give after a boot.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fact::{FactKey, FactValue};
use crate::fact_change::FactChange;
use crate::inventory::HostName;

/// Beginning of the keys of facts about files: `boot.<n>.<key>` is the n-th assignment of a boot, a list of
/// owner, file with line, and value.
pub const BOOT: &str = "boot.";
/// Whether the files were read.
pub const BOOT_READ: &str = "boot.read";

/// Identifier of the remedy of a trial that put kept settings back.
pub const PUT_BACK: &str = "put-back";

/// Shortest time between two times that the same setting of a host is put back, milliseconds: 1 h. An owner
/// that writes a setting again within it is a second owner; a loop of both would do more harm than the drift.
pub const PUT_BACK_MS: u64 = 3_600_000;

/// What is done about a kept setting that drifted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DriftPolicy {
    /// It is reported.
    #[default]
    Report,
    /// It is reported with the command that puts it back.
    Propose,
    /// `linerate drift --put-back` puts it back.
    PutBack,
}

/// A setting of the kept set on one host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KeptSetting {
    /// Host.
    pub host: HostName,
    /// Setting.
    pub key: FactKey,
    /// Value that was kept.
    pub value: FactValue,
    /// What is done where it drifted.
    pub policy: DriftPolicy,
    /// The trial that proved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<String>,
    /// The profile that was chosen for its cohort, where no trial or setting names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Line of the file of the kept set.
    pub line: usize,
}

/// What became of a kept setting, the worst last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DriftState {
    /// The kept value is in force, and the files of the host give it after a boot, where they were read.
    Same,
    /// The value in force could not be read.
    Unreadable,
    /// The kept value is in force, and the files of the host do not give it after a boot.
    WillNotSurvive,
    /// Another value is in force.
    Drifted,
}

/// A line of a file that sets a value at boot.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct OwnerLine {
    /// Who reads the file: `sysctl.d`, `link`, `tuned`.
    pub owner: String,
    /// File and line: `/etc/sysctl.d/90-linerate.conf:3`.
    pub at: String,
    /// Value that it sets.
    pub value: FactValue,
}

/// A kept setting of a host beside what is in force.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DriftRow {
    /// What was kept.
    #[serde(flatten)]
    pub kept: KeptSetting,
    /// What became of it.
    pub state: DriftState,
    /// Value in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now: Option<FactValue>,
    /// Why the value in force, or what the files give after a boot, could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The line that decides the value after a boot; absent where no file of a known owner sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot: Option<OwnerLine>,
    /// Whether the files of the host were read, and all lines that may set it were understood.
    pub boot_read: bool,
    /// When the value in force came to be, where the log of changes knows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<FactChange>,
    /// Lines that set another value than the kept one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub against: Vec<OwnerLine>,
    /// Whether two owners fight: one file sets the kept value and that of another owner does not, or a value
    /// that was put back within the last hour is another one again.
    pub fight: bool,
    /// When it was put back last, within the last hour, Unix milliseconds; also where that was undone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub put_back_ms: Option<u64>,
}
