//! The shape of a knowledge file. Data only: what each field means to the ranking is known to the reasoner.

use linerate_model::change::Risk;
use linerate_model::fact::{FactValue, pattern_fits};
use linerate_model::finding::{Direction, Metric, Suspect};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Characters of a title in a verdict of four lines.
pub(crate) const SHORT_MAX: usize = 72;
/// Characters of a check or a fix by hand, its holes not filled.
pub(crate) const BY_HAND_MAX: usize = 78;

/// One cause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    /// Stable name: lower case, digits and dashes.
    pub id: String,
    /// One line.
    pub title: String,
    /// The same for a verdict of four lines, where the title is longer than 72 characters.
    #[serde(default)]
    pub short: String,
    /// Topic: `offload`, `mtu`, `rate`, `loss`, `tcp`, `cpu`, `queue`, `storage`, `setting`.
    pub area: String,
    /// How readily to suspect it.
    pub prior: Prior,
    /// The setting alone is worth a finding, even when nothing was measured of it.
    #[serde(default, rename = "static")]
    pub is_static: bool,
    /// Ends differ in this fact rather than one of them being bad: the suspect becomes a mismatch of the key.
    #[serde(default)]
    pub mismatch: Option<String>,
    /// Two sentences: how it does harm.
    pub mechanism: String,
    /// Where and in what it shows.
    pub symptom: CauseSymptom,
    /// Measured values that speak for or against it.
    #[serde(default)]
    pub shape: Vec<FeatureTest>,
    /// Facts that speak for it.
    #[serde(default)]
    pub indicators: Vec<FactTest>,
    /// Facts that rule it out.
    #[serde(default)]
    pub excludes: Vec<FactTest>,
    /// Where it is given, the state alone is worth an alarm of whoever looks at that (`linerate drbd status`)
    /// and measures nothing: the required indicators of the cause hold, all of these hold too, and
    /// nothing excludes it.
    #[serde(default)]
    pub alarm: Option<Vec<Condition>>,
    /// What it leaves behind on a host that is read once: counts since boot, events of a log. They make a
    /// finding of imported evidence alone, which has no test around which a counter could grow.
    #[serde(default)]
    pub standing: Vec<StandingCount>,
    /// Facts that go with it and mean nothing by themselves: never listed as unexplained differences.
    #[serde(default)]
    pub accompanies: Vec<String>,
    /// Ids of causes that bring it about: where one of them is found, it is no finding of its own unless
    /// something was measured of it.
    #[serde(default)]
    pub follows_from: Vec<String>,
    /// What to try.
    #[serde(default)]
    pub remedy: Option<RemedyPlan>,
    /// Where it is described.
    #[serde(default)]
    pub sources: Vec<String>,
    /// What provokes it.
    pub proof: Vec<CauseProof>,
}

/// What provokes a cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "String", into = "String")]
pub enum CauseProof {
    /// A lab fault, by its name.
    Fault(String),
    /// A recorded case, written `case:<name>`.
    Case(String),
}

impl From<String> for CauseProof {
    fn from(text: String) -> Self {
        match text.strip_prefix("case:") {
            Some(name) => Self::Case(name.to_owned()),
            None => Self::Fault(text),
        }
    }
}

impl From<CauseProof> for String {
    fn from(proof: CauseProof) -> Self {
        proof.to_string()
    }
}

impl std::fmt::Display for CauseProof {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fault(name) => f.write_str(name),
            Self::Case(name) => write!(f, "case:{name}"),
        }
    }
}

impl Cause {
    /// Whether a fact or counter of this key speaks for it or against it.
    #[must_use]
    pub fn asks_for(&self, key: &str) -> bool {
        let tests = self.indicators.iter().chain(&self.excludes);
        // Values of comparisons with another fact are its key.
        let of_facts = tests.flat_map(|t| {
            t.keys.iter().chain(&t.values).chain(t.also.iter().flat_map(|c| c.keys.iter().chain(&c.values)))
        });
        let of_counts = self.standing.iter().flat_map(|s| s.keys.iter().chain(&s.of));
        let of_features = self.shape.iter().filter_map(|f| f.value.strip_prefix("counter:"));
        let mut patterns = of_facts.chain(of_counts).map(String::as_str).chain(of_features);
        patterns.any(|pattern| pattern_fits(pattern, key))
    }

    /// Whether no loss between hosts comes from it: then what was measured of a host does not cover it, nor
    /// it anything else.
    #[must_use]
    pub fn is_independent(&self) -> bool {
        let mut responses = self.symptom.responses.iter();
        responses.all(|response| matches!(response, Metric::Storage | Metric::Setting))
    }
}

/// How readily a cause is suspected before its evidence is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Prior {
    /// Often the reason.
    High,
    /// Sometimes.
    Medium,
    /// Seldom.
    Low,
}

/// Where and in what a cause shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CauseSymptom {
    /// Values in which the loss may show; one of them has to be present.
    pub responses: Vec<Metric>,
    /// Suspects with their direction.
    pub suspects: Vec<SuspectKind>,
    /// Layers.
    #[serde(default)]
    pub layers: LayerFit,
}

/// A suspect with its direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names say it: a suspect of the model and its direction")]
pub enum SuspectKind {
    HostTx,
    HostRx,
    HostBoth,
    GroupTx,
    GroupRx,
    GroupBoth,
    GroupToGroup,
    Pair,
    Drive,
    All,
}

impl SuspectKind {
    /// The kind of a suspect of the model; a mismatch counts as its hosts.
    pub fn of(suspect: &Suspect, direction: Direction) -> Self {
        match (suspect, direction) {
            (Suspect::Host(_) | Suspect::Mismatch(..), Direction::Tx) => Self::HostTx,
            (Suspect::Host(_) | Suspect::Mismatch(..), Direction::Rx) => Self::HostRx,
            (Suspect::Host(_) | Suspect::Mismatch(..), Direction::Both) => Self::HostBoth,
            (Suspect::Group(_), Direction::Tx) => Self::GroupTx,
            (Suspect::Group(_), Direction::Rx) => Self::GroupRx,
            (Suspect::Group(_), Direction::Both) => Self::GroupBoth,
            (Suspect::GroupToGroup(..), _) => Self::GroupToGroup,
            (Suspect::Pair(..), _) => Self::Pair,
            (Suspect::Drive(..), _) => Self::Drive,
            (Suspect::All, _) => Self::All,
        }
    }

    /// Whether it speaks of a group.
    pub fn is_group(self) -> bool {
        matches!(self, Self::GroupTx | Self::GroupRx | Self::GroupBoth)
    }

    /// The same direction of the other of host and group.
    #[must_use]
    pub fn alias(self) -> Self {
        match self {
            Self::HostTx => Self::GroupTx,
            Self::HostRx => Self::GroupRx,
            Self::HostBoth => Self::GroupBoth,
            Self::GroupTx => Self::HostTx,
            Self::GroupRx => Self::HostRx,
            Self::GroupBoth => Self::HostBoth,
            other => other,
        }
    }

    /// The kind with both directions, for kinds with one.
    #[must_use]
    pub fn widened(self) -> Self {
        match self {
            Self::HostTx | Self::HostRx => Self::HostBoth,
            Self::GroupTx | Self::GroupRx => Self::GroupBoth,
            other => other,
        }
    }
}

/// Which layers a cause can harm.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LayerFit {
    /// All layers suffer.
    #[default]
    Any,
    /// Only the overlay.
    OverlayOnly,
    /// Only the network of the machines.
    UnderlayOnly,
    /// Says nothing about layers.
    Either,
}

/// A measured value against limits. Both limits that are given have to hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FeatureTest {
    /// Name of the value; `knowledge/README.md` lists them.
    pub value: String,
    /// Lower limit.
    #[serde(default)]
    pub at_least: Option<f64>,
    /// Upper limit.
    #[serde(default)]
    pub at_most: Option<f64>,
    /// Log odds for the cause when the test holds.
    pub weight: f64,
    /// Log odds (negative) when it does not.
    #[serde(default)]
    pub against: f64,
    /// Without it there is no such cause (also when the value was not measured).
    #[serde(default)]
    pub required: bool,
    /// What it means in words; `{}` is replaced by the value.
    #[serde(default)]
    pub says: String,
}

/// Whose facts are looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FactSide {
    /// The suspected host, or the machine of the suspected group.
    #[default]
    Suspect,
    /// The machine under the suspect.
    Machine,
    /// The hosts that send in the bad cells.
    Sender,
    /// The hosts that receive in the bad cells.
    Receiver,
    /// The suspected host and the machine under it.
    Either,
}

/// Which NICs of a host a key with `nic.*` speaks of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NicRole {
    /// Those that the measured traffic passes, where that is known; on a machine all.
    #[default]
    Path,
    /// All of them.
    Any,
    /// The one with the address in the network of the machines.
    Underlay,
    /// The one with the address in the overlay.
    Overlay,
}

/// How a fact is tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Op {
    /// Same text as one of the values.
    Equals,
    /// Contains one of the values.
    Contains,
    /// Differs from what most peers have.
    DiffersFromPeers,
    /// Number below the first value.
    LessThan,
    /// Number above the first value.
    GreaterThan,
    /// Number below the peers' by at least a tenth.
    LessThanPeers,
    /// Number above the peers' by at least a tenth.
    GreaterThanPeers,
    /// Bytes that, as a window over the loaded RTT, give the measured rate within 35 % (or half of them do).
    WindowBinds,
    /// Bytes that are more than enough as a window for the measured rate on any path inside a cluster, where
    /// no RTT is known.
    WindowAmple,
    /// Mbit/s that are about the measured rate: it is 60 to 105 % of them.
    RateBinds,
    /// An overlay device whose MTU leaves less than the given bytes to the MTU of the NIC below it.
    ExceedsLowerMtu,
    /// A route that the host takes to another measured host, with one of the values among its words.
    RouteToPeers,
    /// A route that the host takes to another measured host, which makes packets much smaller than its device
    /// would.
    SmallPackets,
    /// A route through another device to a measured host in the network of the own NIC, or the policy rule by
    /// which the host takes one.
    Detour,
    /// A neighbour entry for a measured host with a hardware address that none of its devices has.
    WrongNeighbour,
    /// A forwarding entry of a tunnel that sends what is for a measured host to an address that is not its
    /// own.
    WrongForwarding,
    /// An address that another measured host has too.
    SharedAddress,
    /// There is such a fact.
    Present,
    /// Number below that of another fact: `values` has its key (`nic.*` is the same NIC, `disk.*` the same
    /// block device) and, where wanted, a factor.
    LessThanFact,
    /// Number of at least that of another fact; `values` as for [`Op::LessThanFact`].
    AtLeastFact,
    /// Same value as another fact, whose key is in `values`.
    SameAsFact,
    /// A list of CPUs that has none in common with the list of another fact, whose key is in `values`.
    OutsideCpusOf,
    /// Most peers have this key and the host lacks it, although its other keys of the family were read.
    MissingUnlikePeers,
}

impl Op {
    /// Whether the first of `values` is the key of another fact.
    pub fn names_a_fact(self) -> bool {
        matches!(self, Self::LessThanFact | Self::AtLeastFact | Self::SameAsFact | Self::OutsideCpusOf)
    }
}

/// A test of facts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FactTest {
    /// Keys with `*` for any run of characters; one reading that holds is enough.
    pub keys: Vec<String>,
    /// Whose.
    #[serde(default)]
    pub side: FactSide,
    /// How.
    pub op: Op,
    /// Against what.
    #[serde(default)]
    pub values: Vec<String>,
    /// Field of a value with several numbers, 0-based.
    #[serde(default)]
    pub field: usize,
    /// Which NICs of the host.
    #[serde(default)]
    pub nic: NicRole,
    /// The value must also be uncommon among peers that are fine.
    #[serde(default)]
    pub unlike_peers: bool,
    /// Log odds when it holds.
    #[serde(default)]
    pub weight: f64,
    /// Log odds (negative) when the fact was read and does not hold.
    #[serde(default)]
    pub against: f64,
    /// Without it there is no such cause.
    #[serde(default)]
    pub required: bool,
    /// An interaction: the reading counts only where these hold too, on the same host and, in keys with
    /// `nic.*`, on the same NIC.
    #[serde(default)]
    pub also: Vec<Condition>,
}

/// A further condition of a fact test, or of an alarm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// Keys; one reading that holds is enough.
    pub keys: Vec<String>,
    /// `equals`, `contains`, `less-than`, `greater-than`, `present`, `less-than-fact`, `at-least-fact`.
    pub op: Op,
    /// Against what.
    #[serde(default)]
    pub values: Vec<String>,
}

/// A count on one host that speaks for a cause without any measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StandingCount {
    /// Keys of counters or facts; one that holds is enough.
    pub keys: Vec<String>,
    /// Smallest count that means something.
    pub at_least: f64,
    /// What the count is a part of: a key whose `nic.*` or `disk.*` is the device of the first.
    #[serde(default)]
    pub of: Option<String>,
    /// Smallest share of it.
    #[serde(default)]
    pub share: f64,
    /// What it means in words; `{}` is replaced by the count.
    pub text: String,
}

impl From<&FactTest> for Condition {
    /// The test without its side, its NICs and its weights: for the facts of one thing alone.
    fn from(test: &FactTest) -> Self {
        Self { keys: test.keys.clone(), op: test.op, values: test.values.clone() }
    }
}

/// What to try.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RemedyPlan {
    /// One line.
    pub title: String,
    /// Settings to write.
    #[serde(default)]
    pub set: Vec<SettingPlan>,
    /// The command or instruction for people, with holes of [`crate::placeholder`].
    #[serde(default)]
    pub instruction: String,
    /// One command that reads only and shows the cause on its host, to be pasted; holes as above.
    #[serde(default)]
    pub check: String,
    /// The instruction in one line of at most 78 characters, a command where one is enough.
    #[serde(default)]
    pub by_hand: String,
    /// How it survives a reboot.
    #[serde(default)]
    pub persistence: String,
    /// What it can cost. A file can only raise what follows from `set` ([`linerate_model::writable`]).
    pub risk: Risk,
    /// In words.
    #[serde(default)]
    pub risk_text: String,
}

/// Settings to write: those that the pattern names on the hosts of the side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SettingPlan {
    /// Patterns of keys, as in a fact test.
    pub keys: Vec<String>,
    /// On whose hosts.
    #[serde(default)]
    pub side: FactSide,
    /// To which value.
    pub to: FixTarget,
    /// Values that are changed; others stay. All are changed when it is empty.
    #[serde(default)]
    pub from: Vec<String>,
    /// Which NICs of the host.
    #[serde(default)]
    pub nic: NicRole,
}

/// A value to write.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FixTarget {
    /// What most peers have.
    Peers,
    /// This value.
    Value(FactValue),
    /// What most peers have, or this value when the suspects have no peers that differ.
    PeersOr(FactValue),
    /// The value of another fact of the host; `nic.*` in its key is the same NIC.
    Fact(String),
    /// One CPU each out of the list that another fact of the host has, in turn.
    Spread(String),
    /// Of a forwarding entry of a tunnel: an address of the host that has its hardware address.
    TunnelEnd,
    /// The text without these words and the value behind each.
    Without(Vec<String>),
}
