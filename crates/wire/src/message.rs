//! Messages between operator and node. Bodies are JSON inside checksummed frames: few, small and easy to read
//! in a trace; the measured data itself never travels here.

use std::collections::BTreeMap;
use std::path::PathBuf;

use linerate_model::audit::{AuditPart, AuditRequest};
use linerate_model::change::{Change, PlannedFile};
use linerate_model::durability::{DurabilityAnswer, DurabilityRequest};
use linerate_model::fact::{FactDecl, FactKey, FactValue, HostFacts};
use linerate_model::iperf3::Iperf3Spec;
use linerate_model::load::{LoadReport, LoadSpec};
use linerate_model::notice::FactNotice;
use linerate_model::printable::without_hint;
use linerate_model::probe::{ProbeReport, ProbeRequest};
use linerate_model::step::{HostQuery, QueryOutput, Step};
use serde::{Deserialize, Serialize};

/// Version of the protocol. It grows when a request or an event is added or changes; an operator also speaks
/// with nodes of [`PROTOCOL_OLDEST`]. The messages of each version are kept in `tests/` and still understood.
///
/// 3: a request that the node does not know is answered by `Failed` and no longer ends the session.
pub const PROTOCOL: u32 = 3;

/// The oldest version of a node that an operator of this version works with: the one before. A request that
/// is newer than the node's hello must not be sent.
pub const PROTOCOL_OLDEST: u32 = PROTOCOL - 1;

/// Number of a request, chosen by the operator, never reused in a session.
pub type RequestId = u64;

/// A frame from the operator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToNode {
    /// Never 0.
    pub id: RequestId,
    /// What is asked.
    pub body: Request,
}

/// What an operator asks, by the part of the node that answers it. Every request is answered by zero or more
/// events and then exactly one `Done`, `Failed` or (for loads) `LoadDone`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// About the session itself.
    Session(SessionRequest),
    /// Measure or read; each request has a thread of its own.
    Observe(ObserveRequest),
    /// Change settings; one after the other.
    Trial(TrialRequest),
    /// Query and build volumes and replicas.
    Build(BuildRequest),
}

/// What concerns the session itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SessionRequest {
    /// First request. Answered by `Done`.
    Setup(Setup),
    /// Stop a load early (its `LoadDone` still comes).
    StopLoad {
        /// Request that started it.
        load: RequestId,
    },
    /// Undo what is not confirmed and exit. Answered by `Done`.
    Bye,
}

/// Where a host keeps its journals and what stands for `/etc`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// Journal folder.
    pub state_dir: PathBuf,
    /// Base of persistent settings.
    pub etc_dir: PathBuf,
    /// The name of the host in the inventory, for error texts and the journal.
    pub host: String,
}

/// What is measured or read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ObserveRequest {
    /// Read facts and counters whose keys start with one of the prefixes (all when empty), also in the given
    /// namespaces. Answered by `Facts`, then `Done`.
    Facts {
        /// Key prefixes.
        prefixes: Vec<FactKey>,
        /// Namespaces inside the host whose NIC and net.* facts are wanted too, keyed `netns.<path>|<key>`.
        netns: Vec<PathBuf>,
    },
    /// Read facts whose keys start with one of the prefixes (all when empty), and notice what changes of them
    /// until the session ends. Answered by `Facts`, then `Done`.
    Follow {
        /// Key prefixes.
        prefixes: Vec<FactKey>,
        /// Record the process of each write to a sysctl and of each request to change a link, by programs in
        /// the kernel.
        #[serde(default)]
        writers: bool,
    },
    /// What was noticed since the last answer; waits for the first, at most half a minute. Answered by
    /// `Noticed`, then `Done`: a node never sends more than it was asked for.
    Notices,
    /// Count what the kernel, its queues and devices drop, by reason, from the first such request until the
    /// session ends. Answered by `Facts` with counters alone, then `Done`.
    Drops,
    /// Probe other hosts and answer their probes until the session ends. Answered by `Probed` where a report
    /// is asked for, then `Done`.
    Probe(ProbeRequest),
    /// Start one end of a test. A receiver answers `Listening`; both end with `LoadDone`.
    Load(LoadSpec),
    /// Make a whole test against a plain iperf3 server. Ends with `LoadDone`, whose report has the server's
    /// in `far`.
    Iperf3(Iperf3Spec),
    /// Write records to check after a power cut, or check them. Answered by `Durability`, then `Done`.
    Durability(DurabilityRequest),
    /// Scan a piece of a folder of data. Answered by `Audit`, then `Done`.
    Audit(AuditRequest),
}

/// What is changed, kept and undone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrialRequest {
    /// Journal the old values, arm the dead-man timer, write, read back. Answered by `Changed`, then `Done`.
    /// Repeating it for the same trial while armed applies the new values again.
    Apply {
        /// Trial.
        trial: String,
        /// Changes of this host, in order.
        changes: Vec<Change>,
        /// The node undoes by itself this many seconds from now unless `Extend`ed, kept or undone.
        deadline_s: u32,
    },
    /// Write the old values back but stay armed (the A arm of a trial). Answered by `Changed`, then `Done`.
    Revert {
        /// Trial.
        trial: String,
    },
    /// Move the dead-man deadline. Answered by `Done`.
    Extend {
        /// Trial.
        trial: String,
        /// Seconds from now.
        deadline_s: u32,
    },
    /// Make it stay: new values in force, written where they survive a reboot, timer disarmed, journal kept
    /// for a later `Undo`. Answered by `Kept`, then `Done`.
    Keep {
        /// Trial.
        trial: String,
        /// Changes again, for a trial that was measured earlier and is no longer armed.
        changes: Vec<Change>,
    },
    /// The files that `Keep` would write; nothing is written. Answered by `Planned`, then `Done`.
    PlanKeep {
        /// Changes of this host, in order.
        changes: Vec<Change>,
    },
    /// Old values back, persistent files removed or restored, timer disarmed, journal closed. Answered by
    /// `Changed`, `Done`.
    Undo {
        /// Trial.
        trial: String,
    },
    /// List journals on this host that are not closed. Answered by `Journals`, then `Done`.
    Journals,
}

/// What is asked about volumes and replicas, and built.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BuildRequest {
    /// Ask about volumes and replicas. Answered by `Seen`, then `Done`.
    Look(HostQuery),
    /// Journal a step of a build, check what it needs, and do it. Answered by `Seen`, then `Done`; a command
    /// that fails is a refusal.
    Step {
        /// Name of the build.
        build: String,
        /// What to do.
        step: Step,
    },
    /// Undo all steps of a build, the last one first, and close its journal. Answered by `Unbuilt`, then
    /// `Done`.
    Unbuild {
        /// Name of the build.
        build: String,
        /// Discard data on the volume or its drives that the build did not make.
        #[serde(default)]
        discard: bool,
    },
    /// Close the journal of a build: what it made stays and can no longer be undone from here. Answered by
    /// `Done`.
    Built {
        /// Name of the build.
        build: String,
    },
    /// List builds on this host that are not undone. Answered by `Builds`, then `Done`.
    Builds,
}

macro_rules! into_request {
    ($($shape:ident($request:ident)),*) => {$(
        impl From<$request> for Request {
            fn from(request: $request) -> Self {
                Self::$shape(request)
            }
        }
    )*};
}

into_request!(Session(SessionRequest), Observe(ObserveRequest), Trial(TrialRequest), Build(BuildRequest));

/// A frame from the node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FromNode {
    /// Request that it answers; 0 for `Hello`.
    pub id: RequestId,
    /// What happened.
    pub body: Event,
}

/// A message of a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// First frame of a session.
    Hello(Box<Hello>),
    /// A receiver is ready on this port of its bind address.
    Listening {
        /// Port.
        port: u16,
    },
    /// A load ended. Last event of its request.
    LoadDone {
        /// Its report.
        report: Box<LoadReport>,
        /// Counters that changed around it.
        counters: BTreeMap<FactKey, i64>,
    },
    /// Facts and counters.
    Facts(Box<HostFacts>),
    /// What changed while facts are followed; empty when nothing did.
    Noticed(Vec<FactNotice>),
    /// What came of probes.
    Probed(ProbeReport),
    /// Records were written, found or removed.
    Durability(Box<DurabilityAnswer>),
    /// What a piece of a folder of data holds.
    Audit(Box<AuditPart>),
    /// Values read back after a change.
    Changed {
        /// In the order of the changes.
        read_back: Vec<(FactKey, FactValue)>,
    },
    /// A change was made to stay.
    Kept {
        /// Files written.
        files: Vec<PathBuf>,
    },
    /// What would be written so that a change survives a reboot.
    Planned {
        /// In the order of writing.
        files: Vec<PlannedFile>,
    },
    /// Open journals.
    Journals(Vec<JournalEntry>),
    /// Output of a query or a step.
    Seen(Box<QueryOutput>),
    /// What was undone, a line for each command.
    Unbuilt {
        /// In order.
        lines: Vec<String>,
    },
    /// Builds that are not undone.
    Builds(Vec<BuildEntry>),
    /// The request is finished.
    Done,
    /// The request failed; nothing else follows for it.
    Failed {
        /// Names the thing, the value seen and the limit.
        error: String,
        /// What to do.
        hint: String,
        /// Old values could not be restored.
        undo_failed: bool,
    },
}

impl Event {
    /// A request that failed, from the text of its error with the hint in it.
    #[must_use]
    pub fn failed(error: &str, undo_failed: bool) -> Self {
        let (error, hint) = without_hint(error);
        Self::Failed { error: error.to_owned(), hint: hint.unwrap_or_default().to_owned(), undo_failed }
    }
}

/// Where a trial stands on a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JournalState {
    /// New values may be in force; undone at the deadline.
    Armed,
    /// Old values are in force.
    Reverted,
    /// New values survive a reboot.
    Kept,
    /// Undone; nothing is left to do.
    Closed,
    /// Its journal was not written by this program.
    Refused,
    /// Its journal cannot be read.
    Unreadable,
}

impl std::fmt::Display for JournalState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.serialize(f)
    }
}

/// An open journal on a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JournalEntry {
    /// Trial.
    pub trial: String,
    /// Where it stands.
    pub state: JournalState,
    /// Changes with their old values.
    pub changes: Vec<Change>,
    /// Files that make it persistent.
    pub files: Vec<PathBuf>,
}

/// A build on a node that was not undone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BuildEntry {
    /// Name.
    pub build: String,
    /// Unix milliseconds of its first step, by the clock of the host.
    pub created_ms: u64,
    /// Its steps, in order; the last one may not have ended.
    pub steps: Vec<Step>,
    /// Indices of steps whose result was on the host before them: an undo leaves it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub was_there: Vec<usize>,
    /// Whether the last one ended well.
    pub whole: bool,
}

/// Who the node is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// [`PROTOCOL`] of the node.
    pub protocol: u32,
    /// Version of the program.
    pub version: String,
    /// Build id; operator and node of the same build have the same.
    pub build: String,
    /// Facts that this node can read.
    pub facts: Vec<FactDecl>,
    /// Loads that it can run: `tcp`, `udp`, `rtt`, `mtu`, `latency`, …; `iperf3` for tests against a plain
    /// iperf3 server.
    pub loads: Vec<String>,
    /// Whether it runs with the rights of root in its user namespace.
    pub root: bool,
    /// Time of day on the host, Unix milliseconds. Nothing is measured by it; it reveals a wrong clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_ms: Option<u64>,
    /// Boot id of the kernel: sessions with the same one share their CPUs. A node that reports it also
    /// understands [`linerate_model::tuning::Tuning::host_turns`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
}
