//! `iostat -x` of sysstat, old and new columns, in KB or MB: reports come in, figures by device go out. The
//! first report counts since boot; where others follow, it is left out, and of the others the median counts.
//!
//! `-h` puts the device behind its values, the values of a device into several tables, and a unit behind
//! each: `32.1k`, `96.4%`.

use std::collections::BTreeMap;

use linerate_model::snapshot::{StorageFigure, StoragePattern, StorageSubject};

use crate::reader::{Block, Reader};
use crate::sink::Sink;
use crate::units::number;

/// The format.
pub(crate) struct Iostat;

/// Bytes of a sector, in which old versions count (`rsec/s`).
const SECTOR: f64 = 512.0;

/// Names of the columns in front of `Device`, as `-h` prints a part of them.
fn part_heading(line: &str) -> Option<Vec<&str>> {
    let columns: Vec<&str> = line.split_whitespace().collect();
    let (last, columns) = columns.split_last()?;
    let known = columns.iter().any(|c| ["r/s", "w/s", "d/s", "f/s", "%util"].contains(c));
    (*last == "Device" && known).then(|| columns.to_vec())
}

/// A value with the unit that `-h` puts behind it: kB, or MB in a column of these.
fn value(column: &str, word: &str) -> Option<f64> {
    // Some languages write a comma.
    let word = word.trim_end_matches('%').replace(',', ".");
    if let Some(plain) = number(&word) {
        return Some(plain);
    }
    let unit = word.chars().next_back()?;
    let kilobytes = number(word.trim_end_matches(unit))?
        * match unit {
            'B' => 1.0 / 1024.0,
            'k' => 1.0,
            'M' => 1024.0,
            'G' => 1_048_576.0,
            'T' => 1_073_741_824.0,
            _ => return None,
        };
    Some(if column.contains("MB/s") { kilobytes / 1024.0 } else { kilobytes }).filter(|v| v.is_finite())
}

/// Values of one device by column.
type Columns<'l> = BTreeMap<&'l str, f64>;

/// Values of one device with those of its tables, as far as they have come.
#[derive(Default)]
struct Parts<'l> {
    /// By device, one for each report, with the line of the first of them.
    devices: BTreeMap<&'l str, Vec<(usize, Columns<'l>)>>,
}

impl<'l> Parts<'l> {
    /// A line below such a heading; whether it is one of its rows.
    fn row(&mut self, columns: &[&'l str], at: usize, line: &'l str) -> bool {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some((device, values)) = words.split_last().filter(|(_, values)| values.len() == columns.len())
        else {
            return false;
        };
        let read: Option<Columns<'l>> =
            columns.iter().zip(values).map(|(c, v)| Some((*c, value(c, v)?))).collect();
        let Some(read) = read.filter(|read| !read.is_empty()) else { return false };
        let reports = self.devices.entry(device).or_default();
        match reports.last_mut() {
            Some((_, last)) if read.keys().all(|column| !last.contains_key(column)) => last.extend(read),
            _ => reports.push((at, read)),
        }
        true
    }

    /// The rows of each device; what lacks a table is quoted.
    fn rows(self, out: &mut Sink) -> BTreeMap<String, Vec<Row>> {
        let mut found: BTreeMap<String, Vec<Row>> = BTreeMap::new();
        for (device, reports) in self.devices {
            for (at, columns) in reports {
                match Row::of(&columns) {
                    Some(row) => found.entry(device.to_owned()).or_default().push(row),
                    None => out.unread(at, "the other tables of this device are missing"),
                }
            }
        }
        found
    }
}

/// Names of the columns behind `Device`.
fn heading(line: &str) -> Option<Vec<&str>> {
    let mut words = line.split_whitespace();
    let first = words.next()?;
    let columns: Vec<&str> = words.collect();
    let known = columns.contains(&"%util") && columns.iter().any(|c| c.starts_with("r/s"));
    (first.trim_end_matches(':') == "Device" && known).then_some(columns)
}

/// `Linux 6.1.0-28-amd64 (arc-1) …`
fn host(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("Linux ")?.split_once(" (")?.1;
    rest.split_once(')').map(|(host, _)| host)
}

/// Values of one device in one line.
#[derive(Debug, Clone, Default)]
struct Row {
    read_bps: f64,
    write_bps: f64,
    reads: f64,
    writes: f64,
    read_merges: f64,
    write_merges: f64,
    read_ms: Option<f64>,
    write_ms: Option<f64>,
    busy: f64,
}

fn row(columns: &[&str], line: &str) -> Option<(String, Row)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (name, values) = words.split_first()?;
    if values.len() != columns.len() {
        return None;
    }
    let read: Option<Columns<'_>> =
        columns.iter().zip(values).map(|(c, v)| Some((*c, value(c, v)?))).collect();
    Some(((*name).to_owned(), Row::of(&read?)?))
}

impl Row {
    fn of(columns: &Columns<'_>) -> Option<Self> {
        let get = |column: &str| columns.get(column).copied();
        let bytes = |kind: char| {
            [
                (format!("{kind}kB/s"), 1024.0),
                (format!("{kind}MB/s"), 1_048_576.0),
                (format!("{kind}sec/s"), SECTOR),
            ]
            .iter()
            .find_map(|(column, factor)| Some(get(column)? * factor))
        };
        let both = get("await");
        Some(Self {
            read_bps: bytes('r')?,
            write_bps: bytes('w')?,
            reads: get("r/s")?,
            writes: get("w/s")?,
            read_merges: get("rrqm/s").unwrap_or(0.0),
            write_merges: get("wrqm/s").unwrap_or(0.0),
            read_ms: get("r_await").or(both),
            write_ms: get("w_await").or(both),
            busy: get("%util")? / 100.0,
        })
    }
}

impl Reader for Iostat {
    fn name(&self) -> &'static str {
        "iostat"
    }

    fn describes(&self) -> &'static str {
        "iostat -x"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        let line = block.first();
        heading(line).is_some()
            || part_heading(line).is_some()
            || line.starts_with("Linux ") && line.contains(" CPU)")
            || line.starts_with("avg-cpu:")
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let mut devices: BTreeMap<String, Vec<Row>> = BTreeMap::new();
        let mut columns: Vec<&str> = Vec::new();
        let (mut part, mut parts) = (Vec::new(), Parts::default());
        let mut taken = 0;
        let mut reports = 0;
        let mut cpu = false;
        let mut speaks_of = None;
        for (at, line) in block.lines.iter().enumerate() {
            if let Some(found) = heading(line) {
                columns = found;
                reports += 1;
            } else if let Some(found) = part_heading(line) {
                part = found;
            } else if !part.is_empty() && parts.row(&part, at, line) {
                // One of the tables of `-h`.
            } else if let Some((name, found)) = row(&columns, line).filter(|_| !columns.is_empty()) {
                devices.entry(name).or_default().push(found);
            } else if line.starts_with("avg-cpu:") {
                cpu = true;
            } else if std::mem::take(&mut cpu) && line.split_whitespace().all(|w| value("", w).is_some()) {
                // The values below `avg-cpu`.
            } else if !(line.trim().is_empty() || line.starts_with("Linux ") || is_time(line)) {
                break;
            }
            speaks_of = speaks_of.or_else(|| host(line));
            if !line.trim().is_empty() {
                taken = at + 1;
            }
        }
        if let Some(host) = speaks_of {
            out.speaks_of(block.at, host);
        }
        for (name, rows) in parts.rows(out) {
            figures(&name, &rows, rows.len(), out);
        }
        for (name, rows) in devices {
            figures(&name, &rows, reports, out);
        }
        taken.max(1)
    }
}

/// `11/21/26 18:38:04`, `Time: 10:01:02`
fn is_time(line: &str) -> bool {
    let line = line.trim().trim_start_matches("Time:").trim();
    line.len() < 40
        && line.contains(':')
        && line.chars().all(|c| c.is_ascii_digit() || " :/.-APMTZ+".contains(c))
}

fn figures(name: &str, rows: &[Row], reports: usize, out: &mut Sink) {
    // Each report has a line for the device, unless it came later.
    let rows = if reports > 1 && rows.len() == reports { &rows[1..] } else { rows };
    let median = |pick: &dyn Fn(&Row) -> f64| {
        let mut values: Vec<f64> = rows.iter().map(pick).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(0.0)
    };
    let busy = Some(median(&|r| r.busy).clamp(0.0, 1.0));
    let figure = |pattern, bytes: f64, requests: f64, merges: f64, wait: Option<f64>| StorageFigure {
        what: StorageSubject::Device,
        variant: name.to_owned(),
        pattern,
        bytes_per_s: bytes,
        requests_per_s: Some(requests),
        merged_per_s: Some(merges),
        wait_ms: wait,
        busy,
        ..StorageFigure::default()
    };
    let wait = |pick: &dyn Fn(&Row) -> Option<f64>| {
        rows.iter().any(|r| pick(r).is_some()).then(|| median(&|r| pick(r).unwrap_or(0.0)))
    };
    out.figure(figure(
        StoragePattern::Read,
        median(&|r| r.read_bps),
        median(&|r| r.reads),
        median(&|r| r.read_merges),
        wait(&|r| r.read_ms),
    ));
    out.figure(figure(
        StoragePattern::Write,
        median(&|r| r.write_bps),
        median(&|r| r.writes),
        median(&|r| r.write_merges),
        wait(&|r| r.write_ms),
    ));
}
