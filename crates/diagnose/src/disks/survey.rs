//! All drives of all hosts beside their equals: which is slow, sick, set otherwise than the others, or below
//! what was promised.
//!
//! In: a snapshot with facts, an interval before the load, and read-only loads on single drives. Out: one row
//! per drive, the worst first. A drive is compared with drives of its make, size and firmware on all hosts,
//! without the firmware where those are too few. Of several rounds the best counts: what is fast once is
//! not slow. A drive that others load is compared with nothing. Pure.

use std::collections::BTreeMap;

use linerate_model::disk::{Disk, DiskKind};
use linerate_model::disk_load::{DiskResult, DiskTarget};
use linerate_model::fact::HostFacts;
use linerate_model::inventory::{HostName, TransportSpec};
use linerate_model::kind::DiskPlan;
use linerate_model::names::natural;
use linerate_model::sample::{Outcome, Sample};
use linerate_model::snapshot::Snapshot;
use schemars::JsonSchema;
use serde::Serialize;

use super::RULES;
use super::ceiling::reach;
use super::readings::{reading, text};
use super::tree::{Layout, layout};
use super::volume::{Class, volume};
use crate::stats::{median, quantile};

/// What was promised of every drive; a part that is not named is not compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct DrivePromise {
    /// Requests per second.
    pub requests_per_s: Option<f64>,
    /// Bytes per second.
    pub bytes_per_s: Option<f64>,
}

/// One figure of a drive with what it is measured by; shares are of 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct DriveFigure {
    /// Requests per second at random offsets, bytes per second in a row.
    pub per_s: f64,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Half of the requests took at most so long, microseconds.
    pub p50_us: f64,
    /// 99 of 100 requests took at most so long, microseconds.
    pub p99_us: f64,
    /// How long its longest test took, seconds.
    pub elapsed_s: f64,
    /// It is low, and no test lasted long enough: a moment without a CPU makes a short one low.
    pub in_doubt: bool,
    /// The usual figure of its equals.
    pub usual: Option<f64>,
    /// Of the usual figure of its equals.
    pub of_equals: Option<f64>,
    /// Of what its class should reach, where that can be known.
    pub of_class: Option<f64>,
    /// Of what was promised.
    pub of_promise: Option<f64>,
}

impl DriveFigure {
    /// The least of what it is measured by.
    #[must_use]
    pub fn least(&self) -> Option<f64> {
        [self.of_equals, self.of_class, self.of_promise].into_iter().flatten().min_by(f64::total_cmp)
    }
}

/// What a survey makes of a drive, the worst first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DriveState {
    /// Slower than its equals in every round.
    Slow,
    /// Below what was promised in every round.
    BelowPromise,
    /// Below what its class should reach in every round.
    BelowClass,
    /// Others load it: it was not measured, or its figures are not its own.
    Busy,
    /// It could not be measured, or the figures are no evidence; with the reason.
    Unknown(String),
    /// Nothing is wrong with its speed.
    Fine,
}

/// A fact of a drive that is worth a word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DriveNote {
    /// Name of the fact without the drive: `scheduler`, `media_errors`.
    pub fact: String,
    /// Its value.
    pub value: String,
    /// What the equals have.
    pub usual: Option<String>,
}

/// One drive of a survey.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SurveyedDrive {
    /// Host.
    pub host: HostName,
    /// Name of the kernel.
    pub device: String,
    /// Model; empty where the drive has none.
    pub model: String,
    /// Release of its firmware.
    pub firmware: String,
    /// What kind of drive.
    pub class: Class,
    /// Size, bytes.
    pub size_bytes: u64,
    /// What becomes of it.
    pub state: DriveState,
    /// How often it was measured.
    pub rounds: usize,
    /// Small reads at random offsets: the best round.
    pub random: Option<DriveFigure>,
    /// Large reads in a row: the best round.
    pub sequential: Option<DriveFigure>,
    /// Drives that it is compared with.
    pub equals: usize,
    /// Whether those have its firmware too.
    pub same_firmware: bool,
    /// Settings that its equals have otherwise.
    pub unlike: Vec<DriveNote>,
    /// What it or the kernel counts of errors, heat and wear, where it is bad.
    pub health: Vec<DriveNote>,
}

impl SurveyedDrive {
    /// Whether something is wrong with it.
    #[must_use]
    pub fn is_finding(&self) -> bool {
        matches!(self.state, DriveState::Slow | DriveState::BelowPromise | DriveState::BelowClass)
            || !self.health.is_empty()
    }

    /// Whether it has no figures of its own.
    #[must_use]
    pub fn is_unread(&self) -> bool {
        matches!(self.state, DriveState::Unknown(_) | DriveState::Busy)
    }

    /// Bytes per second that its equals usually read, and those that it read, in the test in which it is
    /// furthest below them.
    #[must_use]
    pub fn worst_bytes_per_s(&self) -> Option<(f64, f64)> {
        let figures = [self.random, self.sequential].into_iter().flatten();
        let shares = figures.filter_map(|figure| Some((figure.of_equals.filter(|s| *s > 0.0)?, figure)));
        let (share, figure) = shares.min_by(|a, b| a.0.total_cmp(&b.0))?;
        Some((figure.bytes_per_s / share, figure.bytes_per_s))
    }

    /// The least of what its figures are measured by; drives without any come last.
    fn least(&self) -> f64 {
        let figures = [&self.random, &self.sequential].into_iter().flatten();
        figures.filter_map(DriveFigure::least).min_by(f64::total_cmp).unwrap_or(f64::MAX)
    }
}

/// Settings in which equals should not differ.
const ALIKE: [&str; 11] = [
    "scheduler",
    "nr_requests",
    "queue_depth",
    "read_ahead_kb",
    "wbt_lat_usec",
    "write_cache",
    "drive_cache",
    "sata_gbit",
    "sas_gbit",
    "pcie.width",
    "pcie.speed_gts",
];
/// Counts of a drive's health that should be 0.
const ZERO: [&str; 5] =
    ["media_errors", "md_errors", "filesystem_errors", "pending_sectors", "uncorrectable_sectors"];
/// States of a drive in the kernel that are good.
const GOOD: [&str; 3] = ["running", "live", "created"];

/// Drives of a host that a survey loads: whole, with a size, nothing below them, and a drive with several
/// paths once. `named` chooses by name instead, also what is made of files.
#[must_use]
pub fn surveyed(facts: &HostFacts, named: &[String]) -> Vec<String> {
    let layout = layout(facts);
    let mut paths: Vec<&str> = Vec::new();
    for above in layout.disks().filter(|disk| disk.kind == DiskKind::Multipath) {
        // One path stands for the drive.
        paths.extend(above.on.iter().skip(1).map(String::as_str));
    }
    let is_drive = |disk: &&Disk| match named {
        [] => {
            let whole = matches!(disk.kind, DiskKind::Rotating | DiskKind::Solid) && disk.on.is_empty();
            let removable = ["sr", "fd", "zram", "ram", "mtdblock", "nbd"];
            whole
                && !paths.contains(&disk.device.as_str())
                && !removable.iter().any(|r| disk.device.starts_with(r))
        }
        named => named.contains(&disk.device),
    };
    let drives =
        layout.disks().filter(is_drive).filter(|disk| disk.size_bytes >= RULES.survey_size_min as u64);
    let mut drives: Vec<String> = drives.map(|disk| disk.device.clone()).collect();
    drives.sort_by(|a, b| natural(a, b));
    drives
}

/// Whether others load a drive so much that it is left alone: by the interval before the load.
#[must_use]
pub fn is_busy(snapshot: &Snapshot, host: &str, device: &str) -> bool {
    let intervals = snapshot.disks.iter().filter(|interval| interval.host == host);
    let rates = intervals.flat_map(|interval| &interval.disks).find(|rates| rates.device == device);
    rates.is_some_and(|rates| rates.busy > RULES.survey_busy)
}

/// The device that a sample read, by its name.
fn device(sample: &Sample) -> Option<&str> {
    match &sample.test.kind.get::<DiskPlan>()?.target {
        DiskTarget::Existing { path } => path.to_str()?.strip_prefix("/dev/"),
        _ => None,
    }
}

/// Hosts whose drives are their own: those of the operator's own machine are one, for namespaces see the
/// drives of their machine.
pub fn hosts_with_drives(snapshot: &Snapshot) -> impl Iterator<Item = (&HostName, &HostFacts)> {
    let is_here = |host: &str| {
        let host = snapshot.inventory.host(host);
        host.is_some_and(|h| matches!(h.transport, TransportSpec::Local | TransportSpec::Netns { .. }))
    };
    let first = snapshot.facts.keys().find(|host| is_here(host));
    snapshot.facts.iter().filter(move |(host, _)| first == Some(host) || !is_here(host))
}

/// The drive that a sample of a survey read: such tests end by bytes, and only read.
fn surveyed_by(sample: &Sample) -> Option<&str> {
    let plan = sample.test.kind.get::<DiskPlan>()?;
    let gentle = plan.bytes_max.is_some() && plan.phases.iter().all(|phase| !phase.writes());
    device(sample).filter(|_| gentle)
}

/// Whether a sample is one of a survey of drives.
#[must_use]
pub fn is_of_survey(sample: &Sample) -> bool {
    surveyed_by(sample).is_some()
}

/// The drives of a run that surveyed them, the worst first; none of any other run. What was promised of them
/// is not known afterwards.
#[must_use]
pub fn surveyed_in(snapshot: &Snapshot) -> Vec<SurveyedDrive> {
    let mut read: Vec<(&str, &str)> = Vec::new();
    for sample in &snapshot.samples {
        read.extend(surveyed_by(sample).map(|device| (sample.test.from.as_str(), device)));
    }
    if read.is_empty() {
        return Vec::new();
    }
    // Drives that were chosen by name may be among those that no survey takes by itself.
    let usual: BTreeMap<&str, Vec<String>> =
        hosts_with_drives(snapshot).map(|(host, facts)| (host.as_str(), surveyed(facts, &[]))).collect();
    let is_usual = |(host, device): &(&str, &str)| {
        usual.get(host).is_some_and(|drives| drives.iter().any(|drive| drive == device))
    };
    let all_usual = read.iter().all(is_usual);
    let mut named: Vec<String> = read.into_iter().map(|(_, device)| device.to_owned()).collect();
    named.sort_unstable();
    named.dedup();
    survey(snapshot, if all_usual { &[] } else { &named }, DrivePromise::default())
}

/// All drives, the worst first.
#[must_use]
pub fn survey(snapshot: &Snapshot, named: &[String], promise: DrivePromise) -> Vec<SurveyedDrive> {
    let mut drives: Vec<SurveyedDrive> = Vec::new();
    for (host, facts) in hosts_with_drives(snapshot) {
        let layout = layout(facts);
        for name in surveyed(facts, named) {
            drives.extend(drive(snapshot, host, facts, &layout, &name));
        }
    }
    compare(&mut drives, snapshot);
    for drive in &mut drives {
        promised(drive, promise);
        judge(drive);
    }
    let sick = |drive: &SurveyedDrive| drive.health.is_empty();
    drives.sort_by(|a, b| {
        let by_state = a.state.cmp(&b.state).then_with(|| sick(a).cmp(&sick(b)));
        by_state
            .then_with(|| a.least().total_cmp(&b.least()))
            .then_with(|| natural(&a.host, &b.host))
            .then_with(|| natural(&a.device, &b.device))
    });
    drives
}

/// What was seen of one drive, compared with nothing.
fn drive(
    snapshot: &Snapshot,
    host: &str,
    facts: &HostFacts,
    layout: &Layout,
    name: &str,
) -> Option<SurveyedDrive> {
    let members = volume(layout, facts, name)?;
    let of_drive = |sample: &&Sample| sample.test.from == host && device(sample) == Some(name);
    let samples: Vec<&Sample> = snapshot.samples.iter().filter(of_drive).collect();
    let results: Vec<&DiskResult> = samples.iter().flat_map(|sample| phases(sample)).collect();
    let best = |random: bool| {
        let own = results.iter().filter(|r| r.phase.random == random && r.is_evidence() && !is_shared(r));
        let figure = |result: &&&DiskResult| {
            let took = result.took_ns();
            let us = |q: f64| took.quantile(q).unwrap_or(0) as f64 / 1e3;
            let should = reach(&members, &result.phase);
            let (per_s, class) = if random {
                (result.requests_per_s(), should.map(|s| s.requests_per_s))
            } else {
                (result.bytes_per_s(), should.map(|s| s.bytes_per_s))
            };
            let of_class = class.filter(|class| *class > 0.0).map(|class| per_s / class);
            DriveFigure {
                per_s,
                bytes_per_s: result.bytes_per_s(),
                p50_us: us(0.5),
                p99_us: us(0.99),
                elapsed_s: result.elapsed_s,
                of_class,
                ..DriveFigure::default()
            }
        };
        let all: Vec<DriveFigure> = own.map(|result| figure(&result)).collect();
        let elapsed_s = all.iter().map(|figure| figure.elapsed_s).fold(0.0, f64::max);
        let best = all.into_iter().max_by(|a, b| a.per_s.total_cmp(&b.per_s));
        best.map(|best| DriveFigure { elapsed_s, ..best })
    };
    let (random, sequential) = (best(true), best(false));
    let state = if random.is_some() || sequential.is_some() {
        DriveState::Fine
    } else if is_busy(snapshot, host, name) || results.iter().any(|r| is_shared(r)) {
        DriveState::Busy
    } else {
        DriveState::Unknown(reason(&samples, &results))
    };
    let word = |fact: &str| text(facts, name, fact).unwrap_or_default().trim().to_owned();
    Some(SurveyedDrive {
        host: host.to_owned(),
        device: name.to_owned(),
        model: word("model"),
        firmware: word("firmware"),
        class: members.class,
        size_bytes: layout.get(name).map_or(0, |disk| disk.size_bytes),
        state,
        rounds: samples.len(),
        random,
        sequential,
        equals: 0,
        same_firmware: false,
        unlike: Vec::new(),
        health: health(facts, name),
    })
}

fn phases(sample: &Sample) -> &[DiskResult] {
    let end = match &sample.outcome {
        Outcome::Measured(m) => m.tx.as_ref().and_then(|tx| tx.disk.as_deref()),
        _ => None,
    };
    end.map_or(&[], |end| end.phases.as_slice())
}

/// Whether the device moved more meanwhile than the load asked for: others were there.
fn is_shared(result: &DiskResult) -> bool {
    let own = (result.read.bytes + result.write.bytes) as f64;
    let others = |moved: u64| (moved as f64 - own).max(0.0);
    result
        .device
        .is_some_and(|device| others(device.bytes) > RULES.survey_others * own + RULES.survey_others_bytes)
}

/// Why there is no figure.
fn reason(samples: &[&Sample], results: &[&DiskResult]) -> String {
    let failed = samples.iter().find_map(|sample| match &sample.outcome {
        Outcome::Measured(_) => None,
        Outcome::NothingThrough { reason } | Outcome::Invalid { reason } | Outcome::Gap { reason } => {
            Some(reason.clone())
        }
    });
    let doubt = || results.iter().find_map(|r| r.doubts.first().map(|doubt| r.reason(*doubt)));
    failed.or_else(doubt).unwrap_or_else(|| "it was not measured".to_owned())
}

/// What is bad of a drive's health.
fn health(facts: &HostFacts, device: &str) -> Vec<DriveNote> {
    let head = format!("disk_health.{}", device.replace('.', "/"));
    let of = |fact: &str| facts.readings.get(&format!("{head}.{fact}"));
    let number = |fact: &str| of(fact)?.number(0);
    let mut notes = Vec::new();
    let mut note = |fact: &str| {
        let value = of(fact).map(ToString::to_string).unwrap_or_default();
        notes.push(DriveNote { fact: fact.to_owned(), value, usual: None });
    };
    if of("warnings").is_some() {
        note("warnings");
    }
    ZERO.iter().filter(|fact| number(fact).is_some_and(|count| count > 0.0)).for_each(|fact| note(fact));
    if of("smart_status").is_some_and(|status| status.to_string() == "failing") {
        note("smart_status");
    }
    if number("temperature_c").zip(number("max_temperature_c")).is_some_and(|(now, most)| now >= most) {
        note("temperature_c");
    }
    if number("used_percent").is_some_and(|used| used >= 100.0) {
        note("used_percent");
    }
    if of("state").is_some_and(|state| !GOOD.contains(&state.to_string().as_str())) {
        note("state");
    }
    notes
}

/// Drives that are equals: of one class, model and size, and of one firmware.
type Make<'a> = (Class, &'a str, u64, &'a str);

fn make(drive: &SurveyedDrive, with_firmware: bool) -> Make<'_> {
    let firmware = if with_firmware { drive.firmware.as_str() } else { "" };
    (drive.class, drive.model.as_str(), drive.size_bytes, firmware)
}

/// Puts every drive beside its equals.
fn compare(drives: &mut [SurveyedDrive], snapshot: &Snapshot) {
    let seen = drives.to_vec();
    let mut groups: BTreeMap<(Make<'_>, bool), Vec<usize>> = BTreeMap::new();
    for (at, drive) in seen.iter().enumerate() {
        for with_firmware in [true, false] {
            groups.entry((make(drive, with_firmware), with_firmware)).or_default().push(at);
        }
    }
    for (at, drive) in drives.iter_mut().enumerate() {
        let group = |with_firmware: bool| {
            let others = groups.get(&(make(&seen[at], with_firmware), with_firmware)).into_iter().flatten();
            others.filter(|other| **other != at).map(|other| &seen[*other]).collect::<Vec<_>>()
        };
        let same = group(true);
        drive.same_firmware = same.len() >= RULES.survey_equals_min;
        let others = if drive.same_firmware { same } else { group(false) };
        drive.equals = others.len();
        if others.len() < RULES.survey_equals_min {
            continue;
        }
        let random: Vec<DriveFigure> = others.iter().filter_map(|other| other.random).collect();
        let row: Vec<DriveFigure> = others.iter().filter_map(|other| other.sequential).collect();
        beside(drive.random.as_mut(), &random);
        beside(drive.sequential.as_mut(), &row);
        drive.unlike = unlike(snapshot, &seen[at], &others);
    }
}

/// A figure beside those of the equals: what is within their own spread is not below them, and of short tests
/// none is.
fn beside(figure: Option<&mut DriveFigure>, others: &[DriveFigure]) {
    let Some(figure) = figure.filter(|_| others.len() >= RULES.survey_equals_min) else { return };
    let rates: Vec<f64> = others.iter().map(|other| other.per_s).collect();
    figure.usual = median(&rates).filter(|usual| *usual > 0.0);
    let low = quantile(&rates, RULES.survey_low_quantile).unwrap_or(0.0);
    let is_within = figure.per_s >= RULES.survey_outside * low;
    let share = figure.usual.map(|usual| figure.per_s / usual);
    let is_low = !is_within && share.is_some_and(|share| share < RULES.survey_slow);
    figure.in_doubt = is_low && figure.elapsed_s < RULES.survey_clear_s;
    figure.of_equals =
        share.map(|share| if is_within || figure.in_doubt { share.max(RULES.survey_slow) } else { share });
}

/// Settings that most of the equals have otherwise.
fn unlike(snapshot: &Snapshot, drive: &SurveyedDrive, others: &[&SurveyedDrive]) -> Vec<DriveNote> {
    let of = |drive: &SurveyedDrive, fact: &str| {
        Some(reading(snapshot.facts.get(&drive.host)?, &drive.device, fact)?.to_string())
    };
    let note = |fact: &&str| {
        let value = of(drive, fact)?;
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        others.iter().filter_map(|other| of(other, fact)).for_each(|v| *counts.entry(v).or_default() += 1);
        let all: usize = counts.values().sum();
        let (usual, count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
        let is_usual = count as f64 > RULES.survey_majority * all as f64;
        (is_usual && usual != value).then(|| DriveNote {
            fact: (*fact).to_owned(),
            value,
            usual: Some(usual),
        })
    };
    ALIKE.iter().filter_map(note).collect()
}

fn promised(drive: &mut SurveyedDrive, promise: DrivePromise) {
    let share = |figure: &mut Option<DriveFigure>, promise: Option<f64>| {
        if let (Some(figure), Some(promise)) = (figure, promise.filter(|promise| *promise > 0.0)) {
            figure.of_promise = Some(figure.per_s / promise);
        }
    };
    share(&mut drive.random, promise.requests_per_s);
    share(&mut drive.sequential, promise.bytes_per_s);
}

/// What becomes of a drive that was measured.
fn judge(drive: &mut SurveyedDrive) {
    if drive.state != DriveState::Fine {
        return;
    }
    let figures: Vec<DriveFigure> = [drive.random, drive.sequential].into_iter().flatten().collect();
    let below = |of: fn(&DriveFigure) -> Option<f64>, least: f64| {
        figures.iter().filter_map(of).any(|share| share < least)
    };
    drive.state = if below(|f| f.of_equals, RULES.survey_slow) {
        DriveState::Slow
    } else if below(|f| f.of_promise, RULES.survey_promise) {
        DriveState::BelowPromise
    } else if below(|f| f.of_class, RULES.survey_class) {
        DriveState::BelowClass
    } else {
        DriveState::Fine
    };
}

/// Drives that have to be measured once more before they are reported.
#[must_use]
pub fn again(drives: &[SurveyedDrive]) -> Vec<(HostName, String)> {
    let in_doubt = |drive: &&SurveyedDrive| {
        let low = matches!(drive.state, DriveState::Slow | DriveState::BelowPromise | DriveState::BelowClass);
        // What loaded the drive may have ended by then.
        let shared = drive.state == DriveState::Busy && drive.rounds > 0;
        let short = [drive.random, drive.sequential].into_iter().flatten().any(|figure| figure.in_doubt);
        (low || shared || short) && drive.rounds < RULES.survey_rounds
    };
    drives.iter().filter(in_doubt).map(|drive| (drive.host.clone(), drive.device.clone())).collect()
}
