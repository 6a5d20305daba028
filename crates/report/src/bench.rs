//! Loads on disks as text, as a value for programs, and as drawings: what was reached, what should be, what
//! binds. Fits 100 columns.

use std::fmt::Write as _;

use linerate_diagnose::disks::{self, Beside, Term, VolumeMembers};
use linerate_model::disk_load::{DiskEnd, DiskResult, DiskTarget};
use linerate_model::fact::HostFacts;
use linerate_model::kind::DiskPlan;
use linerate_model::load::LoadReport;
use linerate_model::printable::{clean, one_line};
use linerate_model::sample::{Outcome, Sample};
use linerate_model::snapshot::Snapshot;
use linerate_model::units;
use maud::{Markup, html};
use schemars::JsonSchema;
use serde::Serialize;

use super::distribution::{self, Line};
use super::view::View;
use super::words::volumes;

/// A figure below this share of what should be reached is a finding.
const LOW: f64 = 0.5;
/// Width of the column of names: the longest of the usual ones fits.
const NAME: usize = 27;
/// Widths of the others.
const WIDTHS: [usize; 9] = [8, 9, 7, 7, 7, 7, 5, 7, 12];
const HEADS: [&str; 9] = ["MB/s", "req/s", "p50", "p99", "p99.9", "max", "CPU", "of max", "binds"];

/// See the file's head.
#[derive(Debug)]
pub struct Bench;

fn plan(sample: &Sample) -> Option<&DiskPlan> {
    sample.test.kind.get()
}

fn end(sample: &Sample) -> Option<&DiskEnd> {
    match &sample.outcome {
        Outcome::Measured(m) => m.tx.as_ref()?.disk.as_deref(),
        _ => None,
    }
}

fn volume(facts: Option<&HostFacts>, end: &DiskEnd) -> Option<VolumeMembers> {
    let facts = facts?;
    Some(disks::volume(&disks::layout(facts), facts, &end.device)?.under(&end.filesystem))
}

/// Where something was measured: `/var/tmp on vg0/home (dm-2), ext4`.
fn place(plan: &DiskPlan, end: &DiskEnd, facts: Option<&HostFacts>) -> String {
    let path = one_line(&plan.target.path().to_string_lossy());
    let called = facts.map(|facts| disks::layout(facts).called(&end.device));
    let device = called.unwrap_or_else(|| end.device.clone());
    let mut words = match (&plan.target, device.as_str()) {
        (DiskTarget::Folder { .. }, "") => path,
        (DiskTarget::Folder { .. }, device) => format!("{path} on {}", one_line(device)),
        _ => path,
    };
    if !end.filesystem.is_empty() {
        let _ = write!(words, ", {}", one_line(&end.filesystem));
    }
    words
}

fn size(bytes: u64) -> String {
    let gib = bytes as f64 / f64::from(1 << 30);
    if gib >= 1.0 { format!("{} GiB", units::short(gib)) } else { format!("{} MiB", bytes >> 20) }
}

fn duration(ns: Option<u64>) -> String {
    ns.map_or_else(|| "-".to_owned(), |ns| units::duration_us(ns as f64 / 1e3).replace(' ', ""))
}

fn row(result: &DiskResult, beside: &Beside) -> String {
    let took = result.took_ns();
    let rate = |value: f64| if result.is_evidence() { value } else { 0.0 };
    let figure = |value: f64, text: String| if rate(value) > 0.0 { text } else { format!("({text})") };
    let (mb, requests) = (result.bytes_per_s() / 1e6, result.requests_per_s());
    let share = beside.share.map_or_else(|| "-".to_owned(), units::percent);
    let cpu = result.cpu_s / result.elapsed_s.max(f64::MIN_POSITIVE);
    let cells = [
        figure(mb, units::short(mb)),
        figure(requests, format!("{requests:.0}")),
        duration(took.quantile(0.5)),
        duration(took.quantile(0.99)),
        duration(took.quantile(0.999)),
        duration(took.max()),
        format!("{:.0}%", cpu * 100.0),
        share,
        beside.binds.clone(),
    ];
    let mut line = format!("{:NAME$}", result.phase.to_string());
    for (cell, width) in cells.iter().zip(WIDTHS) {
        let _ = write!(line, "{cell:>width$}");
    }
    line
}

/// The table of a host, and what it says in sentences.
fn table(plan: &DiskPlan, end: &DiskEnd, facts: Option<&HostFacts>) -> String {
    let volume = volume(facts, end);
    let way = end.phases.first().map_or("", |p| p.way.as_str());
    let mut text = format!("{} of {}, by {}\n", size(end.bytes), place(plan, end, facts), one_line(way));
    if let Some(volume) = &volume {
        let _ = writeln!(text, "{}", volumes::members(volume));
    }
    let _ = write!(text, "{:NAME$}", "test");
    for (head, width) in HEADS.iter().zip(WIDTHS) {
        let _ = write!(text, "{head:>width$}");
    }
    text.push('\n');
    let seen: Vec<(&DiskResult, Beside)> =
        end.phases.iter().map(|p| (p, volumes::beside(volume.as_ref(), p))).collect();
    for (result, beside) in &seen {
        let _ = writeln!(text, "{}", row(result, beside));
    }
    for (result, beside) in &seen {
        let _ = writeln!(text, "{}: {}.", result.phase, beside.sentence);
        for doubt in result.doubts.iter().filter(|d| !d.refuses_rate()) {
            let _ = writeln!(text, "{}: {}.", result.phase, result.reason(*doubt));
        }
    }
    if volume.as_ref().is_some_and(|v| seen.iter().all(|(r, _)| disks::reach(v, &r.phase).is_none())) {
        text += "What this volume should reach cannot be known from the outside: its drives do not tell what they are.\n";
    }
    let mut remarks: Vec<&str> = end.remarks.iter().map(String::as_str).collect();
    remarks.extend(end.phases.iter().filter_map(|p| p.remark.as_deref()));
    remarks.dedup();
    for remark in remarks {
        let _ = writeln!(text, "{}.", clean(remark).trim_end_matches('.'));
    }
    text
}

impl View for Bench {
    fn kind(&self) -> &'static str {
        "disk"
    }

    fn title(&self, sample: &Sample) -> String {
        clean(&sample.test.from)
    }

    fn headline(&self, _: &Sample, tx: &LoadReport, _: &LoadReport) -> String {
        let Some(end) = &tx.disk else { return "nothing was measured".to_owned() };
        let words = |p: &DiskResult| {
            let figure = if p.phase.block_bytes >= 1 << 17 {
                format!("{} MB/s", units::short(p.bytes_per_s() / 1e6))
            } else {
                format!("{:.0} a second", p.requests_per_s())
            };
            format!("{} {figure}", p.phase)
        };
        let trusted: Vec<String> = end.phases.iter().filter(|p| p.is_evidence()).map(words).collect();
        match trusted.as_slice() {
            [] => "no figure is evidence about the drive".to_owned(),
            some => some.join("; "),
        }
    }

    fn text(&self, sample: &Sample, tx: &LoadReport, rx: &LoadReport) -> String {
        self.text_on(sample, (tx, rx), None)
    }

    fn text_on(
        &self,
        sample: &Sample,
        ends: (&LoadReport, &LoadReport),
        facts: Option<&HostFacts>,
    ) -> String {
        match (plan(sample), &ends.0.disk) {
            (Some(plan), Some(end)) => table(plan, end, facts),
            _ => String::new(),
        }
    }

    fn drawings(&self, tx: &LoadReport, _: &LoadReport) -> Markup {
        html! {
            @if let Some(end) = &tx.disk {
                @for result in &end.phases {
                    h3 { (result.phase.to_string()) }
                    @let took = result.took_ns();
                    (distribution::histograms(&[Line { class: "healthy", name: "requests", of: &took }], "requests"))
                    @let points: Vec<(f64, f64)> = result.series.iter()
                        .map(|p| (f64::from(p.at_ms), p.bytes as f64 / 1e5)).collect();
                    @let line = Line { class: "healthy", name: "each tenth of a second", of: points.as_slice() };
                    (distribution::courses(&[line], |v| format!("{} MB/s", units::short(v)), "Rate"))
                }
            }
        }
    }

    fn is_finding(&self, tx: &LoadReport, _: &LoadReport) -> bool {
        tx.disk.as_ref().is_none_or(|end| end.phases.is_empty())
    }
}

/// A phase of a host for programs.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BenchPhaseView {
    host: String,
    device: String,
    test: String,
    requests_per_s: f64,
    bytes_per_s: f64,
    is_evidence: bool,
    doubts: Vec<String>,
    #[serde(flatten)]
    beside: Beside,
}

impl BenchPhaseView {
    /// Whether it falls short of what should be reached. A wire is no promise: many drives are slower, and
    /// nothing is wrong with them.
    #[must_use]
    pub fn is_low(&self) -> bool {
        let promised = self.beside.should.as_ref().is_some_and(|should| should.binds != Term::Link);
        promised && self.beside.share.is_some_and(|share| share < LOW)
    }

    /// Whether it says something about the drive.
    #[must_use]
    pub fn is_evidence(&self) -> bool {
        self.is_evidence
    }
}

/// Every measured phase beside what should be reached.
#[must_use]
pub fn told(snapshot: &Snapshot) -> Vec<BenchPhaseView> {
    let mut all = Vec::new();
    for sample in &snapshot.samples {
        let Some(end) = end(sample) else { continue };
        let volume = volume(snapshot.facts.get(&sample.test.from), end);
        all.extend(end.phases.iter().map(|result| BenchPhaseView {
            host: sample.test.from.clone(),
            device: end.device.clone(),
            test: result.phase.to_string(),
            requests_per_s: result.requests_per_s(),
            bytes_per_s: result.bytes_per_s(),
            is_evidence: result.is_evidence(),
            doubts: result.doubts.iter().map(|d| result.reason(*d)).collect(),
            beside: volumes::beside(volume.as_ref(), result),
        }));
    }
    all
}

#[cfg(test)]
mod tests {
    use linerate_model::disk_load::{DiskPhase, DiskRequests, Doubt, Durable};
    use linerate_model::fact::FactValue;
    use linerate_model::histogram::Histogram;

    use super::super::single::disks_headline;
    use super::super::view::tests_sample;
    use super::*;
    use linerate_model::kind::TestKind;

    fn phase() -> DiskPhase {
        DiskPhase {
            random: true,
            reads: 100,
            block_bytes: 4096,
            depth: 144,
            threads: 1,
            direct: true,
            durable: Durable::Never,
            batch: 1,
        }
    }

    fn result(phase: DiskPhase, doubts: Vec<Doubt>) -> DiskResult {
        let mut took_ns = Histogram::default();
        took_ns.record_many(26_000_000, 27_000);
        let read = DiskRequests { requests: 27_000, bytes: 27_000 * 4096, took_ns };
        DiskResult {
            phase,
            read,
            write: DiskRequests::default(),
            flush_ns: Histogram::default(),
            elapsed_s: 10.0,
            last_flush_s: 0.0,
            cpu_s: 0.31,
            series: Vec::new(),
            way: "io_uring".into(),
            remark: Some("without a file that is looked up once".into()),
            device: None,
            doubts,
        }
    }

    fn snapshot() -> Snapshot {
        let mut facts = HostFacts::default();
        let drives: Vec<String> = (0..36).map(|n| format!("sd{n}")).collect();
        for drive in &drives {
            facts.readings.insert(format!("disk.{drive}.rotational"), FactValue::Flag(true));
        }
        facts.readings.extend([
            ("disk.md0.on".to_owned(), FactValue::List(drives)),
            ("disk.md0.md_level".to_owned(), FactValue::Text("raid10".into())),
            ("disk.md0.md_chunk_bytes".to_owned(), FactValue::Int(65_536)),
        ]);
        let cached = DiskPhase { direct: false, ..phase() };
        let end = DiskEnd {
            device: "md0".into(),
            filesystem: "xfs".into(),
            bytes: 1 << 30,
            phases: vec![result(phase(), Vec::new()), result(cached, vec![Doubt::FromCache])],
            ..DiskEnd::default()
        };
        let target = DiskTarget::Folder { path: "/home".into(), bytes: 1 << 30 };
        let plan = DiskPlan {
            target,
            phases: vec![phase()],
            phase_ms: 10_000,
            bytes_max: None,
            requests_max: None,
            way: None,
        };
        let mut sample = tests_sample();
        sample.test.kind = TestKind::from(plan);
        sample.test.from = "store-1".into();
        sample.test.to = "store-1".into();
        let tx = LoadReport { disk: Some(Box::new(end)), ..LoadReport::default() };
        sample.outcome = Outcome::Measured(Box::new(linerate_model::sample::Measurement {
            tx: Some(Box::new(tx)),
            rx: Some(Box::default()),
            ..linerate_model::sample::Measurement::default()
        }));
        let mut snapshot = Snapshot { samples: vec![sample], ..Snapshot::default() };
        snapshot.facts.insert("store-1".into(), facts);
        snapshot
    }

    #[test]
    fn a_table_has_what_should_be_reached_beside_what_was() {
        let snapshot = snapshot();
        let text = super::super::single::tables(
            &snapshot,
            true,
            super::super::heat::Style { width: 100, ..Default::default() },
        );
        for words in [
            "1 GiB of /home on md0, xfs, by io_uring",
            "36 drives with rotating discs, each block twice, pieces of 64 KiB (md raid10)",
            "36 drives x 150 a second = 5400 requests a second",
            "no evidence",
            "(2700)",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        let row = text.lines().find(|l| l.starts_with("random read 4k x144  ")).unwrap();
        assert!(row.contains(" 2700 ") && row.contains(" 50 %") && row.ends_with("seeks"), "{row}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        let told = told(&snapshot);
        assert!(told[0].is_evidence() && !told[1].is_evidence());
        assert!(!told[0].is_low() && !told[1].is_low(), "half is not below half");
        let json = serde_json::to_value(&told[0]).unwrap();
        assert!((json["should"]["requests_per_s"].as_f64().unwrap() - 5400.0).abs() < 0.5, "{json}");
        assert!(
            disks_headline(&snapshot).contains("random read 4k x144 2700 a second"),
            "{}",
            disks_headline(&snapshot)
        );
    }
}
