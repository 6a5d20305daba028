//! Tables that people make: a matrix of rates, a list of measurements, a list of who stands on which machine. Markdown, CSV with
//! commas, semicolons or tabs, or columns with blanks between them. Rows come in; tests and memberships go out.
//!
//! Rows send and columns receive, unless the corner says it the other way round. A unit is looked for in the cell, in the corner and
//! in the lines above; without one the numbers are Mbit/s, and that is noted.

use linerate_model::load::TestKind;
use linerate_model::sample::{Measurement, Outcome};

use crate::context::is_host;
use crate::reader::{Block, Reader};
use crate::sink::{Membership, Raw, Sink};
use crate::units::{number, spoken, spoken_rate};

/// The format.
pub(crate) struct Matrix;

/// Words for the sending and the receiving side.
const FROM: [&str; 8] = ["from", "sender", "source", "src", "tx", "client", "sends", "send"];
const TO: [&str; 9] = ["to", "receiver", "destination", "dest", "dst", "rx", "server", "receives", "recv"];
/// Words for hosts, and for what they stand on.
const HOSTS: [&str; 6] = ["node", "nodes", "host", "hosts", "vm", "guest"];
const GROUPS: [&str; 8] =
    ["hypervisor", "rack", "switch", "chassis", "leaf", "blade", "enclosure", "machine"];
/// Cells in which nothing was measured, and in which nothing came through.
const EMPTY: [&str; 8] = ["", "-", "--", "–", "—", "n/a", "na", "x"];
const FAILED: [&str; 5] = ["fail", "failed", "timeout", "0", "0.0"];
/// Most columns of a table.
const COLUMNS_MAX: usize = 4096;

/// The sign between cells.
fn separator(line: &str) -> Option<char> {
    let line = line.trim();
    if line.starts_with('|') || line.contains(" | ") {
        return Some('|');
    }
    [',', ';', '\t'].into_iter().find(|sign| line.matches(*sign).count() >= 2)
}

fn cells(line: &str, sign: Option<char>) -> Vec<String> {
    let line = line.trim();
    match sign {
        Some('|') => line.trim_matches('|').split('|').map(clean).collect(),
        Some(sign) => line.split(sign).map(clean).collect(),
        None => line.split_whitespace().map(clean).collect(),
    }
}

/// Without what Markdown and spreadsheets put around a cell.
fn clean(cell: &str) -> String {
    cell.trim().trim_matches(['"', '\'', '`', '*']).trim().to_owned()
}

fn is_divider(line: &str) -> bool {
    let line = line.trim();
    line.contains("--") && line.chars().all(|c| "|-: +=".contains(c))
}

/// What a cell holds.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Cell {
    /// Nothing was measured.
    Empty,
    /// A rate in bit/s.
    Rate(f64),
}

/// Reads a cell; `None` when it is neither a rate nor empty.
fn rate(cell: &str, unit: f64) -> Option<Cell> {
    let lower = cell.to_lowercase();
    if EMPTY.contains(&lower.as_str()) {
        return Some(Cell::Empty);
    }
    if FAILED.contains(&lower.as_str()) {
        return Some(Cell::Rate(0.0));
    }
    // A decimal comma, where commas do not part the cells.
    number(cell)
        .or_else(|| number(&cell.replacen(',', ".", 1)))
        .map(|v| v * unit)
        .or_else(|| spoken(cell))
        .map(Cell::Rate)
}

/// What a table is.
enum Shape {
    /// Names of the columns; the rows receive.
    Square { columns: Vec<String>, turned: bool },
    /// Columns of sender, receiver and rate.
    Long { from: usize, to: usize, rate: usize },
    /// Columns of host and of what it stands on, with the kind of it.
    Members { host: usize, group: usize, kind: String },
}

fn word_in(cell: &str, words: &[&str]) -> Option<usize> {
    let lower = cell.to_lowercase();
    let mut parts = lower.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty());
    parts.position(|w| words.contains(&w))
}

/// Unit that a text names.
fn unit_in(text: &str) -> Option<f64> {
    text.split([' ', '\n', '\t', '|', '(', ')', '[', ']', ',', ';']).filter(|w| !w.is_empty()).find_map(
        |word| {
            // `4 MB/s` belongs to a sentence, `MB/s` is a unit.
            spoken_rate(word).filter(|_| word.starts_with(char::is_alphabetic))
        },
    )
}

/// Reads the head of a table with the row below it.
fn shape(head: &[String], below: &[String]) -> Option<Shape> {
    if head.len() < 2 || head.len() > COLUMNS_MAX || below.len() < 2 {
        return None;
    }
    let column = |words: &[&str]| head.iter().position(|c| word_in(c, words).is_some());
    if let (Some(from), Some(to)) = (column(&FROM), column(&TO))
        && from != to
    {
        let is_rate = |c: &String| {
            let lower = c.to_lowercase();
            unit_in(c).is_some()
                || ["throughput", "bandwidth", "rate", "bps", "mbit", "gbit"]
                    .iter()
                    .any(|w| lower.contains(w))
        };
        let rate = (0..head.len()).find(|i| *i != from && *i != to && is_rate(&head[*i]))?;
        let fits = below.len() > rate.max(from).max(to) && is_host(&below[from]) && is_host(&below[to]);
        return fits.then_some(Shape::Long { from, to, rate });
    }
    let exact = |words: &[&str]| head.iter().position(|c| words.contains(&c.to_lowercase().as_str()));
    if let (Some(host), Some(group)) = (exact(&HOSTS), exact(&GROUPS))
        && host != group
        && below.len() > host.max(group)
    {
        return Some(Shape::Members { host, group, kind: head[group].to_lowercase() });
    }
    // Columns with blanks may lack a corner.
    let corner = if head.len() == below.len() { Some(&head[0]) } else { None };
    let columns = if corner.is_some() { &head[1..] } else { head };
    let named =
        |name: &String| is_host(name) && name.chars().any(|c| c.is_alphabetic() || c == '.' || c == ':');
    let values = below.len() == columns.len() + 1 && below[1..].iter().all(|c| rate(c, 1.0).is_some());
    let (turned, told) = corner.map_or((false, false), |corner| {
        let (from, to) = (word_in(corner, &FROM), word_in(corner, &TO));
        (to.is_some_and(|t| from.is_none_or(|f| t < f)), from.is_some() || to.is_some())
    });
    // A table of anything else has other names in its rows than in its columns.
    let same = columns.contains(&below[0]) || told;
    let fits = columns.len() >= 2 && columns.iter().all(named) && named(&below[0]) && values && same;
    fits.then(|| Shape::Square { columns: columns.to_vec(), turned })
}

/// Head, first row and separator of a table that begins here.
fn begin(block: &Block<'_>) -> Option<(Shape, Option<char>)> {
    let sign = separator(block.first());
    let next = if is_divider(block.line(1)) { 2 } else { 1 };
    let shape = shape(&cells(block.first(), sign), &cells(block.line(next), sign))?;
    Some((shape, sign))
}

impl Reader for Matrix {
    fn name(&self) -> &'static str {
        "table"
    }

    fn describes(&self) -> &'static str {
        "matrix or list of rates, list of hosts by hypervisor: Markdown, CSV or columns"
    }

    fn names_hosts(&self) -> bool {
        true
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        begin(block).is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let Some((shape, sign)) = begin(block) else {
            out.unread(0, "no table of rates between hosts");
            return 1;
        };
        let head = block.first();
        let above = unit_in(&block.at.label);
        let unit = unit_in(head).or(above);
        out.used_label = above.is_some() || block.at.label_says_layer();
        let mut table = Table { shape, unit: unit.unwrap_or(1e6), used: false, block };
        let mut taken = 1;
        for (at, line) in block.lines.iter().enumerate().skip(1) {
            if is_divider(line) {
                taken = at + 1;
                continue;
            }
            match table.row(&cells(line, sign), out) {
                Ok(()) => {}
                Err(None) => break,
                Err(Some(why)) => out.unread(at, why),
            }
            taken = at + 1;
        }
        if table.used && unit.is_none() {
            out.note(format!(
                "{}: no unit is named in the table: its numbers are read as Mbit/s",
                block.at.file
            ));
        }
        taken
    }
}

struct Table<'b> {
    shape: Shape,
    unit: f64,
    /// Numbers without a unit of their own were used.
    used: bool,
    block: &'b Block<'b>,
}

impl Table<'_> {
    /// One row: `Err(None)` when the table has ended, `Err(Some(…))` when this row cannot be used.
    fn row(&mut self, cells: &[String], out: &mut Sink) -> Result<(), Option<String>> {
        match &self.shape {
            Shape::Square { columns, turned } => {
                let (columns, turned) = (columns.clone(), *turned);
                let Some(name) = cells.first().filter(|n| is_host(n)) else { return Err(None) };
                if cells.len() != columns.len() + 1 {
                    let why = format!("{} values for {} columns", cells.len() - 1, columns.len());
                    return Err((cells.len() > 2).then_some(why));
                }
                let rates: Vec<Option<Cell>> = cells[1..].iter().map(|c| rate(c, self.unit)).collect();
                if rates.iter().all(Option::is_none) {
                    return Err(None);
                }
                for ((column, value), cell) in columns.iter().zip(&rates).zip(&cells[1..]) {
                    match value {
                        Some(Cell::Rate(bps)) if column != name => {
                            self.used |= number(cell).is_some();
                            let (from, to) = if turned { (column, name) } else { (name, column) };
                            self.put(from, to, *bps, out);
                        }
                        Some(_) => {}
                        None => out.note(format!(
                            "{}: `{}` is no rate",
                            self.block.at.file,
                            cell.chars().take(40).collect::<String>()
                        )),
                    }
                }
                Ok(())
            }
            Shape::Long { from, to, rate: at } => {
                let (from, to, at) = (*from, *to, *at);
                let (Some(from), Some(to), Some(cell)) = (cells.get(from), cells.get(to), cells.get(at))
                else {
                    return Err(None);
                };
                if !is_host(from) || !is_host(to) {
                    return Err(None);
                }
                match rate(cell, self.unit) {
                    Some(Cell::Rate(bps)) => {
                        self.used |= number(cell).is_some();
                        self.put(from, to, bps, out);
                        Ok(())
                    }
                    Some(Cell::Empty) => Ok(()),
                    None => Err(Some("no rate".to_owned())),
                }
            }
            Shape::Members { host, group, kind } => {
                let (Some(hosts), Some(group)) = (cells.get(*host), cells.get(*group).filter(|g| is_host(g)))
                else {
                    return Err(None);
                };
                for host in hosts.split([',', ' ']).map(str::trim).filter(|h| is_host(h)) {
                    out.members.push(Membership {
                        host: host.to_owned(),
                        group: group.clone(),
                        kind: kind.clone(),
                    });
                    out.readings += 1;
                }
                Ok(())
            }
        }
    }

    fn put(&self, from: &str, to: &str, bps: f64, out: &mut Sink) {
        let outcome = if bps == 0.0 {
            Outcome::NothingThrough { reason: "the table says so".to_owned() }
        } else {
            Outcome::Measured(Box::new(Measurement { throughput_bps: Some(bps), ..Measurement::default() }))
        };
        out.sample(Raw {
            from: from.to_owned(),
            to: to.to_owned(),
            layer: self.block.at.layer(),
            // How long it took nobody tells; ten seconds is what the usual tools take.
            kind: TestKind::Tcp { streams: 1, duration_ms: 10_000 },
            outcome,
            flow: None,
            start_ms: 0,
            variant: None,
        });
    }
}
