//! What a pair of hosts should reach, and what that is computed from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fact::FactKey;
use crate::inventory::HostName;

/// What a term of a ceiling comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TermName {
    /// Nothing is known.
    #[default]
    #[serde(rename = "")]
    Unknown,
    /// One CPU.
    Core,
    /// The link of a host.
    Link,
    /// The rate that the tests were paced to.
    Pace,
    /// The PCIe lanes of a NIC.
    Pcie,
    /// A guess: what pairs of the same kind reach.
    Peers,
    /// The measuring tool itself.
    Tool,
    /// The uplink of a group.
    Uplink,
    /// The TCP window.
    Window,
}

/// What a term of a ceiling is computed from.
#[derive(Debug, Clone, PartialEq)]
pub enum TermBasis {
    /// The link of a host.
    Link {
        /// Host.
        host: HostName,
        /// NIC whose rate was read; `None` where the inventory has the rate.
        nic: Option<String>,
        /// Rate, bit/s.
        bps: f64,
        /// Share that is payload.
        payload: f64,
    },
    /// The uplink of a group.
    Uplink {
        /// The group, or its machine where the rate was read there.
        of: String,
        /// NIC of the machine.
        nic: Option<String>,
        /// Rate, bit/s.
        bps: f64,
        /// Share that is payload.
        payload: f64,
    },
    /// The PCIe lanes of a NIC.
    Pcie {
        /// Host.
        host: HostName,
        /// NIC.
        nic: String,
        /// How many lanes.
        lanes: f64,
        /// GT/s of each.
        gts: f64,
    },
    /// The rate that the tests were paced to, bit/s.
    Pace(f64),
    /// What pairs of the same kind reach: no rate is known.
    Peers,
    /// The load of the tool itself, over the loopback of the weaker host.
    Tool {
        /// Host.
        host: HostName,
        /// What it reaches, bit/s.
        bps: f64,
    },
    /// A window over the loaded RTT.
    Window {
        /// Host.
        host: HostName,
        /// Setting that limits it.
        key: FactKey,
        /// Window that it allows, bytes.
        bytes: f64,
        /// RTT, us.
        rtt_us: f64,
    },
    /// The busiest CPU of an end.
    Core {
        /// That of the sender, else of the receiver.
        sends: bool,
        /// Share of the time.
        busy: f64,
        /// What it carried, bit/s.
        bps: f64,
    },
}

/// One term of a ceiling.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CeilingTerm {
    /// What it comes from.
    pub name: TermName,
    /// bit/s of TCP payload.
    pub bps: f64,
    /// What it is computed from. Not stored: a matrix has many, and `why` holds the same.
    #[serde(skip)]
    pub basis: Option<TermBasis>,
    /// The same in one line; empty until a report writes it.
    pub why: String,
}

/// What a pair should reach: the smallest of its terms.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ceiling {
    /// bit/s of TCP payload; `None` when nothing is known.
    pub bps: Option<f64>,
    /// The binding term.
    pub binding: TermName,
    /// All terms, smallest first.
    pub terms: Vec<CeilingTerm>,
}

impl Ceiling {
    /// Whether it is no more than what peers happened to reach.
    #[must_use]
    pub fn is_guess(&self) -> bool {
        self.binding == TermName::Peers
    }

    /// bit/s where it is no guess.
    #[must_use]
    pub fn known_bps(&self) -> Option<f64> {
        self.bps.filter(|_| !self.is_guess())
    }
}
