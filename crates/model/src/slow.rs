//! What a watch finds slower than it was, or than its peers: RTTs, downloads.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::download::DownloadPath;
use crate::inventory::HostName;
use crate::suspect::Suspect;

/// Something has become slow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlowAlarm {
    /// Its number in this watch, from 1; losses are counted with it.
    pub id: u64,
    /// What is slow.
    pub of: SlowOf,
    /// When it was seen first, Unix milliseconds.
    pub since_ms: u64,
    /// When it was reported, Unix milliseconds.
    pub reported_ms: u64,
    /// What it should be, in the unit of what is slow.
    pub usual: f64,
    /// What it is.
    pub now: f64,
    /// What is usual: what peers reach, or what it was before.
    pub usual_of: UsualOf,
    /// Pairs or downloads with which it was seen.
    pub seen_with: usize,
    /// Why downloads fail, where they do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// What a measurement showed; `None` until there was one, and of downloads, which are measurements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<DecidedRtt>,
}

/// The measurement that follows an alarm of RTTs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DecidedRtt {
    /// What it shows.
    pub verdict: RttVerdict,
    /// A pair of the suspect.
    pub pairs: Vec<DecidingRtt>,
    /// One without it.
    pub controls: Vec<DecidingRtt>,
    /// Why a pair was not measured; empty where all were.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

impl DecidedRtt {
    /// Without a measurement: why.
    #[must_use]
    pub fn unmeasured(reason: String) -> Self {
        Self { verdict: RttVerdict::NotMeasured, pairs: Vec::new(), controls: Vec::new(), reason }
    }
}

/// What a measurement shows of an alarm of RTTs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RttVerdict {
    /// The RTT of the suspect has risen more than that of the control pair.
    Confirmed,
    /// Both have risen.
    ControlRoseToo,
    /// It is as usual while it was measured.
    NotSeen,
    /// It could not be measured.
    NotMeasured,
}

/// RTTs of requests and answers from one host to another and back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DecidingRtt {
    /// Who asked.
    pub from: HostName,
    /// Who answered.
    pub to: HostName,
    /// What is usual for the pair by its probes, microseconds.
    pub usual_us: f64,
    /// The median, microseconds.
    pub rtt_us: f64,
}

/// What is slow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SlowOf {
    /// RTTs of a suspect, microseconds. A probe and its answer pass both directions.
    Rtt(Suspect),
    /// Downloads, bit/s.
    Download(DownloadSuspect),
}

/// Downloads that share something; each that is not named is every one of the inventory's table.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct DownloadSuspect {
    /// The host that downloads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostName>,
    /// The URL, without what stands behind its path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The front end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
}

/// With what a slow value is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UsualOf {
    /// The same through the best other front end, in the same round.
    Peers,
    /// What it was itself.
    Before,
}

impl DownloadSuspect {
    /// Whether a path is one of its own.
    #[must_use]
    pub fn has(&self, path: &DownloadPath) -> bool {
        let is = |common: &Option<String>, own: &String| common.as_ref().is_none_or(|common| common == own);
        is(&self.host, &path.host) && is(&self.url, &path.url) && is(&self.via, &path.via)
    }
}

impl SlowAlarm {
    /// How many times slower it is than usual; a download that fails has no number.
    #[must_use]
    pub fn times(&self) -> Option<f64> {
        let (worse, better) = match self.of {
            SlowOf::Rtt(_) => (self.now, self.usual),
            SlowOf::Download(_) => (self.usual, self.now),
        };
        (better > 0.0).then(|| worse / better)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slower_is_a_longer_rtt_or_a_smaller_rate() {
        let alarm = |of, usual, now| SlowAlarm {
            id: 1,
            of,
            since_ms: 0,
            reported_ms: 0,
            usual,
            now,
            usual_of: UsualOf::Before,
            seen_with: 1,
            failure: None,
            decided: None,
        };
        let download = || SlowOf::Download(DownloadSuspect::default());
        assert_eq!(alarm(SlowOf::Rtt(Suspect::All), 100.0, 300.0).times(), Some(3.0));
        assert_eq!(alarm(download(), 300.0, 100.0).times(), Some(3.0));
        assert_eq!(alarm(download(), 300.0, 0.0).times(), None);
    }
}
