//! A survey of drives as text: a row per drive with its figures beside those of its equals, the worst first,
//! and a sentence for each that needs one. Fits 100 columns.

use std::fmt::Write as _;

use linerate_diagnose::disks::{
    DriveFigure, DriveNote, DrivePromise, DriveState, SurveyedDrive, surveyed_in,
};
use linerate_model::finding::Diagnosis;
use linerate_model::printable::{one_line, without_hint};
use linerate_model::snapshot::Snapshot;
use linerate_model::units;
use maud::{Markup, html};

use super::wrap::wrap;

const WIDTH: usize = 100;
/// Width of the columns of drives and models.
const NAME: usize = 24;
const MODEL: usize = 18;
/// Fine drives beyond so many are only counted.
const FINE_MAX: usize = 40;

struct Column {
    head: &'static str,
    width: usize,
    value: fn(&SurveyedDrive) -> String,
}

const COLUMNS: [Column; 6] = [
    Column { head: "read/s", width: 9, value: |d| figure(d.random, |f| format!("{:.0}", f.per_s)) },
    Column { head: "equals", width: 7, value: |d| share(d.random) },
    Column {
        head: "p99",
        width: 8,
        value: |d| figure(d.random, |f| units::duration_us(f.p99_us).replace(' ', "")),
    },
    Column { head: "MB/s", width: 8, value: |d| figure(d.sequential, |f| units::short(f.per_s / 1e6)) },
    Column { head: "equals", width: 7, value: |d| share(d.sequential) },
    Column { head: "state", width: 15, value: |d| state(d).to_owned() },
];

fn figure(figure: Option<DriveFigure>, text: fn(&DriveFigure) -> String) -> String {
    figure.as_ref().map_or_else(|| "-".to_owned(), text)
}

fn share(of: Option<DriveFigure>) -> String {
    let usual = |f: &DriveFigure| f.usual.map(|usual| format!("{:.0}%", 100.0 * f.per_s / usual));
    of.as_ref().and_then(usual).unwrap_or_else(|| "-".to_owned())
}

fn state(drive: &SurveyedDrive) -> &'static str {
    match drive.state {
        DriveState::Slow => "slow",
        DriveState::BelowPromise => "below promise",
        DriveState::BelowClass => "below class",
        DriveState::Busy => "busy",
        DriveState::Unknown(_) => "unknown",
        DriveState::Fine if !drive.health.is_empty() => "errors",
        DriveState::Fine if !drive.unlike.is_empty() => "set otherwise",
        DriveState::Fine => "ok",
    }
}

fn name(drive: &SurveyedDrive) -> String {
    one_line(&format!("{} {}", drive.host, drive.device))
}

/// A text in a column of its own, cut in the middle where it is too long: both ends of a name matter.
fn cell(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length < width {
        return format!("{text:width$}");
    }
    let half = (width - 2) / 2;
    let head: String = text.chars().take(half).collect();
    let tail: String = text.chars().skip(length - (width - 2 - half)).collect();
    format!("{head}~{tail} ")
}

/// The drives of a run that surveyed them, with their headline where the run has another; empty for any other
/// run.
pub(crate) fn of(snapshot: &Snapshot, diagnosis: &Diagnosis) -> String {
    let drives = surveyed_in(snapshot);
    if drives.is_empty() {
        return String::new();
    }
    let (headline, page) = (headline(&drives), page(&drives, DrivePromise::default()));
    if headline == diagnosis.headline { page } else { format!("{headline}\n\n{page}") }
}

/// Notes of a run without those that its drives have already.
pub(crate) fn other_notes(snapshot: &Snapshot, notes: &[String]) -> Vec<String> {
    let known = sentences(&surveyed_in(snapshot));
    notes.iter().filter(|note| !known.contains(note)).cloned().collect()
}

/// The drives as a section of a page.
pub(crate) fn section(snapshot: &Snapshot, diagnosis: &Diagnosis) -> Markup {
    let text = of(snapshot, diagnosis);
    html! {
        @if !text.is_empty() {
            pre.wide { (text.trim_end()) }
        }
    }
}

/// The table, and the sentences below it.
#[must_use]
pub fn page(drives: &[SurveyedDrive], promise: DrivePromise) -> String {
    let mut text = format!("{:NAME$}{:MODEL$}", "drive", "model");
    for column in &COLUMNS {
        let _ = write!(text, "{:>width$}", column.head, width = column.width);
    }
    text.push('\n');
    let plain = |drive: &&SurveyedDrive| state(drive) == "ok";
    let mut fine = 0;
    for drive in drives {
        fine += usize::from(plain(&drive));
        if fine > FINE_MAX && plain(&drive) {
            continue;
        }
        let model = if drive.model.is_empty() { "-" } else { drive.model.as_str() };
        let _ = write!(text, "{}{}", cell(&name(drive), NAME), cell(&one_line(model), MODEL));
        for column in &COLUMNS {
            let _ = write!(text, "{:>width$}", (column.value)(drive), width = column.width);
        }
        text.push('\n');
    }
    if fine > FINE_MAX {
        let _ = writeln!(text, "and {} more drives without a finding (--json has all)", fine - FINE_MAX);
    }
    let sentences = sentences(drives);
    if !sentences.is_empty() {
        text.push('\n');
    }
    for sentence in sentences {
        let _ = writeln!(text, "{}", wrap(&sentence, WIDTH - 4).join("\n    "));
    }
    let promised = [
        promise.requests_per_s.map(|rate| format!("{} reads/s", units::short(rate))),
        promise.bytes_per_s.map(|rate| format!("{} MB/s", units::short(rate / 1e6))),
    ];
    let promised: Vec<String> = promised.into_iter().flatten().collect();
    if !promised.is_empty() {
        let _ = writeln!(text, "Promised: {} for each drive.", promised.join(", "));
    }
    text
}

/// The run in a line.
#[must_use]
pub fn headline(drives: &[SurveyedDrive]) -> String {
    let mut hosts: Vec<&str> = drives.iter().map(|drive| drive.host.as_str()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let wrong = drives.iter().filter(|drive| drive.is_finding()).count();
    let all = format!("{} drives of {} hosts", drives.len(), hosts.len());
    match drives.first().filter(|_| wrong > 0) {
        Some(worst) => format!("{all}, {wrong} with a finding; worst: {}, {}", name(worst), state(worst)),
        None if drives.is_empty() => "no drive was surveyed".to_owned(),
        None => format!("{all}, none with a finding"),
    }
}

/// A sentence for each drive that needs one.
#[must_use]
pub fn sentences(drives: &[SurveyedDrive]) -> Vec<String> {
    drives.iter().filter_map(sentence).collect()
}

fn sentence(drive: &SurveyedDrive) -> Option<String> {
    let mut parts: Vec<String> = Vec::new();
    match &drive.state {
        DriveState::Unknown(reason) => {
            parts.push(format!("not measured: {}", one_line(without_hint(reason).0)));
        }
        DriveState::Busy if drive.rounds == 0 => {
            parts.push("not measured: other programs keep it busy".to_owned());
        }
        DriveState::Busy => {
            parts.push("no figure of its own: other programs read or wrote meanwhile".to_owned());
        }
        DriveState::Slow => {
            let firmware = if drive.same_firmware { " and firmware" } else { ", of other firmware too" };
            parts.extend(figures(drive, |f| f.of_equals));
            parts.push(format!(
                "than its {} equals of the same model{firmware}, in each of {} measurements",
                drive.equals, drive.rounds
            ));
        }
        DriveState::BelowPromise => {
            parts.extend(figures(drive, |f| f.of_promise));
            parts.push(format!("than promised, in each of {} measurements", drive.rounds));
        }
        DriveState::BelowClass => {
            parts.extend(figures(drive, |f| f.of_class));
            parts.push(format!("than its class should reach, in each of {} measurements", drive.rounds));
        }
        DriveState::Fine => {}
    }
    let speed = parts.join(" ");
    let note = |note: &DriveNote| match &note.usual {
        Some(usual) => format!("{} is {}, its equals have {usual}", note.fact, one_line(&note.value)),
        None => format!("{} is {}", note.fact, one_line(&note.value)),
    };
    let notes = drive.health.iter().chain(&drive.unlike).map(note);
    let all: Vec<String> = (!speed.is_empty()).then_some(speed).into_iter().chain(notes).collect();
    (!all.is_empty()).then(|| format!("{}: {}.", name(drive), all.join("; ")))
}

/// `3000 random reads/s are 0.33x` and so on, of the figures that are low.
fn figures(drive: &SurveyedDrive, of: fn(&DriveFigure) -> Option<f64>) -> Option<String> {
    let low = |figure: Option<DriveFigure>, text: fn(f64) -> String| {
        let figure = figure?;
        let share = of(&figure).filter(|share| *share < 1.0)?;
        Some((share, format!("{} ({} less)", text(figure.per_s), units::percent(1.0 - share))))
    };
    let random = low(drive.random, |rate| format!("{rate:.0} random reads/s"));
    let row = low(drive.sequential, |rate| format!("{} MB/s in a row", units::short(rate / 1e6)));
    let mut all: Vec<(f64, String)> = [random, row].into_iter().flatten().collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let words: Vec<String> = all.into_iter().map(|(_, text)| text).collect();
    (!words.is_empty()).then(|| words.join(" and "))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use linerate_model::disk_load::{DiskPhase, DiskTarget, Durable};
    use linerate_model::fact::{FactValue, HostFacts};
    use linerate_model::inventory::Layer;
    use linerate_model::kind::{DiskPlan, TestKind};
    use linerate_model::plan::Test;
    use linerate_model::sample::{Outcome, Sample};

    use super::super::heat::Style;
    use super::*;

    fn surveyed(bytes_max: Option<u64>) -> Snapshot {
        let mut facts = HostFacts::default();
        facts.readings.insert("disk.sda.size_bytes".to_owned(), FactValue::Int(1 << 40));
        facts.readings.insert("disk_health.sda.smart_status".to_owned(), FactValue::Text("failing".into()));
        let phase = DiskPhase {
            random: true,
            reads: 100,
            block_bytes: 4096,
            depth: 8,
            threads: 1,
            direct: true,
            durable: Durable::Never,
            batch: 1,
        };
        let plan = DiskPlan {
            target: DiskTarget::Existing { path: "/dev/sda".into() },
            phases: vec![phase],
            phase_ms: 1000,
            bytes_max,
            requests_max: None,
            way: None,
        };
        let host = "store-1".to_owned();
        let sample = Sample {
            test: Test::new(host.clone(), host.clone(), Layer::Underlay, TestKind::from(plan)),
            start_ms: 0,
            outcome: Outcome::Gap { reason: "it is <gone>".to_owned() },
            tx_counters: BTreeMap::default(),
            rx_counters: BTreeMap::default(),
        };
        let mut snapshot = Snapshot { samples: vec![sample], ..Snapshot::default() };
        snapshot.facts.insert(host, facts);
        snapshot
    }

    #[test]
    fn every_report_of_a_run_that_surveyed_drives_has_their_table_once() {
        let (snapshot, diagnosis) = (surveyed(Some(1 << 28)), Diagnosis::default());
        let row = |text: &str| text.lines().filter(|line| line.starts_with("store-1 sda  ")).count();
        let text = super::super::text::page(&snapshot, &diagnosis, Style::default());
        assert_eq!(row(&text), 1, "{text}");
        assert!(text.contains("smart_status is failing") && text.contains("1 with a finding"), "{text}");
        let html = super::super::html::page(&snapshot, &diagnosis, &[], None);
        assert!(row(&html) == 1 && html.contains("it is &lt;gone&gt;"), "{html}");
        let json = super::super::json::page(&snapshot, &diagnosis, None);
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["drives"][0]["health"][0]["fact"], "smart_status");
        // What the table has is no note as well.
        let notes = sentences(&surveyed_in(&snapshot));
        assert_eq!((notes.len(), other_notes(&snapshot, &notes).len()), (1, 0));
        // A bench has a table of its own.
        let bench = surveyed(None);
        assert_eq!(row(&super::super::text::page(&bench, &diagnosis, Style::default())), 0);
    }
}
