//! A bench of a replica as text: each pattern on the local disk, on the transport and replicated, which share
//! is lost where, and the settings to try. Fits 100 columns.

use std::fmt::Write as _;

use linerate_model::disk_load::{DiskEnd, DiskTarget};
use linerate_model::drbd_bench::{BenchRequest, LocalDisk, PHASES};
use linerate_model::fact::FactValue;
use linerate_model::finding::Diagnosis;
use linerate_model::printable::{lines_of_error, one_line};
use linerate_model::sample::Outcome;
use linerate_model::snapshot::{Snapshot, StorageFigure, StoragePattern, StorageSubject};
use linerate_storage::drbd::{Share, TimeOfWrite};
use schemars::JsonSchema;
use serde::Serialize;

use super::card;
use super::heat::Style;
use super::names::setting;
use super::wrap::wrap;
use linerate_model::units::{duration_us, percent, short, sure};

/// All that is told.
#[derive(Debug, Clone, Copy)]
pub struct DrbdBenchView<'a> {
    /// What was measured.
    pub request: &'a BenchRequest,
    /// What was seen.
    pub snapshot: &'a Snapshot,
    /// What it means.
    pub diagnosis: &'a Diagnosis,
    /// Which share is lost where.
    pub shares: &'a [Share],
}

/// Columns: pattern, local disk, transport, replicated, reached, lost to the transport, lost to the
/// replication.
const NAME: usize = 22;
const WIDTHS: [usize; 6] = [16, 11, 18, 9, 11, 12];
const HEADS: [&str; 6] = ["local disk", "transport", "replicated", "reached", "transport", "replication"];

/// A setting that may be to blame, with what would try another value.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SuspectSetting {
    /// How probable it is that it is the cause, 0 to 1.
    pub probability: f64,
    /// Id of the cause and its remedy.
    pub id: String,
    /// What is suspected.
    pub title: String,
    /// Changes in words; empty where people have to do it.
    pub changes: Vec<String>,
    /// What to type; empty where people have to do it.
    pub try_it: String,
    /// What people would do.
    pub by_hand: String,
}

/// Settings that the findings blame, the most probable first.
#[must_use]
pub fn settings(told: &DrbdBenchView<'_>) -> Vec<SuspectSetting> {
    let mut all: Vec<SuspectSetting> = Vec::new();
    let causes = told.diagnosis.findings.iter().flat_map(|finding| &finding.causes);
    for cause in causes {
        let Some(remedy) = &cause.remedy else { continue };
        if let Some(known) = all.iter_mut().find(|s| s.id == remedy.id) {
            known.probability = known.probability.max(cause.probability);
            continue;
        }
        let try_it = if remedy.changes.is_empty() {
            String::new()
        } else {
            format!("linerate try {} --run {}", remedy.id, told.snapshot.id)
        };
        all.push(SuspectSetting {
            probability: cause.probability,
            id: remedy.id.clone(),
            title: cause.title.clone(),
            changes: remedy.changes.iter().map(card::change).collect(),
            try_it,
            by_hand: remedy.instruction.clone(),
        });
    }
    all.sort_by(|a, b| b.probability.total_cmp(&a.probability));
    all
}

/// What is not known, in sentences.
#[must_use]
pub fn gaps(told: &DrbdBenchView<'_>) -> Vec<String> {
    let mut gaps: Vec<String> =
        told.snapshot.gaps.iter().map(|gap| format!("{}: {}", gap.what, gap.reason)).collect();
    let mut once = |words: String| {
        if !gaps.contains(&words) {
            gaps.push(words);
        }
    };
    for sample in &told.snapshot.samples {
        let kind = sample.test.kind.name();
        match &sample.outcome {
            Outcome::Measured(m) => {
                let Some(end) = m.tx.as_ref().and_then(|tx| tx.disk.as_deref()) else { continue };
                for result in end.phases.iter().filter(|p| !p.is_evidence()) {
                    let why: Vec<String> = result.doubts.iter().map(|d| result.reason(*d)).collect();
                    once(format!("{} is no evidence: {}", result.phase, why.join("; ")));
                }
                if let Some(why) = m.tx.as_ref().and_then(|tx| tx.stopped.as_ref()) {
                    once(format!("{kind} on {}: {why}", sample.test.from));
                }
            }
            Outcome::NothingThrough { reason } | Outcome::Invalid { reason } | Outcome::Gap { reason } => {
                once(format!("{kind} on {}: {reason}", sample.test.from));
            }
        }
    }
    if told.request.local == LocalDisk::Skipped {
        once(
            "the local disk was not measured, so that no share can be told: --apart leaves the peer for some seconds, --beside FOLDER takes a file on the same drives"
                .to_owned(),
        );
    }
    gaps
}

/// The whole.
#[must_use]
pub fn page(told: &DrbdBenchView<'_>, style: Style) -> String {
    let mut out = String::new();
    for line in wrap(&head(told), style.width) {
        let _ = writeln!(out, "{line}");
    }
    out.push('\n');
    out += &table(told, style);
    for share in told.shares {
        if let Some(time) = &share.time {
            for line in wrap(&in_time(time), style.width) {
                let _ = writeln!(out, "{line}");
            }
        }
    }
    for line in others(told) {
        let _ = writeln!(out, "{line}");
    }
    out.push('\n');
    out += &verdict(told, style);
    out += &ranked(told, style);
    for gap in gaps(told) {
        for line in lines_of_error(&format!("Not seen: {gap}")).lines().flat_map(|l| wrap(l, style.width)) {
            let _ = writeln!(out, "{line}");
        }
    }
    let id = &told.snapshot.id;
    let _ = writeln!(out, "run {id}: `linerate show {id}` has every test");
    out
}

fn disk_of<'a>(told: &DrbdBenchView<'a>) -> Option<&'a DiskEnd> {
    told.snapshot.samples.iter().find_map(|sample| match &sample.outcome {
        Outcome::Measured(m) => m.tx.as_ref()?.disk.as_deref(),
        _ => None,
    })
}

/// What was measured where, in a paragraph.
fn head(told: &DrbdBenchView<'_>) -> String {
    let request = told.request;
    let fact = |field: &str| {
        let key = format!("drbd.{}.{field}", request.resource.replace('.', "/"));
        told.snapshot.facts.get(&request.primary)?.readings.get(&key).map(FactValue::to_string)
    };
    let protocol = fact("net.protocol").map_or_else(String::new, |p| format!(", protocol {}", one_line(&p)));
    let end = disk_of(told);
    let device = end.map_or_else(|| "the replica".to_owned(), |end| one_line(&end.device));
    let mib = end.map_or(0, |end| end.bytes >> 20);
    let path = one_line(&request.replica.path().to_string_lossy());
    let place = match &request.replica {
        DiskTarget::Folder { .. } => format!("a file of {mib} MiB in {path} on {device}"),
        _ => format!("{mib} MiB of {path}"),
    };
    let local = match &request.local {
        LocalDisk::SameFile => format!(
            "Local disk: the same file while {} had left its peer. DRBD's own log is in that figure; what was written meanwhile was copied afterwards.",
            request.primary
        ),
        LocalDisk::Beside(target) => format!(
            "Local disk: a file in {} of {}. It tells of the disk under the replica only if it is on the same drives.",
            one_line(&target.path().to_string_lossy()),
            request.primary
        ),
        LocalDisk::Skipped => "The local disk was not measured.".to_owned(),
    };
    format!(
        "{} on {} (primary), replicated to {}{protocol}; {place}, {} in turns. {local}",
        one_line(&request.resource),
        request.primary,
        request.peer,
        if request.rounds == 1 { "one round".to_owned() } else { format!("{} rounds", request.rounds) }
    )
}

fn rate(figure: Option<&StorageFigure>) -> String {
    let Some(figure) = figure else { return "-".to_owned() };
    let mb = format!("{} MB/s", short(figure.bytes_per_s / 1e6));
    match figure.requests_per_s {
        Some(requests) if !matches!(figure.pattern, StoragePattern::Write | StoragePattern::Stream) => {
            format!("{requests:.0}/s {mb}")
        }
        _ => mb,
    }
}

fn table(told: &DrbdBenchView<'_>, style: Style) -> String {
    let figure = |what: StorageSubject, pattern: StoragePattern, variant: Option<&str>| {
        let figures = &told.snapshot.storage;
        figures
            .iter()
            .find(|f| f.what == what && f.pattern == pattern && variant.is_none_or(|v| f.variant == v))
    };
    let line = |name: &str, cells: [String; 6]| {
        let mut line = format!("{name:NAME$}");
        for (cell, width) in cells.iter().zip(WIDTHS) {
            let _ = write!(line, "{cell:>width$}");
        }
        line.trim_end().to_owned()
    };
    let mut out = String::new();
    if told.snapshot.storage.iter().all(|f| f.what != StorageSubject::Replicated) {
        return out;
    }
    let above = format!("{:>width$}", "lost to", width = NAME + WIDTHS[..4].iter().sum::<usize>() + 9);
    let _ = writeln!(out, "{}", style.bold(&above));
    let _ = writeln!(out, "{}", style.bold(&line("", HEADS.map(str::to_owned))));
    for (pattern, phase) in PHASES {
        let Some(replicated) = figure(StorageSubject::Replicated, pattern, None) else { continue };
        let transport = figure(StorageSubject::Transport, StoragePattern::Stream, Some(&replicated.variant));
        let share = told.shares.iter().find(|s| s.pattern == pattern);
        let part = |pick: fn(&Share) -> f64| share.map_or_else(|| "-".to_owned(), |s| percent(pick(s)));
        let cells = [
            rate(figure(StorageSubject::LocalDisk, pattern, None)),
            if pattern == StoragePattern::SyncWrite { "-".to_owned() } else { rate(transport) },
            rate(Some(replicated)),
            part(|s| s.reached),
            part(|s| s.lost_to_transport),
            part(|s| s.lost_to_replication),
        ];
        let _ = writeln!(out, "{}", line(&phase.to_string(), cells));
    }
    out
}

fn in_time(time: &TimeOfWrite) -> String {
    let ms = |ms: f64| duration_us(ms * 1e3);
    format!(
        "A safe write takes {}: {} on the own disk, {} on the way there and back, {} for the peer's disk and DRBD.",
        ms(time.whole_ms),
        ms(time.local_ms),
        ms(time.way_ms),
        ms(time.rest_ms)
    )
}

/// Transports that the replica does not use.
fn others(told: &DrbdBenchView<'_>) -> Vec<String> {
    let used = told
        .snapshot
        .storage
        .iter()
        .find(|f| f.what == StorageSubject::Replicated)
        .map(|f| f.variant.as_str());
    if used.is_none() {
        return Vec::new();
    }
    let streams = told
        .snapshot
        .storage
        .iter()
        .filter(|f| f.what == StorageSubject::Transport && f.pattern == StoragePattern::Stream);
    let others = streams.filter(|f| Some(f.variant.as_str()) != used);
    others
        .map(|f| {
            format!(
                "{} between both hosts carries {} MB/s; the replica does not use it.",
                f.variant,
                short(f.bytes_per_s / 1e6)
            )
        })
        .collect()
}

fn verdict(told: &DrbdBenchView<'_>, style: Style) -> String {
    let mut out = String::new();
    let sentences: Vec<&String> = told.diagnosis.findings.iter().map(|f| &f.sentence).collect();
    if sentences.is_empty() {
        let words = if told.shares.is_empty() {
            "no verdict: there is nothing to compare the replica with"
        } else {
            "the replica reaches what disk and transport let through"
        };
        let _ = writeln!(out, "{}", style.fine(words));
    }
    for sentence in sentences {
        for line in wrap(&one_line(sentence), style.width) {
            let _ = writeln!(out, "{}", style.alarm(&line));
        }
    }
    for refused in &told.diagnosis.refused {
        let _ = writeln!(out, "Not used: {}", one_line(refused));
    }
    out
}

fn ranked(told: &DrbdBenchView<'_>, style: Style) -> String {
    let mut out = String::new();
    let all = settings(told);
    if all.is_empty() {
        return out;
    }
    let _ = writeln!(out, "\n{}", style.bold("What to change, the most probable first"));
    for (at, one) in all.iter().enumerate() {
        let _ = writeln!(out, "{:>2}. {} ({})", at + 1, one_line(&one.title), sure(one.probability));
        for change in &one.changes {
            let _ = writeln!(out, "      {}", one_line(change));
        }
        if one.try_it.is_empty() {
            for line in wrap(&format!("by hand: {}", one_line(&one.by_hand)), style.width.saturating_sub(6)) {
                let _ = writeln!(out, "      {line}");
            }
        } else {
            let _ = writeln!(out, "      {}", style.command(&one.try_it));
        }
    }
    let key = |name: &str| setting(&format!("drbd.{}.{name}", told.request.resource.replace('.', "/")));
    let facts = told.snapshot.facts.get(&told.request.primary);
    let in_force: Vec<String> = SHOWN
        .iter()
        .filter_map(|name| {
            let raw = format!("drbd.{}.{name}", told.request.resource.replace('.', "/"));
            let value = facts?.readings.get(&raw)?;
            Some(format!("{} {}", name.rsplit('.').next().unwrap_or(name), one_line(&value.to_string())))
        })
        .collect();
    if !in_force.is_empty() {
        let words = format!("In force on {} ({}): {}.", told.request.primary, key("*"), in_force.join(", "));
        for line in wrap(&words, style.width) {
            let _ = writeln!(out, "{line}");
        }
    }
    out
}

/// Settings of which people want to know the value beside the figures.
const SHOWN: [&str; 12] = [
    "net.protocol",
    "net.max-buffers",
    "net.max-epoch-size",
    "net.unplug-watermark",
    "net.sndbuf-size",
    "net.rcvbuf-size",
    "disk.al-extents",
    "disk.disk-barrier",
    "disk.disk-flushes",
    "disk.md-flushes",
    "disk.c-plan-ahead",
    "disk.c-max-rate",
];

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use linerate_knowledge::Knowledge;
    use linerate_model::fact::HostFacts;
    use linerate_storage::drbd::shares;

    use super::*;

    fn figure(what: StorageSubject, pattern: StoragePattern, mbyte_per_s: f64) -> StorageFigure {
        let variant = if what == StorageSubject::LocalDisk { "" } else { "underlay" };
        StorageFigure {
            host: "one".into(),
            what,
            variant: variant.into(),
            pattern,
            bytes_per_s: mbyte_per_s * 1e6,
            requests_per_s: Some(mbyte_per_s * 1e6 / 4096.0),
            wait_ms: Some(1.0),
            ..StorageFigure::default()
        }
    }

    #[test]
    fn a_page_has_the_shares_and_ranks_the_settings_with_what_to_type() {
        let mut snapshot = Snapshot { id: "20261122-060000-abcd".into(), ..Snapshot::default() };
        for host in ["one", "two"] {
            let mut facts = HostFacts::default();
            facts.readings.extend([
                ("drbd.r0.disk.al-extents".to_owned(), FactValue::Int(7)),
                ("drbd.r0.net.max-buffers".to_owned(), FactValue::Int(8000)),
                ("drbd.r0.net.protocol".to_owned(), FactValue::Text("C".into())),
            ]);
            snapshot.facts.insert(host.into(), facts);
        }
        snapshot.storage = vec![
            figure(StorageSubject::LocalDisk, StoragePattern::Write, 90.0),
            figure(StorageSubject::LocalDisk, StoragePattern::RandomWrite, 20.0),
            figure(StorageSubject::LocalDisk, StoragePattern::SyncWrite, 2.0),
            figure(StorageSubject::Replicated, StoragePattern::Write, 80.0),
            figure(StorageSubject::Replicated, StoragePattern::RandomWrite, 2.0),
            figure(StorageSubject::Replicated, StoragePattern::SyncWrite, 1.0),
            figure(StorageSubject::Transport, StoragePattern::Stream, 1100.0),
            figure(StorageSubject::Transport, StoragePattern::RoundTrip, 0.0),
        ];
        let diagnosis = linerate_diagnose::diagnose(&snapshot, &Knowledge::builtin().unwrap());
        let request = BenchRequest {
            resource: "r0".into(),
            primary: "one".into(),
            peer: "two".into(),
            replica: DiskTarget::Folder { path: "/mnt".into(), bytes: 1 << 26 },
            local: LocalDisk::SameFile,
            rounds: 3,
            time: Duration::from_secs(2),
        };
        let all = shares(&snapshot.storage);
        let told =
            DrbdBenchView { request: &request, snapshot: &snapshot, diagnosis: &diagnosis, shares: &all };
        let text = page(&told, Style { width: 100, ..Style::default() });
        let row = text.lines().find(|line| line.starts_with("random write 4k x16")).unwrap();
        assert!(row.contains("10 %") && row.contains("90 %"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        let first = &settings(&told)[0];
        assert_eq!(first.id, "drbd-activity-log");
        assert_eq!(first.changes.len(), 2, "both hosts: {first:?}");
        assert!(text.contains("linerate try drbd-activity-log --run 20261122-060000-abcd"), "{text}");
        assert!(text.contains("al-extents 7") && text.contains("A safe write takes"), "{text}");
        assert!(gaps(&told).is_empty(), "{:?}", gaps(&told));
        let blind = BenchRequest { local: LocalDisk::Skipped, ..request.clone() };
        assert_eq!(gaps(&DrbdBenchView { request: &blind, ..told }).len(), 1);
    }
}
