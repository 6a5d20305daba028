//! Probes between hosts that are watched: what a node is reported, and what it counts.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Ports from which a host probes in turn: switches choose one of several paths by the port.
pub const PROBE_PORTS: usize = 4;

/// Partners of one host at most; a node refuses more.
pub const PARTNERS_MAX: usize = 64;

/// Probes that one partner is sent each second at most; a node refuses more.
pub const PER_S_MAX: f64 = 10.0;

/// How long probes may be sent faster, milliseconds; a node refuses more.
pub const FASTER_MS_MAX: u32 = 120_000;

/// RTTs that a node reports of one partner at a time at most; the operator reads no more.
pub const RTTS_MAX: usize = 256;

/// What a node is asked about probes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeRequest {
    /// Answer probes until the session ends. Answered by a report with the ports.
    Begin(ProbeSpec),
    /// Probe these from now on, and no others.
    Partners {
        /// Whom.
        partners: Vec<ProbePartner>,
    },
    /// Send more for some time.
    Faster {
        /// Probes to each partner, each second.
        per_s: f64,
        /// For so long, milliseconds.
        for_ms: u32,
    },
    /// What was counted so far; waits until something is lost, at most ten seconds.
    Counts,
}

/// Where and as whom a node answers probes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeSpec {
    /// Own address.
    pub bind: IpAddr,
    /// Namespace inside the host in which the address lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netns: Option<PathBuf>,
    /// Secret of this watch: 16 random bytes. A datagram that does not show it is passed over.
    pub token: [u8; 16],
    /// Number of the host in this watch.
    pub number: u32,
}

/// Another host that is probed, and probes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProbePartner {
    /// Its number in this watch.
    pub number: u32,
    /// Where it answers, [`PROBE_PORTS`] of them.
    pub at: Vec<SocketAddr>,
}

/// What a node has counted since it began.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeReport {
    /// Ports on which it answers.
    pub ports: Vec<u16>,
    /// From each partner that it has now.
    pub partners: Vec<PartnerCounts>,
}

/// What came from one partner.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PartnerCounts {
    /// Its number in this watch.
    pub number: u32,
    /// Datagrams that arrived: probes and answers.
    pub arrived: u64,
    /// Datagrams that did not: numbers that were left out, and while a partner is silent what is due. Less
    /// again when its next number shows that it had sent less.
    pub lost: u64,
    /// RTTs since the last report, without the time in which the partner held the probe: microseconds,
    /// ascending, at most [`RTTS_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rtts_us: Vec<u32>,
}
