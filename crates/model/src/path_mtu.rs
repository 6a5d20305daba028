//! Which packet sizes a path takes in each direction.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Answer to the path MTU probes of one size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MtuProbe {
    /// IP packet size.
    pub bytes: u32,
    /// Probes sent.
    pub sent: u8,
    /// Probes answered.
    pub answered: u8,
    /// The sending kernel refused (EMSGSIZE) and knows this path MTU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused_mtu: Option<u32>,
}

/// What was found in one direction.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SizeLimit {
    /// Largest IP packet that arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest_passing: Option<u32>,
    /// Smallest one that did not, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest_failing: Option<u32>,
    /// The sending kernel refused it: it knows this path MTU, from its own interface or from a router's
    /// message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused_mtu: Option<u32>,
    /// All sizes that were tried, in order.
    #[serde(default)]
    pub probes: Vec<MtuProbe>,
}

impl SizeLimit {
    /// Packets above the limit leave the sender and vanish without a word: a black hole.
    pub fn is_black_hole(&self) -> bool {
        self.largest_passing.is_some()
            && self.smallest_failing.is_some_and(|bytes| {
                self.probes
                    .iter()
                    .any(|p| p.bytes == bytes && p.sent > 0 && p.answered == 0 && p.refused_mtu.is_none())
            })
    }
}

/// Both directions of a path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PathMtu {
    /// From sender to receiver.
    pub forward: SizeLimit,
    /// From receiver to sender.
    pub backward: SizeLimit,
}
