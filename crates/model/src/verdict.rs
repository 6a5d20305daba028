//! The verdict in facts: what the four lines of each finding are made of, and what stands below them. Made
//! once by the reports; the same value is `summary` in JSON.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::change::Risk;
use crate::clue::Clue;
use crate::difference::Difference;
use crate::disk::DiskTrouble;
use crate::drbd::DrbdTrouble;
use crate::fact::Gap;
use crate::fact_change::FactChange;
use crate::finding::{LayerScope, LossLocation, Metric, NextTest, ReplicaLoss};
use crate::imported::Missing;
use crate::inventory::{HostName, Layer};
use crate::remark::{Overall, Remark};
use crate::run_id::RunId;
use crate::suspect::{Direction, Suspect};
use crate::trial::{Effect, TrialStatus};

/// How certain something is, in the words for people.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Certainty {
    /// Below 20 %.
    #[default]
    Unknown,
    /// 20 to 70 %.
    Possible,
    /// 70 to 95 %.
    Likely,
    /// 95 % and more.
    Certain,
}

impl Certainty {
    /// Of a probability. The borders are those of `docs/STYLE.md`.
    #[must_use]
    pub fn of(probability: f64) -> Self {
        match probability {
            p if p >= 0.95 => Self::Certain,
            p if p >= 0.7 => Self::Likely,
            p if p >= 0.2 => Self::Possible,
            _ => Self::Unknown,
        }
    }

    /// The word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Possible => "possible",
            Self::Likely => "likely",
            Self::Certain => "certain",
        }
    }
}

/// Everything at the end of a screen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// What is wrong, worst first.
    pub findings: Vec<VerdictItem>,
    /// How the whole does where nothing is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overall: Option<Overall>,
    /// What a fix achieved, where the run is compared with the state before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Difference>,
    /// Differences from the peers that explain nothing.
    pub harmless: usize,
    /// What could not be seen.
    #[serde(default, skip_serializing_if = "Unseen::is_nothing")]
    pub unseen: Unseen,
}

impl Verdict {
    /// Of what a command found without a diagnosis, and of what it could not see.
    #[must_use]
    pub fn stating(items: impl IntoIterator<Item = VerdictItem>, gaps: Vec<Gap>) -> Self {
        Self {
            findings: items.into_iter().collect(),
            unseen: Unseen { gaps, ..Unseen::default() },
            ..Self::default()
        }
    }
}

/// A document with its verdict as `summary`, as programs read it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WithVerdict<T> {
    /// The verdict.
    pub summary: Verdict,
    /// The rest.
    #[serde(flatten)]
    pub document: T,
}

/// What is wrong at one location.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VerdictItem {
    /// Where, and how much.
    pub what: VerdictSubject,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<VerdictCause>,
    /// A command that reads only and shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<HostCommand>,
    /// What to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<VerdictFix>,
    /// The measurement that decides what is still open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<NextTest>,
}

impl VerdictItem {
    /// A sentence without more: about a host, or about several.
    #[must_use]
    pub fn stated(host: Option<&str>, subject: &str, sentence: String) -> Self {
        let (host, subject) = (host.map(str::to_owned), subject.to_owned());
        Self {
            what: VerdictSubject::Stated(VerdictStatement { host, subject, sentence }),
            cause: None,
            check: None,
            fix: None,
            next: None,
        }
    }
}

/// Where something is wrong, and how much.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VerdictSubject {
    /// A located loss, or a setting.
    Loss(Box<VerdictLoss>),
    /// What is plain without a comparison: a full CPU, a slow front end, saturated drives of one host.
    Signs(Vec<Remark>),
    /// What a trial proved.
    Trial(VerdictTrial),
    /// What is wrong with a replica, or will be.
    Replica(VerdictReplica),
    /// What is wrong with a drive or a volume that was watched.
    Drive(VerdictDrive),
    /// What a command found without a diagnosis: a setting that drifted, a check that fails, dropped packets.
    Stated(VerdictStatement),
}

/// One thing that is wrong, as a sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerdictStatement {
    /// Host; `None` where it is about several, or about none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostName>,
    /// What it is about: a key, a check, a reason of drops, a suspect.
    pub subject: String,
    /// In words, with figures and with the host.
    pub sentence: String,
}

/// A trial in its heading.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VerdictTrial {
    /// Which.
    pub trial: RunId,
    /// Where it stands.
    pub status: TrialStatus,
    /// What it proved, once it is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// In words.
    pub heading: String,
}

/// An alarm of a replica.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerdictReplica {
    /// Resource.
    pub resource: String,
    /// What.
    pub trouble: DrbdTrouble,
    /// In words, with figures.
    pub sentence: String,
}

/// A finding of a watch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerdictDrive {
    /// Host.
    pub host: HostName,
    /// Drive or volume.
    pub device: String,
    /// What.
    pub trouble: DiskTrouble,
    /// In words, with figures.
    pub sentence: String,
}

/// What a loss is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossBasis {
    /// A known ceiling, or what is normal for the value.
    Ceiling,
    /// What comparable pairs reach; no ceiling is known.
    Peers,
    /// Nothing: a setting or a state was read, and no loss of it was measured.
    Reading,
}

/// A loss with its location.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VerdictLoss {
    /// Where, most probable first.
    pub locations: Vec<LossLocation>,
    /// Which layers.
    pub layer: LayerScope,
    /// In which value it shows.
    pub metric: Metric,
    /// The measured value.
    pub measured: f64,
    /// What is expected.
    pub expected: f64,
    /// What the expected value is.
    pub basis: LossBasis,
    /// Nothing gets through.
    pub is_dead: bool,
    /// Affected ordered pairs.
    pub affected: usize,
    /// Ordered pairs that were tested there.
    pub tested: usize,
    /// An affected pair: sender and receiver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pair: Option<(HostName, HostName)>,
    /// On how many hosts it was read, and how many there are, where it stands for all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_on: Option<(usize, usize)>,
    /// Other tests there were good.
    pub intermittent: bool,
    /// Which figure of a replica it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica: Option<ReplicaLoss>,
    /// How certain it is that something is wrong there.
    pub certainty: Certainty,
}

/// Why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VerdictCause {
    /// Id of the knowledge file.
    pub id: String,
    /// In a few words.
    pub title: String,
    /// How certain that it is a finding and that this is its cause.
    pub certainty: Certainty,
    /// What speaks for it, the clearest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Clue>,
    /// When a fact that speaks for it got the value that it has, where the log of changes knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<FactChange>,
}

/// A command, and where it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostCommand {
    /// Host that it speaks of; `None` for a command of this program, which runs where the operator is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostName>,
    /// As it is typed where the operator is.
    pub command: String,
}

impl HostCommand {
    /// A command of this program.
    #[must_use]
    pub fn own(command: String) -> Self {
        Self { host: None, command }
    }
}

/// What to do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerdictFix {
    /// A command of this program that tries it and puts the old values back; `None` where a person has to do
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<String>,
    /// Hosts that it changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostName>,
    /// The command, or the words, to do it by hand; empty where none is short.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by_hand: String,
    /// What it can cost.
    pub risk: Risk,
    /// The same in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub risk_text: String,
}

/// What could not be seen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Unseen {
    /// Share of each link that the tests were paced to, 0 to 1: a limit above it was not seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paced: Option<f64>,
    /// Layers with too many pairs that have no valid transfer: how many, of how many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<(Layer, usize, usize)>,
    /// Suspects that were not tested again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untested: Vec<(Suspect, Direction)>,
    /// Hosts that were lost or never reached, and all else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<Gap>,
    /// What imported evidence lacks, with the command for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Missing>,
    /// What is asked for after it, where nothing was found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked_then: Vec<Missing>,
    /// Lines of imported files that were not understood.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unread_lines: u64,
}

// Serde wants a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Unseen {
    /// Whether all was seen.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_the_borders_of_the_style_guide() {
        let words = [1.0, 0.95, 0.949, 0.7, 0.69, 0.2, 0.19, 0.0, f64::NAN].map(|p| Certainty::of(p).word());
        assert_eq!(
            words,
            [
                "certain", "certain", "likely", "likely", "possible", "possible", "unknown", "unknown",
                "unknown"
            ]
        );
    }
}
