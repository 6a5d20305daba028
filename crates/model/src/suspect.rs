//! Where a loss sits, and which traffic of it suffers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fact::FactKey;
use crate::inventory::{GroupName, HostName};

/// Where the loss sits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Suspect {
    /// One host.
    Host(HostName),
    /// Everything that enters or leaves a group (its uplink, its machine, its switch).
    Group(GroupName),
    /// Traffic from one group to another.
    GroupToGroup(GroupName, GroupName),
    /// Traffic from one host to another.
    Pair(HostName, HostName),
    /// Pairs whose ends differ in this fact; the hosts are the minority.
    Mismatch(FactKey, Vec<HostName>),
    /// One block device of a host, by the name of the kernel.
    Drive(HostName, String),
    /// Every pair: a default, a policy of the network.
    All,
}

/// Which direction of the suspect's traffic suffers.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// What it sends.
    Tx,
    /// What it receives.
    Rx,
    /// Both.
    #[default]
    Both,
}

/// A host that retransmits under load only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AtRest {
    /// Host.
    pub host: HostName,
    /// Segments a day while nothing is tested.
    pub per_day: f64,
}
