//! What a watch reports: an alarm of loss, and the events of a watch in the order in which they happen.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::download::DownloadSeen;
use crate::inventory::HostName;
use crate::notice::FactNotice;
use crate::slow::{DownloadSuspect, SlowAlarm, SlowOf};
use crate::suspect::{Direction, Suspect};
use crate::throughput::ThroughputRound;

/// Something loses more than is normal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LossAlarm {
    /// Its number in this watch, from 1.
    pub id: u64,
    /// What loses.
    pub suspect: Suspect,
    /// Which direction of its traffic; of a pair, what the first sends to the second.
    pub direction: Direction,
    /// The first loss, Unix milliseconds.
    pub since_ms: u64,
    /// When it was reported, Unix milliseconds.
    pub reported_ms: u64,
    /// Probes that were lost since.
    pub lost: u64,
    /// Probes that were sent since.
    pub sent: u64,
    /// Hosts with which it was seen.
    pub partners: usize,
}

impl LossAlarm {
    /// The share that is lost, 0 to 1.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.lost as f64 / self.sent.max(1) as f64
    }
}

/// An alarm of a watch. Without a tag: an object of a loss was all that was stored before there were others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum WatchAlarm {
    /// Something loses.
    Loss(LossAlarm),
    /// Something is slow.
    Slow(SlowAlarm),
}

impl WatchAlarm {
    /// Its number in its watch, from 1.
    #[must_use]
    pub fn id(&self) -> u64 {
        match self {
            Self::Loss(alarm) => alarm.id,
            Self::Slow(alarm) => alarm.id,
        }
    }

    /// When it was seen first, Unix milliseconds.
    #[must_use]
    pub fn since_ms(&self) -> u64 {
        match self {
            Self::Loss(alarm) => alarm.since_ms,
            Self::Slow(alarm) => alarm.since_ms,
        }
    }

    /// When it was reported, Unix milliseconds.
    #[must_use]
    pub fn reported_ms(&self) -> u64 {
        match self {
            Self::Loss(alarm) => alarm.reported_ms,
            Self::Slow(alarm) => alarm.reported_ms,
        }
    }

    /// Where between hosts it is; `None` for downloads, which have a front end.
    #[must_use]
    pub fn suspect(&self) -> Option<&Suspect> {
        match self {
            Self::Loss(alarm) => Some(&alarm.suspect),
            Self::Slow(SlowAlarm { of: SlowOf::Rtt(suspect), .. }) => Some(suspect),
            Self::Slow(SlowAlarm { of: SlowOf::Download(_), .. }) => None,
        }
    }

    /// Which downloads it is of; `None` where it is between hosts.
    #[must_use]
    pub fn downloads(&self) -> Option<&DownloadSuspect> {
        match self {
            Self::Slow(SlowAlarm { of: SlowOf::Download(downloads), .. }) => Some(downloads),
            _ => None,
        }
    }
}

/// What happens in a watch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum WatchEvent {
    /// A host is watched from now on, again after a gap.
    Watched {
        /// Which.
        host: HostName,
        /// For how long it was not, milliseconds; `None` the first time.
        gap_ms: Option<u64>,
    },
    /// The session with a host has ended: until it is watched again nothing is known.
    Gap {
        /// Which.
        host: HostName,
        /// Why.
        reason: String,
    },
    /// A setting changed.
    Changed {
        /// On this host.
        host: HostName,
        /// What, and who did it.
        notice: FactNotice,
    },
    /// Something loses.
    Opened {
        /// What.
        alarm: LossAlarm,
        /// Settings that changed within the half hour before it: the suspect's own first, newest first.
        changes: Vec<ChangeBefore>,
    },
    /// It was measured: flows of datagrams with and without the suspect.
    Measured {
        /// What it is now.
        alarm: LossAlarm,
        /// Settings that changed within the half hour before it: the suspect's own first, newest first.
        changes: Vec<ChangeBefore>,
        /// What the flows showed.
        decided: DecidedLoss,
    },
    /// It is more than was reported.
    Widened {
        /// What it is now.
        alarm: LossAlarm,
    },
    /// It is over.
    Closed {
        /// What it was.
        alarm: LossAlarm,
    },
    /// What was downloaded in a round.
    Downloaded {
        /// Each host, URL and front end.
        seen: Vec<DownloadSeen>,
    },
    /// What a round of throughput showed.
    Throughput {
        /// It.
        round: ThroughputRound,
    },
    /// Something has become slow; the same number again: it is more than was reported.
    Slowed {
        /// What.
        alarm: SlowAlarm,
        /// Settings that changed within the half hour before it: the suspect's own first, newest first.
        changes: Vec<ChangeBefore>,
    },
    /// RTTs that have risen were measured: requests and answers with and without the suspect.
    Remeasured {
        /// What it is now, with what was measured.
        alarm: SlowAlarm,
        /// Settings that changed within the half hour before it: the suspect's own first, newest first.
        changes: Vec<ChangeBefore>,
    },
    /// It is as fast as usual again.
    Recovered {
        /// What it was.
        alarm: SlowAlarm,
    },
}

/// What a measurement shows of an alarm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossVerdict {
    /// The suspect loses more than the control pair, beyond chance.
    Confirmed,
    /// The suspect loses, and the control pair too.
    ControlLosesToo,
    /// Neither lost more than is normal while it was measured.
    NotSeen,
    /// It could not be measured.
    NotMeasured,
}

/// The measurement that follows an alarm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DecidedLoss {
    /// What it shows.
    pub verdict: LossVerdict,
    /// Flows with the suspect.
    pub flows: Vec<DecidingFlow>,
    /// Flows without it.
    pub controls: Vec<DecidingFlow>,
    /// Why a flow was not measured; empty where all were.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// A flow of datagrams from one host to another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DecidingFlow {
    /// Sender.
    pub from: HostName,
    /// Receiver.
    pub to: HostName,
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams of them that did not arrive.
    pub lost: u64,
}

/// A change that came before an alarm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangeBefore {
    /// On this host.
    pub host: HostName,
    /// What, and who did it.
    pub notice: FactNotice,
}

/// What a watch did, at its end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WatchTotals {
    /// Hosts that were watched.
    pub hosts: usize,
    /// Datagrams of probes that arrived or should have.
    pub probes: u64,
    /// Those of them that did not arrive.
    pub lost: u64,
    /// Alarms.
    pub alarms: u64,
    /// Sessions that ended before the watch did.
    pub gaps: u64,
    /// Settings that changed.
    pub changes: u64,
}
