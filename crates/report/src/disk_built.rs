//! A volume that was built, measured beside its plan: by the class of its drives, and by one of them that was
//! measured alone before. Fits 100 columns.

use std::fmt::Write as _;

use linerate_diagnose::disks::{Beside, VolumeMembers};
use linerate_model::disk_load::{DiskEnd, DiskResult};
use linerate_model::fact::Gap;
use linerate_model::printable::one_line;
use linerate_model::units;
use linerate_model::verdict::{Verdict, VerdictItem};
use linerate_storage::plan::{DriveKind, Rates, VolumeSpread};
use schemars::JsonSchema;
use serde::Serialize;

use super::heat::Style;
use super::words::volumes;

/// A figure below this share of what its drives promise is a finding, as in `linerate measure disk`.
const LOW: f64 = 0.5;
/// Widths of the columns.
const WHAT: usize = 18;
const FIGURE: usize = 16;

/// A volume that was built.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Built {
    /// Host.
    pub host: String,
    /// Its build in the journal.
    pub build: String,
    /// Path of the volume.
    pub device: String,
    /// Drives in it.
    pub drives: usize,
    /// Class of its drives in the plan.
    pub class: DriveKind,
    /// How long its first synchronisation was waited for, seconds.
    pub sync_s: Option<f64>,
    /// Run in the store that has the measurement.
    pub run: Option<String>,
    /// What was measured beside what was planned; empty where nothing was measured.
    pub rows: Vec<FigureRow>,
}

/// A figure.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FigureRow {
    /// What.
    pub what: &'static str,
    /// `requests/s` or `bytes/s`.
    pub unit: &'static str,
    /// By the class of the drives.
    pub by_class: f64,
    /// By one drive that was measured alone.
    pub by_drive: Option<f64>,
    /// Of the volume.
    pub measured: f64,
    /// Measured over what the drive promises, or else the class.
    pub share: f64,
    /// Whether it is evidence about the volume.
    pub is_evidence: bool,
    /// What binds, in a word.
    pub binds: String,
    /// The same in a sentence.
    pub sentence: String,
}

/// A figure of a plan or of a phase.
type Figure = (&'static str, &'static str, fn(&Rates) -> f64);
/// In the order of [`figures`].
const FIGURES: [Figure; 4] = [
    ("random reads", REQUESTS, |r| r.random_reads_per_s),
    ("random writes", REQUESTS, |r| r.random_writes_per_s),
    ("reading in a row", BYTES, |r| r.read_bytes_per_s),
    ("writing in a row", BYTES, |r| r.write_bytes_per_s),
];
const REQUESTS: &str = "requests/s";
const BYTES: &str = "bytes/s";

/// What was measured: random reads and writes, reads and writes in a row, in this order; nothing when a phase
/// is missing.
#[must_use]
pub fn figures(end: &DiskEnd) -> Option<Rates> {
    let [reads, writes, read, write] = end.phases.as_slice() else { return None };
    Some(Rates {
        random_reads_per_s: reads.requests_per_s(),
        random_writes_per_s: writes.requests_per_s(),
        read_bytes_per_s: read.bytes_per_s(),
        write_bytes_per_s: write.bytes_per_s(),
    })
}

/// Measured beside planned; `alone` is one drive.
#[must_use]
pub fn rows(
    planned: Rates,
    shape: VolumeSpread,
    alone: Option<&DiskEnd>,
    end: &DiskEnd,
    volume: Option<&VolumeMembers>,
) -> Vec<FigureRow> {
    let by_drive = alone.and_then(figures).map(|one| one.over(shape));
    let Some(measured) = figures(end) else { return Vec::new() };
    let row = |((what, unit, pick), (at, result)): (Figure, (usize, &DiskResult))| {
        // What of the drive is no evidence promises nothing.
        let trusted = alone.and_then(|alone| alone.phases.get(at)).is_some_and(DiskResult::is_evidence);
        let by_drive = by_drive.as_ref().map(pick).filter(|rate| trusted && *rate > 0.0);
        let (by_class, measured) = (pick(&planned), pick(&measured));
        let Beside { should, mut binds, mut sentence, .. } = volumes::beside(volume, result);
        let promised = by_drive.unwrap_or(by_class).max(f64::MIN_POSITIVE);
        let share = measured / promised;
        // What should bind does not, when so little was reached.
        if share < LOW && result.is_evidence() && should.is_some_and(|should| should.binds.word() == binds) {
            "not the drives".clone_into(&mut binds);
            "the drives promise more than twice of it: either what they share is in the way (processor, controller, cable), or one of them is slow; `linerate disk watch --all` on this host under this load shows which"
                .clone_into(&mut sentence);
        }
        FigureRow {
            what,
            unit,
            by_class,
            by_drive,
            measured,
            share,
            is_evidence: result.is_evidence(),
            binds,
            sentence,
        }
    };
    FIGURES.into_iter().zip(end.phases.iter().enumerate()).map(row).collect()
}

/// Figures far below what the drives promise, and those that are no evidence.
#[must_use]
pub fn verdict(built: &Built) -> Verdict {
    let low = built.rows.iter().filter(|row| row.is_evidence && row.share < LOW);
    let item = |row: &FigureRow| {
        let promised = figure(row, row.by_drive.unwrap_or(row.by_class));
        let sentence = format!(
            "{} {}: {} {} of {promised}: {}",
            built.host,
            built.device,
            row.what,
            figure(row, row.measured),
            row.sentence
        );
        VerdictItem::stated(Some(&built.host), &built.device, sentence)
    };
    let gap = |row: &FigureRow| Gap { what: row.what.into(), reason: row.sentence.clone() };
    let blind = built.rows.iter().filter(|row| !row.is_evidence).map(gap);
    Verdict::stating(low.map(item), blind.collect())
}

impl Built {
    /// Whether the volume falls far short of what its drives promise.
    #[must_use]
    pub fn is_low(&self) -> bool {
        self.rows.iter().any(|row| row.is_evidence && row.share < LOW)
    }

    /// Whether a figure says nothing.
    #[must_use]
    pub fn is_blind(&self) -> bool {
        self.rows.iter().any(|row| !row.is_evidence)
    }
}

fn figure(row: &FigureRow, value: f64) -> String {
    match row.unit {
        REQUESTS => format!("{}/s", units::short(value)),
        _ if value >= 1e9 => format!("{} GB/s", units::short(value / 1e9)),
        _ => format!("{} MB/s", units::short(value / 1e6)),
    }
}

/// The table, and what binds.
#[must_use]
pub fn text(built: &Built, style: Style) -> String {
    let mut text = String::new();
    let title = format!("{} on {}: planned and measured", one_line(&built.device), one_line(&built.host));
    let _ = writeln!(text, "{}", style.bold(&title));
    if let Some(seconds) = built.sync_s {
        let _ =
            writeln!(text, "the first synchronisation was waited for {}", super::disk_plan::hours(seconds));
    }
    if built.rows.is_empty() {
        text += "nothing was measured: `linerate measure disk --in FOLDER` on this host does when it is mounted\n";
        return text;
    }
    let heads =
        [format!("{} x class {}", built.drives, built.class), format!("{} x one drive", built.drives)];
    let _ = write!(text, "{:WHAT$}", "");
    for head in heads.iter().map(String::as_str).chain(["measured", "of that", "binds"]) {
        let _ = write!(text, "{head:>FIGURE$}");
    }
    text.push('\n');
    for row in &built.rows {
        let measured = figure(row, row.measured);
        let cells = [
            figure(row, row.by_class),
            row.by_drive.map_or_else(|| "-".to_owned(), |rate| figure(row, rate)),
            if row.is_evidence { measured } else { format!("({measured})") },
            if row.is_evidence { units::percent(row.share) } else { "-".to_owned() },
            one_line(&row.binds),
        ];
        let _ = write!(text, "{:WHAT$}", row.what);
        for cell in cells {
            let _ = write!(text, "{cell:>FIGURE$}");
        }
        text.push('\n');
    }
    for row in &built.rows {
        let _ = writeln!(text, "{}: {}.", row.what, one_line(&row.sentence));
    }
    text
}

#[cfg(test)]
mod tests {
    use linerate_diagnose::disks::Class;
    use linerate_model::disk_load::{DiskPhase, DiskRequests, Doubt, Durable};

    use super::*;

    fn end(rates: [u64; 4]) -> DiskEnd {
        let phase = |(at, count): (usize, u64)| {
            let (random, reads) = (at < 2, if at % 2 == 0 { 100 } else { 0 });
            let block_bytes = if random { 4096 } else { 1 << 20 };
            let done = DiskRequests {
                requests: count,
                bytes: count * u64::from(block_bytes),
                ..DiskRequests::default()
            };
            DiskResult {
                phase: DiskPhase {
                    random,
                    reads,
                    block_bytes,
                    depth: 4,
                    threads: 1,
                    direct: true,
                    durable: Durable::Never,
                    batch: 1,
                },
                read: if reads > 0 { done.clone() } else { DiskRequests::default() },
                write: if reads > 0 { DiskRequests::default() } else { done },
                flush_ns: linerate_model::histogram::Histogram::default(),
                elapsed_s: 1.0,
                last_flush_s: 0.0,
                cpu_s: 0.1,
                series: Vec::new(),
                way: "io_uring".into(),
                remark: None,
                device: None,
                doubts: Vec::new(),
            }
        };
        DiskEnd { phases: rates.into_iter().enumerate().map(phase).collect(), ..DiskEnd::default() }
    }

    const SHAPE: VolumeSpread = VolumeSpread { drives: 36, copies: 2, parity: 0, reads_one: false };

    fn planned() -> Rates {
        Rates::of_one(linerate_storage::plan::CLASSES[0]).over(SHAPE)
    }

    fn built(rows: Vec<FigureRow>) -> Built {
        Built {
            host: "store".into(),
            build: "disk-data".into(),
            device: "/dev/vg0/data".into(),
            drives: 36,
            class: DriveKind::Hdd,
            sync_s: Some(75.0),
            run: None,
            rows,
        }
    }

    #[test]
    fn a_volume_stands_beside_its_class_and_its_drive() {
        let mut alone = end([100, 90, 50, 40]);
        let volume = end([2700, 900, 800, 100]);
        let with = built(rows(planned(), SHAPE, Some(&alone), &volume, None));
        let text_of = text(&with, Style::default());
        let row = text_of.lines().find(|line| line.starts_with("random reads ")).unwrap();
        assert!(
            row.contains("5400/s")
                && row.contains("3600/s")
                && row.contains("2700/s")
                && row.contains("75 %"),
            "{row}"
        );
        assert!(text_of.lines().all(|line| line.chars().count() <= 100), "{text_of}");
        assert!(with.is_low() && !with.is_blind(), "100 of 720 in a row");
        // Far below what should bind, that is not what binds.
        let of = VolumeMembers {
            drives: 36,
            copies: 2,
            chunk_bytes: Some(64 << 10),
            ..VolumeMembers::drive(Class::Rotating)
        };
        let told = rows(planned(), SHAPE, Some(&alone), &volume, Some(&of));
        assert_eq!((told[3].binds.as_str(), told[3].share < LOW), ("not the drives", true));
        assert_ne!(told[0].binds, "not the drives");
        // A figure of the drive that is no evidence promises nothing; the class does.
        alone.phases[0].doubts.push(Doubt::Few);
        let rows = rows(planned(), SHAPE, Some(&alone), &volume, None);
        assert_eq!(rows[0].by_drive, None);
        assert!((rows[0].share - 0.5).abs() < 1e-9);
    }

    #[test]
    fn what_was_not_measured_is_said() {
        assert!(rows(planned(), SHAPE, None, &DiskEnd::default(), None).is_empty());
        assert!(text(&built(Vec::new()), Style::default()).contains("nothing was measured"));
    }
}
