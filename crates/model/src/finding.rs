//! What a diagnosis finds, as facts; its texts are written by the reports.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::advice::Advice;
pub use crate::ceiling::{Ceiling, CeilingTerm, TermBasis, TermName};
use crate::change::Remedy;
pub use crate::clue::{Clue, FactHit};
use crate::fact::{FactKey, FactValue, Gap};
use crate::imported::Missing;
use crate::inventory::{GroupName, HostName, Layer};
use crate::plan::Test;
use crate::remark::{Refused, Remark, Summary};
pub use crate::suspect::{AtRest, Direction, Suspect};
use crate::units::MetricUnit;

/// Which layers suffer.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum LayerScope {
    /// All that were measured.
    #[default]
    Any,
    /// Only this one, while another one was measured and is fine.
    Only(Layer),
}

/// In which measured value the loss shows.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// TCP throughput.
    #[default]
    Throughput,
    /// UDP datagrams lost.
    Loss,
    /// Retransmitted segments.
    Retransmits,
    /// RTT on an idle path.
    RttIdle,
    /// RTT while the path is loaded.
    RttLoaded,
    /// Reordered or duplicated datagrams.
    Reordering,
    /// How late the latest datagram of a paced flow came.
    Stalls,
    /// CPU seconds per gigabyte.
    CpuCost,
    /// Sizes that do not arrive.
    PathMtu,
    /// Throughput that jumps between two levels.
    TwoState,
    /// Options of TCP that both ends have on and their connections go without.
    TcpOptions,
    /// Storage or replication figures.
    Storage,
    /// A setting that differs or is wrong without a measured effect.
    Setting,
}

/// One cell of the matrix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// Sender.
    pub from: HostName,
    /// Receiver.
    pub to: HostName,
    /// Layer.
    pub layer: Layer,
    /// Median throughput of the valid tests, bit/s; 0 when nothing got through; `None` when it was not seen.
    pub throughput_bps: Option<f64>,
    /// The two levels, when the throughput jumps between two; they are never averaged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub two_state_bps: Option<(f64, f64)>,
    /// Median share of UDP datagrams lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// Median idle RTT, microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_idle_us: Option<f64>,
    /// Median loaded RTT, microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_loaded_us: Option<f64>,
    /// Median retransmitted segments per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmits_per_s: Option<f64>,
    /// Median CPU seconds per gigabyte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_s_per_gb: Option<f64>,
    /// What it should reach.
    pub ceiling: Ceiling,
    /// Throughput over ceiling, 0 to about 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
}

/// A place with a probability.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LossLocation {
    /// Where.
    #[serde(alias = "element")]
    pub suspect: Suspect,
    /// Direction.
    pub direction: Direction,
    /// 0 to 1; the places of one finding sum to at most 1.
    pub probability: f64,
}

/// A cause with its evidence.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankedCause {
    /// Id of the knowledge file, or `unknown-setting:<key>` for a difference that no file knows.
    pub id: String,
    /// One line; of a difference that no file knows empty until a report writes it, as is the mechanism.
    pub title: String,
    /// The same for a verdict of four lines; empty where the title is short enough.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub short: String,
    /// 0 to 1 among the causes of this finding.
    pub probability: f64,
    /// Two sentences: how it does harm.
    pub mechanism: String,
    /// What speaks for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub supports: Vec<Clue>,
    /// The same in words, one line each; empty until a report writes it.
    pub evidence: Vec<String>,
    /// What speaks against it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contradicts: Vec<Clue>,
    /// The same in words; empty until a report writes it.
    #[serde(default)]
    pub against: Vec<String>,
    /// What to try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Remedy>,
    /// Where it is described.
    #[serde(default)]
    pub sources: Vec<String>,
}

/// What the id of a difference begins with that no file knows.
const UNKNOWN_SETTING: &str = "unknown-setting:";

impl RankedCause {
    /// The id of a difference in this setting that no file knows.
    #[must_use]
    pub fn id_of_unknown(key: &str) -> String {
        format!("{UNKNOWN_SETTING}{key}")
    }

    /// Whether it is a difference that no file knows.
    #[must_use]
    pub fn is_unknown_setting(&self) -> bool {
        Self::unknown_setting(&self.id).is_some()
    }

    /// The key of the setting that differs, of the id of such a difference.
    #[must_use]
    pub fn unknown_setting(id: &str) -> Option<&str> {
        id.strip_prefix(UNKNOWN_SETTING)
    }
}

/// A difference between suspects and peers that explains nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BenignDifference {
    /// Host.
    pub host: HostName,
    /// Key.
    pub key: FactKey,
    /// Value there.
    pub value: FactValue,
    /// What most others have; `None` when they lack it.
    pub peers: Option<FactValue>,
    /// Some cause knows it, though none that fits here.
    #[serde(default)]
    pub is_known: bool,
    /// A cause of overlays knows it, and no word of the text names the network that was measured.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_of_layer: bool,
    /// Why it is ranked below; empty until a report writes it.
    pub why: String,
}

/// The measurement that would decide what is still open.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NextTest {
    /// The tests of the pair again.
    Repeat,
    /// Both hosts against a third one.
    ThirdHost,
    /// From a host of a further group to this one, which tells it from its senders; with the machines of
    /// these, where they are groups.
    FurtherGroup {
        /// The suspected group.
        group: GroupName,
        /// The senders, each with its machine.
        senders: Vec<(HostName, Option<GroupName>)>,
    },
    /// The suspect against two partners in other groups.
    Partners,
}

/// Which figure of a replica is below the slower of its disk and its transport.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplicaLoss {
    /// What is slow.
    pub pattern: ReplicaPattern,
    /// The transport that was used.
    pub transport: String,
    /// What the local disk writes, bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_bytes_per_s: Option<f64>,
    /// What the transport carries, bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport_bytes_per_s: Option<f64>,
    /// Share of the slower of the two that sequential writes reach, beside random ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequential_share: Option<f64>,
}

/// What a replica does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReplicaPattern {
    /// Sequential writes.
    Write,
    /// Random writes.
    RandomWrite,
    /// It is brought up to date.
    Resync,
}

/// One thing that is wrong.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The whole verdict as a sentence; empty until a report writes it.
    pub sentence: String,
    /// Where, most probable first; more than one when the evidence cannot tell them apart.
    pub places: Vec<LossLocation>,
    /// Which layers.
    pub layer: LayerScope,
    /// In which value it shows; the first is the strongest.
    pub responses: Vec<Metric>,
    /// Expected value of the first response, in its unit.
    pub expected: f64,
    /// Measured value.
    pub measured: f64,
    /// Unit of the two.
    pub unit: MetricUnit,
    /// Confidence that something is wrong there, 0 to 1.
    pub probability: f64,
    /// Most probable first.
    pub causes: Vec<RankedCause>,
    /// Differences that explain nothing.
    #[serde(default)]
    #[serde(alias = "innocent")]
    pub benign: Vec<BenignDifference>,
    /// The measurement that would decide what is still open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<NextTest>,
    /// The same in words; empty until a report writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decide: Option<String>,
    /// The same as tests for the second stage.
    #[serde(default)]
    pub decide_tests: Vec<Test>,
    /// Affected ordered pairs and how many were tested, for "since when and how broad".
    #[serde(default)]
    pub affected: Vec<(HostName, HostName)>,
    /// Ordered pairs that were tested and pass the first of the places; 0 where nothing was tested for it.
    #[serde(default)]
    pub tested: usize,
    /// Valid tests of the first response there: how many show the loss, of how many; where no single test
    /// shows it, paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rests_on: Option<(usize, usize)>,
    /// Other tests there were good.
    #[serde(default)]
    pub intermittent: bool,
    /// Retransmits that are next to none at rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_rest: Option<AtRest>,
    /// On how many hosts it was read, and how many there are, where it stands for all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_on: Option<(usize, usize)>,
    /// Which figure of a replica it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica: Option<ReplicaLoss>,
}

impl Finding {
    /// Whether it is a setting, or a state, that was read, and no loss of it was measured.
    #[must_use]
    pub fn was_only_read(&self) -> bool {
        self.responses == [Metric::Setting] && self.affected.is_empty()
    }

    /// Whether all is lost, in every test there.
    #[must_use]
    pub fn nothing_gets_through(&self) -> bool {
        match self.responses.first() {
            // Where some tests are good, something does.
            Some(Metric::Throughput) => self.measured < 1.0 && !self.intermittent,
            // A lost share above this is all of it.
            Some(Metric::Loss) => self.measured > 0.999,
            _ => false,
        }
    }
}

/// Everything that a diagnosis says about a snapshot.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnosis {
    /// [`crate::SCHEMA`].
    pub schema: u32,
    /// Run that was diagnosed.
    pub run: String,
    /// One line for the whole; empty until a report writes it.
    pub headline: String,
    /// What the headline says beside the findings.
    #[serde(default)]
    pub summary: Summary,
    /// The matrix, all layers.
    pub cells: Vec<Cell>,
    /// Worst first.
    pub findings: Vec<Finding>,
    /// Evidence that was refused, with the reason (page cache, two states averaged, bytes differ).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_used: Vec<Refused>,
    /// The same in words; empty until a report writes it.
    #[serde(default)]
    pub refused: Vec<String>,
    /// Things worth knowing that need no action.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<Remark>,
    /// The same in words; empty until a report writes it.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Tuning advice, computed; "leave it" among it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<Advice>,
    /// What imported evidence lacks, at most three questions, the one that decides first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<Missing>,
    /// What could not be seen; that layers were not measured is added by the report.
    #[serde(default)]
    pub blind: Vec<Gap>,
}
