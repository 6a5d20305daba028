//! A survey of drives as text: a row per drive with its figures beside those of its equals, the worst first,
//! and a sentence for each that needs one. Fits 100 columns.

use std::fmt::Write as _;

use linerate_diagnose::disks::{DriveFigure, DriveNote, DrivePromise, DriveState, SurveyedDrive};
use linerate_model::printable::{one_line, without_hint};
use linerate_model::units;

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
