//! A change of a fact: what a host had, what it has now, and between which two readings it changed. The store
//! makes it of readings of one host of one cluster; lists, `diff` and verdicts quote it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fact::{FactKey, FactValue};
use crate::inventory::HostName;
use crate::run_id::RunId;

/// Changes are quoted beside a cause up to this age before the run, milliseconds: 14 days. A cluster that is
/// surveyed at all is surveyed within two weeks: what changed earlier was there when it was last fine. The
/// list of changes has older ones.
pub const QUOTED_MS: u64 = 14 * 86_400_000;

/// What read the new value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SeenBy {
    /// A run: a survey, a watch of disks.
    Run(RunId),
    /// A reading of facts without a run.
    Facts,
    /// `linerate watch`.
    Watch,
    /// `linerate changes --follow`.
    Follow,
    /// A comparison with the kept set.
    Drift,
}

impl SeenBy {
    /// As lists name it: the run, or the command.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Run(run) => format!("run {run}"),
            Self::Facts => "facts".to_owned(),
            Self::Watch => "watch".to_owned(),
            Self::Follow => "changes --follow".to_owned(),
            Self::Drift => "drift".to_owned(),
        }
    }
}

/// A fact of a host that changed between two readings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FactChange {
    /// Host.
    pub host: HostName,
    /// Key.
    pub key: FactKey,
    /// The value before; `None` where there was none.
    pub from: Option<FactValue>,
    /// The value now; `None` where it is gone.
    pub to: Option<FactValue>,
    /// When the old value was read last, Unix milliseconds.
    pub after_ms: u64,
    /// When the new value was read first, Unix milliseconds.
    pub seen_ms: u64,
    /// What read it.
    pub seen_by: SeenBy,
    /// Who changed it, where that is known: `trial ID`, `tuned.service`, `a reboot`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
}
