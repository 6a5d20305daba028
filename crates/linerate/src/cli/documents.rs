//! What commands print with `--json`: one type for each document, and the list of them.
//!
//! In: results of commands. Out: their JSON, and its JSON schema for `docs/reference/schemas/`. To add one: a
//! type, and a line of [`DOCUMENTS`]; where it judges something its verdict is an argument of
//! [`super::out::document`].

use std::collections::BTreeMap;
use std::path::Path;

use linerate_diagnose::disks::SurveyedDrive;
use linerate_diagnose::history::{LevelChange, SeriesHistory};
use linerate_fleet::agents::MadeKeys;
use linerate_fleet::ssh::Cleaned;
use linerate_history::{HistoryPoint, SeriesKey};
use linerate_kept::profile::{GroupOutcome, HostProfile};
use linerate_kept::rollout::{Rollout, RolloutWave};
use linerate_knowledge::Cause;
use linerate_knowledge::profile::Profile;
use linerate_model::audit::AuditReport;
use linerate_model::change::PlannedFile;
use linerate_model::check::CheckReport;
use linerate_model::disk::{Disk, DiskEpisodes, DiskRates};
use linerate_model::disk_user::DiskUser;
use linerate_model::drbd::{DrbdAlarm, Replica};
use linerate_model::drift::DriftRow;
use linerate_model::drops::DropReport;
use linerate_model::durability::{DurabilityReport, Pattern, Promises};
use linerate_model::fact::{Gap, HostFacts};
use linerate_model::fact_change::FactChange;
use linerate_model::finding::Finding;
use linerate_model::inventory::{HostName, TransportKind};
use linerate_model::notice::FactNotice;
use linerate_model::run_id::RunId;
use linerate_model::sample::Sample;
use linerate_model::snapshot::StorageFigure;
use linerate_model::step::DeviceRefusal;
use linerate_model::trial::Trial;
use linerate_model::units::MetricUnit;
use linerate_model::verdict::{Verdict, WithVerdict};
use linerate_model::watch::WatchEvent;
use linerate_report as report;
use linerate_storage as storage;
use linerate_store::{ChangeLog, KeptRevision, RunRow, TrialRow};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

use super::builds::TakenBack;
use super::drain::Shown;
use super::drift::put_back::Done;
use super::events::Line;
use super::knowledge::Tested;
use super::numbered::Numbered;

#[derive(Serialize, JsonSchema)]
pub(super) struct Runs<'a> {
    pub(super) runs: &'a [RunRow],
    pub(super) trials: &'a [TrialRow],
}

/// What keeping a trial would write.
#[derive(Serialize, JsonSchema)]
pub(super) struct KeepPlan<'a> {
    pub(super) trial: &'a str,
    /// Hosts with changes, in order.
    pub(super) hosts: Vec<KeepPlanOfHost>,
    /// Kept set that would get the settings, a file or that of the database; absent where there is no
    /// inventory file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kept: Option<&'a str>,
}

/// Files of one host.
#[derive(Serialize, JsonSchema)]
pub(super) struct KeepPlanOfHost {
    pub(super) host: HostName,
    pub(super) files: Vec<PlannedFile>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Changes<'a> {
    /// Changes that were seen from then on, Unix milliseconds.
    pub(super) since_ms: u64,
    #[serde(flatten)]
    pub(super) log: &'a ChangeLog,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct History<'a> {
    /// Surveys from then on, Unix milliseconds.
    pub(super) since_ms: u64,
    /// Name of the cluster; empty without a survey.
    pub(super) cluster: &'a str,
    /// Surveys, the oldest first.
    pub(super) runs: Vec<HistoryRun<'a>>,
    /// What moved, newest first.
    pub(super) moved: Vec<Moved<'a>>,
    /// Series that moved, and those of what was named; a value for each survey.
    pub(super) series: Vec<&'a SeriesHistory>,
    /// What a watch measured of what was named.
    pub(super) watched: &'a [WatchedSeries],
}

/// A series that a watch measured.
#[derive(Serialize, JsonSchema)]
pub(super) struct WatchedSeries {
    #[serde(flatten)]
    pub(super) key: SeriesKey,
    /// Unit of the values.
    pub(super) unit: MetricUnit,
    /// In time order, in the finest resolution that is kept of each part.
    pub(super) points: Vec<HistoryPoint>,
    /// When the level changed; searched in throughput and rates of downloads alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) moved: Vec<WatchedMove>,
}

/// A change of level of a series that a watch measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub(super) struct WatchedMove {
    /// First round of the new level, Unix milliseconds.
    pub(super) at_ms: u64,
    /// Median before.
    pub(super) before: f64,
    /// Median from then on.
    pub(super) after: f64,
    /// Probability that chance alone makes such a step.
    pub(super) chance: f64,
}

/// A survey of a history.
#[derive(Serialize, JsonSchema)]
pub(super) struct HistoryRun<'a> {
    pub(super) run: &'a RunId,
    /// Start, Unix milliseconds.
    pub(super) start_ms: u64,
}

/// A change of a level with the settings that changed between its two surveys.
#[derive(Serialize, JsonSchema)]
pub(super) struct Moved<'a> {
    #[serde(flatten)]
    pub(super) change: LevelChange,
    pub(super) settings: Vec<&'a FactChange>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct NoticeOfHost<'a> {
    pub(super) host: &'a HostName,
    #[serde(flatten)]
    pub(super) notice: &'a FactNotice,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct WatchLine<'a> {
    /// Unix milliseconds.
    pub(super) at_ms: u64,
    #[serde(flatten)]
    pub(super) event: &'a WatchEvent,
}

/// What two hosts or two runs differ in.
#[derive(Serialize, JsonSchema)]
pub(super) struct Differences<'a> {
    pub(super) differences: &'a [report::words::RunDifference],
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Drift<'a> {
    /// The kept set: its file, or the database with the revision.
    pub(super) kept: &'a str,
    /// Kept settings by host.
    pub(super) rows: &'a [DriftRow],
    /// What was put back.
    pub(super) put_back: &'a [Done],
}

/// The text of a kept set.
#[derive(Serialize, JsonSchema)]
pub(super) struct KeptToml<'a> {
    /// Its file, or the database with the revision.
    pub(super) kept: &'a str,
    /// Revision of the database; absent for a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) revision: Option<u64>,
    /// The TOML.
    pub(super) toml: &'a str,
}

/// The revisions of a kept set in the database.
#[derive(Serialize, JsonSchema)]
pub(super) struct KeptRevisions<'a> {
    pub(super) cluster: &'a str,
    /// Newest first; the text of each: `drift --print=REVISION`.
    pub(super) revisions: &'a [KeptRevision],
}

/// The checks of one host, or why there are none.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct HostCheck {
    /// Host.
    pub(super) host: HostName,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) report: Option<CheckReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct HostChecks<'a> {
    pub(super) hosts: &'a [HostCheck],
}

#[derive(Serialize, JsonSchema)]
pub(super) struct OneTrial<'a> {
    pub(super) trial: &'a Trial,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Swept<'a> {
    pub(super) sweep: SweepTrials<'a>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct SweepTrials<'a> {
    pub(super) trials: &'a [Trial],
    /// Trial of the value that is proven to be best.
    pub(super) best: Option<&'a str>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct ProfileList<'a> {
    pub(super) profiles: Vec<&'a Profile>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct ProfileShown<'a> {
    pub(super) profile: &'a Profile,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct ProfileDifferences<'a> {
    pub(super) profile: &'a str,
    pub(super) hosts: &'a [HostProfile],
    pub(super) gaps: &'a [Gap],
}

#[derive(Serialize, JsonSchema)]
pub(super) struct ProfileTried<'a> {
    pub(super) profile: &'a str,
    pub(super) groups: &'a [GroupOutcome],
}

#[derive(Serialize, JsonSchema)]
pub(super) struct RolloutShown<'a> {
    pub(super) rollout: &'a Rollout,
    /// Nothing was written.
    pub(super) is_dry_run: bool,
    pub(super) waves: &'a [RolloutWave],
    /// Folder of the journals.
    pub(super) folder: Option<&'a Path>,
}

/// What became of one journal entry of one host.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Undone {
    pub(super) host: String,
    pub(super) trial: String,
    pub(super) error: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct AllUndone<'a> {
    pub(super) undone: &'a [Undone],
}

/// What became of the copied programs of a host.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct CleanedHost {
    pub(super) host: String,
    /// How it is reached.
    pub(super) over: TransportKind,
    #[serde(flatten)]
    pub(super) cleaned: Cleaned,
    pub(super) error: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct CleanedHosts<'a> {
    pub(super) hosts: &'a [CleanedHost],
}

#[derive(Serialize, JsonSchema)]
pub(super) struct SingleTest<'a> {
    pub(super) run: &'a str,
    pub(super) samples: &'a [Sample],
}

#[derive(Serialize, JsonSchema)]
pub(super) struct SurveyedDrives<'a> {
    pub(super) run: &'a str,
    pub(super) headline: &'a str,
    pub(super) promised: linerate_diagnose::disks::DrivePromise,
    pub(super) drives: &'a [SurveyedDrive],
    pub(super) findings: &'a [Finding],
    pub(super) gaps: &'a [Gap],
}

#[derive(Serialize, JsonSchema)]
pub(super) struct DiskBench<'a> {
    pub(super) run: &'a str,
    pub(super) tests: Vec<report::bench::BenchPhaseView>,
    pub(super) samples: &'a [Sample],
    pub(super) gaps: &'a [Gap],
}

#[derive(Serialize, JsonSchema)]
pub(super) struct DiskPlanned<'a> {
    pub(super) plan: &'a storage::plan::LayoutComparison,
    pub(super) chosen: &'a str,
    /// Steps by the name of the layout.
    pub(super) commands: BTreeMap<String, Vec<report::steps::StepView>>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct DiskApplied<'a> {
    #[serde(flatten)]
    pub(super) planned: DiskPlanned<'a>,
    pub(super) built: &'a report::disk_built::Built,
    /// Why a step after the volume failed.
    pub(super) failed: Option<&'a str>,
    /// The command that takes it back.
    pub(super) undo: &'a str,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct DiskUndone<'a> {
    pub(super) taken_back: &'a TakenBack,
    pub(super) drives: Vec<LeftDrives>,
}

/// Drives of a host after the undo of a build.
#[derive(Serialize, JsonSchema)]
pub(super) struct LeftDrives {
    pub(super) host: String,
    pub(super) drives: usize,
    pub(super) not_empty: Vec<DeviceRefusal>,
}

/// A trial that can be undone.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct OpenTrial {
    pub(super) trial: String,
    /// Remedy; empty for a trial of another store.
    pub(super) remedy: String,
    /// Status in the store, or that it is open on hosts.
    pub(super) status: String,
    /// Hosts that have it in their journals.
    pub(super) hosts: Vec<String>,
    /// The command that undoes it.
    pub(super) undo: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Open<'a> {
    pub(super) trials: &'a [OpenTrial],
    pub(super) builds: &'a [report::builds::BuildView],
    /// Hosts that did not answer, with the reason.
    pub(super) gaps: &'a [String],
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Patterns<'a> {
    pub(super) patterns: &'a [Pattern],
}

#[derive(Serialize, JsonSchema)]
pub(super) struct CleanedFolder<'a> {
    pub(super) host: &'a str,
    pub(super) folder: &'a Path,
    pub(super) files: u64,
    /// Entries that are not of this program.
    pub(super) left: &'a [String],
}

/// A line of `disk watch`.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum DiskWatched<'a> {
    Contact {
        contact: &'a str,
        host: &'a str,
        at_ms: u64,
        reason: Option<&'a str>,
        away_s: Option<f64>,
    },
    Layout {
        host: &'a str,
        layout: Vec<&'a Disk>,
        times_missing: Option<&'a str>,
    },
    Interval {
        host: &'a str,
        at_ms: u64,
        seconds: f64,
        disks: Vec<&'a DiskRates>,
        idle: usize,
        #[serde(skip_serializing_if = "Option::is_none")]
        times_missing: Option<&'a str>,
        #[serde(flatten)]
        users: Option<UsersSeen<'a>>,
    },
    Finding {
        finding: &'a str,
        #[serde(flatten)]
        of: DiskEpisodes,
    },
    End {
        summary: Box<Verdict>,
        findings: Vec<DiskEpisodes>,
        gaps: &'a [Gap],
        hosts: WatchedNumbers<'a>,
    },
}

/// Who caused the load of an interval, where that was asked for.
#[derive(Serialize, JsonSchema)]
pub(super) struct UsersSeen<'a> {
    pub(super) users: &'a [DiskUser],
    pub(super) users_missing: Option<&'a str>,
}

/// How many hosts a watch reached.
#[derive(Serialize, JsonSchema)]
pub(super) struct WatchedNumbers<'a> {
    pub(super) asked: usize,
    pub(super) seen: usize,
    pub(super) unseen: &'a [String],
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Replicas<'a> {
    pub(super) replicas: &'a [Replica],
}

#[derive(Serialize, JsonSchema)]
pub(super) struct DrbdPlanned<'a> {
    pub(super) plan: &'a storage::drbd::ResourcePlan,
    pub(super) commands: Vec<HostStep>,
}

/// A step of a host.
#[derive(Serialize, JsonSchema)]
pub(super) struct HostStep {
    pub(super) host: String,
    pub(super) step: report::steps::StepView,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct DrbdUp<'a> {
    pub(super) plan: DrbdPlanned<'a>,
    pub(super) replicas: &'a [Replica],
}

#[derive(Serialize, JsonSchema)]
pub(super) struct DrbdVerified<'a> {
    /// `whole`, `broken-off` or `not-seen`.
    pub(super) compared: &'a str,
    pub(super) compared_share: Option<f64>,
    pub(super) replicas: &'a [Replica],
    pub(super) alarms: &'a [DrbdAlarm],
}

#[derive(Serialize, JsonSchema)]
pub(super) struct DrbdBench<'a> {
    pub(super) run: &'a str,
    pub(super) resource: &'a str,
    pub(super) primary: &'a str,
    pub(super) peer: &'a str,
    pub(super) rounds: u32,
    pub(super) figures: &'a [StorageFigure],
    pub(super) shares: &'a [storage::drbd::Share],
    pub(super) settings: Vec<report::drbd_bench::SuspectSetting>,
    pub(super) findings: &'a [Finding],
    pub(super) gaps: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct DrbdState<'a> {
    pub(super) replicas: &'a [Replica],
    pub(super) known: Vec<KnownReplica>,
    pub(super) under_way: Vec<UnderWay>,
    pub(super) alarms: &'a [DrbdAlarm],
    pub(super) gaps: &'a [Gap],
}

/// What the metadata of a replica records.
#[derive(Serialize, JsonSchema)]
pub(super) struct KnownReplica {
    pub(super) host: String,
    pub(super) resource: String,
    pub(super) generation: Option<storage::drbd::Generation>,
    pub(super) marked_kib: u64,
}

/// A synchronisation or comparison that runs.
#[derive(Serialize, JsonSchema)]
pub(super) struct UnderWay {
    pub(super) what: String,
    pub(super) progress: storage::drbd::SyncProgress,
}

/// A kind of document.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    /// Its name.
    pub(super) name: &'static str,
    /// Which commands print it.
    pub(super) of: &'static str,
    /// Why it has no `summary`; empty where it has one.
    pub(super) unjudged: &'static str,
    schema: fn(&mut SchemaGenerator) -> Schema,
}

/// What the comment of a schema begins with that requires no `summary`.
const UNJUDGED: &str = "no `summary`: ";

/// The JSON schemas of documents: each below `$defs` by its name, beside what they have in common. One that
/// stands alone is the root as well.
pub(super) fn schemas(kinds: &[Kind]) -> serde_json::Value {
    let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut documents: Vec<(String, serde_json::Value)> = Vec::new();
    for kind in kinds {
        let mut schema = (kind.schema)(&mut generator).to_value();
        if !kind.unjudged.is_empty() {
            schema["$comment"] = format!("{UNJUDGED}{}", kind.unjudged).into();
        }
        documents.push((kind.name.to_owned(), schema));
    }
    let mut defs = generator.take_definitions(true);
    defs.extend(documents);
    let mut root =
        serde_json::json!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": defs });
    if let [only] = kinds {
        root["$ref"] = format!("#/$defs/{}", only.name).into();
    }
    root
}

/// A document that has its verdict as `summary`.
trait HasSummary: JsonSchema {}

impl<T: JsonSchema> HasSummary for WithVerdict<T> {}
impl<T: HasSummary> HasSummary for Numbered<T> {}
impl HasSummary for report::json::Page<'_> {}

const fn kind<T: HasSummary>(name: &'static str, of: &'static str) -> Kind {
    Kind { name, of, unjudged: "", schema: |generator| generator.subschema_for::<T>() }
}

/// A document in which nothing is judged, and the reason.
const fn unjudged<T: JsonSchema>(name: &'static str, of: &'static str, why: &'static str) -> Kind {
    Kind { name, of, unjudged: why, schema: |generator| generator.subschema_for::<T>() }
}

const LIST: &str = "a list";
const PLAN: &str = "a plan; nothing was read that could be wrong";
const CHANGE: &str = "a change by itself is no fault";
const KNOWLEDGE: &str = "knowledge, not a host";

/// All documents. One that judges something is a [`kind`], any other one has its reason.
pub(super) const DOCUMENTS: &[Kind] = &[
    kind::<report::json::Page<'_>>("run", "survey, diagnose, show"),
    kind::<Numbered<WithVerdict<SingleTest<'_>>>>("single", "measure"),
    unjudged::<Numbered<Runs<'_>>>("runs", "runs", LIST),
    unjudged::<Numbered<Changes<'_>>>("changes", "changes", CHANGE),
    kind::<Numbered<WithVerdict<History<'_>>>>("history", "history"),
    unjudged::<Numbered<NoticeOfHost<'_>>>("notice", "changes --follow, a line each", CHANGE),
    kind::<Numbered<WithVerdict<WatchLine<'_>>>>("watch", "watch, a line each"),
    unjudged::<Numbered<&MadeKeys>>("agent-keys", "watch --make-keys", LIST),
    kind::<Numbered<WithVerdict<&DropReport>>>("drops", "drops"),
    kind::<Numbered<WithVerdict<Drift<'_>>>>("drift", "drift"),
    unjudged::<Numbered<KeptToml<'_>>>(
        "kept-set",
        "drift --print",
        "what was decided; `drift` judges hosts by it",
    ),
    unjudged::<Numbered<KeptRevisions<'_>>>("kept-revisions", "drift --revisions", LIST),
    kind::<Numbered<WithVerdict<Differences<'_>>>>("diff", "diff"),
    unjudged::<HostFacts>("facts", "facts", "readings of one host, compared with nothing"),
    unjudged::<linerate_inventory::Understood>("inventory", "inventory", LIST),
    unjudged::<Vec<Cause>>("causes", "explain", KNOWLEDGE),
    unjudged::<Cause>("cause", "explain CAUSE", KNOWLEDGE),
    kind::<Numbered<WithVerdict<&Tested>>>("cause-test", "knowledge test"),
    kind::<Numbered<WithVerdict<OneTrial<'_>>>>("trial", "try, keep, undo TRIAL"),
    unjudged::<Numbered<KeepPlan<'_>>>("keep-plan", "keep --dry-run", PLAN),
    kind::<Numbered<WithVerdict<Swept<'_>>>>("sweep", "try --set with several values"),
    unjudged::<Numbered<ProfileList<'_>>>("profiles", "profile, profile list", KNOWLEDGE),
    unjudged::<Numbered<ProfileShown<'_>>>("profile", "profile show", KNOWLEDGE),
    kind::<Numbered<WithVerdict<ProfileDifferences<'_>>>>("profile-diff", "profile diff"),
    kind::<Numbered<WithVerdict<ProfileTried<'_>>>>("profile-try", "profile try"),
    kind::<Numbered<WithVerdict<RolloutShown<'_>>>>("rollout", "rollout"),
    kind::<Numbered<WithVerdict<AllUndone<'_>>>>("undone", "undo --all"),
    kind::<Numbered<WithVerdict<Open<'_>>>>("undo-list", "undo"),
    kind::<Numbered<WithVerdict<CleanedHosts<'_>>>>("clean", "clean"),
    kind::<Numbered<WithVerdict<SurveyedDrives<'_>>>>("disk-survey", "disk survey"),
    kind::<Numbered<WithVerdict<DiskBench<'_>>>>("disk-bench", "measure disk"),
    unjudged::<Numbered<DiskPlanned<'_>>>("disk-plan", "disk plan", PLAN),
    kind::<Numbered<WithVerdict<DiskApplied<'_>>>>("disk-plan-apply", "disk plan --apply"),
    kind::<Numbered<WithVerdict<DiskUndone<'_>>>>("disk-undo", "undo VOLUME"),
    unjudged::<Numbered<DiskWatched<'_>>>(
        "disk-watch-line",
        "disk watch, one a line",
        "a moment; the last line, which has `findings`, has it",
    ),
    unjudged::<Numbered<Patterns<'_>>>("durability-patterns", "disk durability patterns", KNOWLEDGE),
    unjudged::<Promises>(
        "durability-promises",
        "disk durability write",
        "what was acknowledged; `disk durability check` judges it",
    ),
    kind::<WithVerdict<&DurabilityReport>>("durability-check", "disk durability check"),
    kind::<WithVerdict<&AuditReport>>("durability-audit", "disk durability --audit"),
    unjudged::<Numbered<CleanedFolder<'_>>>("durability-clean", "disk durability clean", LIST),
    kind::<Numbered<WithVerdict<DrbdState<'_>>>>("drbd-status", "drbd status"),
    unjudged::<Numbered<DrbdPlanned<'_>>>("drbd-plan", "drbd plan", PLAN),
    kind::<Numbered<WithVerdict<DrbdUp<'_>>>>("drbd-up", "drbd up"),
    kind::<Numbered<WithVerdict<Replicas<'_>>>>("drbd-replicas", "drbd primary, secondary, repair"),
    kind::<Numbered<WithVerdict<DrbdVerified<'_>>>>("drbd-verify", "drbd verify"),
    kind::<Numbered<WithVerdict<DrbdBench<'_>>>>("drbd-bench", "drbd bench"),
    kind::<WithVerdict<&CheckReport>>("check", "check --as"),
    kind::<Numbered<WithVerdict<HostChecks<'_>>>>("checks", "check HOST"),
    kind::<Numbered<WithVerdict<&Shown>>>("drain", "drain, resume"),
    unjudged::<Line<'_>>("event", "events on stderr, one a line", "progress of a command"),
];
