//! What a diagnosis knows beside its findings, as facts; their texts are written by the reports.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::clue::Clue;
use crate::difference::{Difference, FixProof};
use crate::http::HttpStep;
use crate::inventory::{HostName, Layer};
use crate::outlier::HostOutlier;
use crate::path_methods::{MethodPair, PathClass};
use crate::snapshot::{StorageFigure, StoragePattern};
use crate::suspect::{AtRest, Direction, Suspect};
use crate::symptom::Symptom;

/// What there is to say of the whole where nothing was found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Overall {
    /// The median pair is at its ceiling: its share of it.
    AtCeiling(f64),
    /// The median pair reaches this share of its ceiling.
    OfCeiling(f64),
    /// No ceiling is known.
    NoCeiling,
    /// No pair was measured; counters were watched.
    Counters,
    /// No pair was measured; so many figures of disks are known, each with the share of the time in which the
    /// disk was busy.
    Figures(usize),
    /// No pair was measured; one figure of a disk is known, bytes per second, and no limit of it.
    Rate(f64),
    /// No pair was measured; so many figures of disks are known, not all of them with a limit to compare them
    /// with.
    Rates(usize),
    /// Nothing was measured.
    #[default]
    Nothing,
}

/// Facts of the headline.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Of the whole.
    #[serde(default)]
    pub overall: Overall,
    /// What a comparison with the state before a fix proved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<FixProof>,
    /// Layers of which too many pairs have no valid transfer: how many, of how many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmeasured: Vec<(Layer, usize, usize)>,
    /// Suspects that were not tested again and are too grave to be passed over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untested: Vec<(Suspect, Direction)>,
}

/// Evidence that must not be used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Refused {
    /// A read that came from memory.
    PageCache {
        /// The figure.
        figure: Box<StorageFigure>,
        /// Bytes per second that are written there.
        written: f64,
    },
    /// The mean of a throughput that has two levels.
    Mean {
        /// Sender.
        from: HostName,
        /// Receiver.
        to: HostName,
        /// Layer.
        layer: Layer,
        /// The two levels, bit/s.
        levels: (f64, f64),
    },
    /// An invalid test.
    Test {
        /// Kind of test.
        kind: String,
        /// Sender.
        from: HostName,
        /// Receiver.
        to: HostName,
        /// Why it is invalid.
        reason: String,
    },
}

/// What became of a suspicion that was not confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Repetition {
    /// It was repeated and did not show again.
    Refuted,
    /// Each repetition was invalid.
    Invalid,
    /// There was none.
    Missing,
    /// There was none, in figures that others measured.
    MissingInImport,
}

/// Hosts that seem to have ports of one speed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PortClass {
    /// Hosts.
    pub hosts: Vec<HostName>,
    /// What they reach, bit/s.
    pub bps: f64,
    /// Speed of such a port, bit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_bps: Option<f64>,
}

/// What is worth knowing of a device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DiskRemark {
    /// A drive that is slow among its equals.
    Slow {
        /// Host, empty where it is unknown.
        host: String,
        /// Drive.
        device: String,
        /// What it does: `read`, `write`.
        pattern: StoragePattern,
        /// Of a request, ms.
        wait_ms: f64,
        /// Of one of the others at its rate, ms.
        usual_ms: f64,
        /// How many others.
        others: usize,
    },
    /// A drive that is busy all the time.
    Saturated {
        /// Host, empty where it is unknown.
        host: String,
        /// Drive.
        device: String,
        /// Share of the time.
        busy: f64,
        /// Requests after merging.
        per_s: f64,
        /// Requests that were merged into others.
        merged_per_s: f64,
    },
    /// Writes that no drive needs so long for: each one waited, or all of them together.
    SlowWrites {
        /// Host, empty where it is unknown.
        host: String,
        /// Of one synchronous write, ms; none where only the rate is known.
        wait_ms: Option<f64>,
        /// What was reached, bytes per second.
        bytes_per_s: f64,
    },
    /// What stands behind a name of the device mapper.
    Volume {
        /// Host.
        host: HostName,
        /// The device.
        device: String,
        /// Its volume.
        name: String,
        /// What it stands on.
        on: Vec<String>,
        /// Requests.
        per_s: Option<f64>,
        /// Share of the time.
        busy: Option<f64>,
    },
}

/// Hosts whose counters count the same packets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Together {
    /// Counter.
    pub key: String,
    /// Those whose counters move together.
    pub hosts: Vec<HostName>,
    /// The least correlation.
    pub correlation: f64,
    /// Those that count hardly any.
    pub quiet: Vec<HostName>,
    /// What the first have in common, and the others lack.
    pub shared: Vec<String>,
    /// The busiest one, and what it counts a minute.
    pub most: (HostName, f64),
}

/// Something that is worth knowing and needs no action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Remark {
    /// A difference from the state before a fix.
    Compared(Difference),
    /// A wrong setting that another finding brings about.
    Consequence {
        /// Where.
        at: (Suspect, Direction),
        /// Title of its cause.
        title: String,
        /// Title of the cause of the other one.
        of: String,
    },
    /// A pair at its ceiling whose retransmits do not matter.
    Retransmits {
        /// Sender.
        from: HostName,
        /// Receiver.
        to: HostName,
        /// Of its ceiling.
        share: f64,
        /// Segments.
        per_s: f64,
    },
    /// Ports that seem to have different speeds.
    Ports(Vec<PortClass>),
    /// A pair that lost datagrams in one probe.
    LostOnce {
        /// Sender.
        from: HostName,
        /// Receiver.
        to: HostName,
        /// Layer.
        layer: Layer,
        /// Share of the datagrams.
        loss: f64,
    },
    /// So many more of these.
    MoreLost(usize),
    /// A suspicion that was not confirmed.
    Suspicion {
        /// Where.
        at: (Suspect, Direction),
        /// What became of it.
        repetition: Repetition,
        /// What would explain it, with what was read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<(String, Vec<Clue>)>,
    },
    /// What a transfer shows by itself.
    Symptom(Symptom),
    /// Hosts between which a matrix falls into blocks: what these receive from those is bad, while each set
    /// is fine within itself.
    Blocks {
        /// Senders.
        from: Vec<HostName>,
        /// Receivers.
        to: Vec<HostName>,
    },
    /// What was read of a host where nothing of it stands out: the formats.
    Read {
        /// Host; empty where none is named.
        host: String,
        /// Formats.
        formats: Vec<String>,
        /// Values.
        readings: usize,
        /// Whether some cause asks for one of these values.
        #[serde(default)]
        is_judged: bool,
    },
    /// A node that its scheduler gives no work.
    Node {
        /// Host.
        host: HostName,
        /// Its state in the scheduler's words.
        state: String,
        /// Why, in the words of who took it out; empty where none is given.
        reason: String,
    },
    /// Pairs that all reach the same, and less than one of them reaches alone.
    Shared {
        /// Pairs.
        pairs: usize,
        /// Each of them, bit/s.
        each_bps: f64,
        /// One of them alone, bit/s.
        alone_bps: f64,
        /// Full ports of one of them that carry as much as all together: how many, and the speed of each,
        /// bit/s.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ports: Option<(usize, f64)>,
    },
    /// A replica and what it does.
    Replica {
        /// Host.
        host: HostName,
        /// Name of the device.
        device: String,
        /// Its connection: `SyncSource`.
        connection: String,
        /// Its disks: `UpToDate/Inconsistent`.
        disks: String,
        /// Bytes per second of its resync.
        bytes_per_s: Option<f64>,
    },
    /// A device.
    Disk(DiskRemark),
    /// Hosts whose counters count the same packets.
    Together(Box<Together>),
    /// A host that stands out among its equals in what a database stored of them.
    Outlier(Box<HostOutlier>),
    /// A host to which every sender retransmits, while its throughput does not suffer.
    SentAgain {
        /// Receiver.
        host: HostName,
        /// Segments of a sender.
        per_s: f64,
        /// What it is at rest.
        at_rest: Option<AtRest>,
    },
    /// Front ends through which downloads are slow: each with the step and how many times worse.
    FrontEnds {
        /// Slow ones.
        slow: Vec<(String, HttpStep, f64)>,
        /// The others.
        fine: Vec<String>,
    },
    /// So many front ends are hosts of the service: requests cross from one to another.
    Crossing(usize),
    /// Pairs whose connections go without an option of TCP that both hosts have switched on.
    OptionLost {
        /// The option.
        option: TcpOption,
        /// Pairs, sender and receiver, the first few.
        pairs: Vec<(HostName, HostName)>,
        /// How many pairs.
        lost: usize,
        /// How many pairs of such hosts have it.
        kept: usize,
    },
    /// A host whose NIC carried much beside the tests.
    OtherTraffic {
        /// Host.
        host: HostName,
        /// What it sends or receives.
        direction: Direction,
        /// Share of the bytes that the NIC counted.
        share: f64,
        /// Rate of the others, bit/s.
        bps: f64,
    },
    /// The tests were paced to this share of each link: what is slower shows, what is faster does not.
    Paced {
        /// Share of each link, 0 to 1.
        share: f64,
        /// Hosts whose link has no known speed, and the rate that was assumed for it, bit/s.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        assumed: Option<(Vec<HostName>, f64)>,
    },
    /// Transfers over these paths were not made by the plain methods, which have no more CPU there.
    Methods {
        /// Which paths.
        class: PathClass,
        /// By which methods.
        methods: MethodPair,
        /// What they reached in the comparison, bit/s.
        bps: f64,
        /// What the plain ones reached, bit/s.
        plain_bps: f64,
    },
    /// A pair on whose path a queue marks segments (CE) instead of dropping them.
    Marked {
        /// Sender.
        from: HostName,
        /// Receiver.
        to: HostName,
        /// Layer.
        layer: Layer,
        /// Share of the segments.
        share: f64,
    },
}

/// An option of TCP that two ends agree on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TcpOption {
    /// Selective acknowledgements.
    Sack,
    /// Explicit congestion notification.
    Ecn,
    /// Timestamps.
    Timestamps,
    /// Window scale.
    WindowScale,
}

impl Remark {
    /// Share of each link that the tests were paced to.
    #[must_use]
    pub fn pace(&self) -> Option<f64> {
        if let Self::Paced { share, .. } = self { Some(*share) } else { None }
    }

    /// Whether it names something that is wrong, without a finding: a symptom that is a fault, a slow front
    /// end, a drive without time left, a host to which everybody retransmits, hosts that drop the same, a
    /// host that stands out among its equals.
    #[must_use]
    pub fn blames(&self) -> bool {
        match self {
            Self::Symptom(symptom) => symptom.sign.is_fault(),
            Self::FrontEnds { .. } | Self::SentAgain { .. } | Self::Together(_) | Self::Outlier(_) => true,
            Self::Disk(disk) => matches!(disk, DiskRemark::Saturated { .. }),
            _ => false,
        }
    }

    /// Whether it is worth the lines of a finding: it blames something, or it may, which depends on what is
    /// not known (drives of one kind, tests at the same time).
    #[must_use]
    pub fn suspects(&self) -> bool {
        let may_blame = matches!(
            self,
            Self::Blocks { .. }
                | Self::Shared { .. }
                | Self::Disk(DiskRemark::Slow { .. } | DiskRemark::SlowWrites { .. })
        );
        may_blame || self.blames()
    }
}
