//! Hand-made tables: a matrix of rates, a list of measurements, a list of group memberships. Markdown, CSV
//! with commas, semicolons or tabs, or columns separated by blanks. Rows come in; tests and memberships go
//! out.
//!
//! Rows send and columns receive, unless the corner or the lines above state the opposite. A unit is searched
//! in the cell, in the corner and in the lines above; without one the numbers are Mbit/s, and that is noted.
//! Tables of RTTs or losses are not read. A comma is a decimal separator or a thousands separator, for the
//! whole table.

use linerate_model::kind::TcpPlan;
use linerate_model::sample::{Measurement, Outcome};

use super::table_words::{Sides, bare_unit_in, names_rate, other_than_rate, other_unit_in, sides, unit_in};
use crate::context::is_host;
use crate::limits::PAIRS_MAX;
use crate::reader::{Block, Reader};
use crate::sink::{Membership, Raw, Sink};
use crate::units::{abbreviated, number, spoken, spoken_rate};

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
const FAILED: [&str; 18] = [
    "fail",
    "failed",
    "timeout",
    "timed out",
    "connection timed out",
    "error",
    "err",
    "down",
    "unreachable",
    "host unreachable",
    "no route",
    "no route to host",
    "host is unreachable",
    "network unreachable",
    "network is unreachable",
    "destination host unreachable",
    "0",
    "0.0",
];
/// Rows that are checked to recognise a table.
const ROWS_TRIED: usize = 3;
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

/// The cells of a line, at most one more than a table may have columns.
fn cells(line: &str, sign: Option<char>) -> Vec<&str> {
    // Blanks alone are trimmed: an empty cell at the end is one, also where tabs part the cells.
    let line = line.trim_matches([' ', '\r', '\n']);
    match sign {
        Some('|') => {
            let line = line.trim();
            let inside = line.strip_prefix('|').unwrap_or(line);
            let inside = inside.strip_suffix('|').unwrap_or(inside);
            inside.split('|').map(clean).take(COLUMNS_MAX + 2).collect()
        }
        Some(sign) => {
            // Between quotes a sign parts nothing.
            let mut is_quoted = false;
            let parts = |c: char| {
                is_quoted ^= c == '"';
                c == sign && !is_quoted
            };
            line.split(parts).map(clean).take(COLUMNS_MAX + 2).collect()
        }
        None => words(line),
    }
}

/// The words of a line; what stands in brackets belongs to the word before: `arc-1 (vs-4)`.
fn words(line: &str) -> Vec<&str> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    for word in line.split_whitespace().take(2 * COLUMNS_MAX + 4) {
        let from = word.as_ptr() as usize - line.as_ptr() as usize;
        let to = from + word.len();
        let is_beside = word.len() > 2 && word.starts_with('(') && word.ends_with(')');
        match found.last_mut().filter(|_| is_beside && !bracketed_unit(word)) {
            Some(last) => last.1 = to,
            None => found.push((from, to)),
        }
    }
    found.into_iter().map(|(from, to)| clean(&line[from..to])).take(COLUMNS_MAX + 2).collect()
}

/// A host and what it stands on, of a head such as `arc-1 (vs-4)`.
fn with_group(name: &str) -> (&str, Option<&str>) {
    let parts =
        name.split_once('(').and_then(|(host, rest)| Some((host.trim(), rest.strip_suffix(')')?.trim())));
    match parts {
        Some((host, group)) if is_host(host) && is_host(group) && !bracketed_unit(name) => {
            (host, Some(group))
        }
        _ => (name, None),
    }
}

/// Without what Markdown and spreadsheets put around a cell.
fn clean(cell: &str) -> &str {
    cell.trim().trim_matches(['"', '\'', '`', '*']).trim()
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

/// What the numbers of a table mean.
#[derive(Debug, Clone, Copy)]
struct Scale {
    /// Bit/s of a number without a unit.
    unit: f64,
    /// A comma parts thousands, as in `9,400`.
    thousands: bool,
}

impl Scale {
    /// A number with its comma as a point, or without.
    fn plain(self, cell: &str) -> String {
        if self.thousands {
            return cell.replace(',', "");
        }
        match (cell.rfind('.'), cell.find(',')) {
            // `1.234,5`: the points part thousands.
            (Some(point), Some(comma)) if point < comma => cell.replace('.', "").replacen(',', ".", 1),
            _ => cell.replacen(',', ".", 1),
        }
    }

    fn number(self, cell: &str) -> Option<f64> {
        number(&self.plain(cell))
    }
}

/// Whether a number with commas can be one in which they part thousands.
fn has_thousands(number: &str) -> bool {
    let whole = number.split('.').next().unwrap_or_default();
    let mut groups = whole.split(',');
    let is_group = |g: &str, length: std::ops::RangeInclusive<usize>| {
        length.contains(&g.len()) && g.bytes().all(|b| b.is_ascii_digit())
    };
    groups.next().is_some_and(|first| is_group(first, 1..=3) && !first.starts_with('0'))
        && groups.all(|group| is_group(group, 3..=3))
}

/// Whether the commas of a table part thousands: each of them could, and numbers of so many Gbit/s there are
/// none.
fn parts_thousands<'c>(cells: impl Iterator<Item = &'c str>, unit: f64) -> bool {
    let number = |cell: &'c str| {
        let end = cell.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ',')).unwrap_or(cell.len());
        let unit = spoken_rate(&cell[end..]).unwrap_or(unit);
        cell[..end].contains(',').then(|| has_thousands(&cell[..end]) && unit < 1e9)
    };
    let mut all = cells.filter_map(number).peekable();
    all.peek().is_some() && all.all(|could| could)
}

/// Reads a cell; `None` when it is neither a rate nor empty.
fn rate(cell: &str, scale: Scale) -> Option<Cell> {
    let lower = cell.to_lowercase();
    if EMPTY.contains(&lower.as_str()) {
        return Some(Cell::Empty);
    }
    if FAILED.contains(&lower.as_str()) {
        return Some(Cell::Rate(0.0));
    }
    let plain = scale.plain(cell);
    number(&plain)
        .map(|v| v * scale.unit)
        .or_else(|| spoken(&plain))
        .or_else(|| abbreviated(&plain))
        .map(Cell::Rate)
}

/// Layout of a table.
enum Layout {
    /// Names of the columns, text of the corner, and which side sends if the corner states it.
    Square {
        columns: Vec<String>,
        corner: String,
        sides: Option<Sides>,
        /// Rows have nothing in the column of their own host, not even a sign.
        has_gap: bool,
    },
    /// Columns of sender, receiver and rate.
    Long { from: usize, to: usize, rate: usize },
    /// Columns of host and of what it stands on, with the kind of it.
    Members { host: usize, group: usize, kind: String },
}

/// Whether a word is one of these, in small letters or large ones.
fn is_one_of(word: &str, words: &[&str]) -> bool {
    words.iter().any(|w| w.eq_ignore_ascii_case(word))
}

fn word_in(cell: &str, words: &[&str]) -> Option<usize> {
    let mut parts = cell.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty());
    parts.position(|w| is_one_of(w, words))
}

/// Whether a line may be the head of a table: checked first, because it is called at every line.
fn may_be_head(head: &[&str]) -> bool {
    let has = |words: &[&str]| head.iter().any(|c| word_in(c, words).is_some());
    let exact = |words: &[&str]| head.iter().any(|c| is_one_of(c, words));
    (2..=COLUMNS_MAX + 1).contains(&head.len())
        && (head[1..].iter().all(|c| is_name(with_group(without_unit(c)).0))
            || has(&FROM) && has(&TO)
            || exact(&HOSTS) && exact(&GROUPS))
}

/// Whether the head of a column or of a row can be a host, not a number.
fn is_name(name: &str) -> bool {
    is_host(name) && name.chars().any(|c| c.is_alphabetic() || c == '.' || c == ':')
}

/// Reads the head of a table with the row below it.
fn layout(head: &[&str], below: &[&str]) -> Option<Layout> {
    if head.len() < 2 || below.len() < 2 {
        return None;
    }
    let column = |words: &[&str]| head.iter().position(|c| word_in(c, words).is_some());
    if let (Some(from), Some(to)) = (column(&FROM), column(&TO))
        && from != to
    {
        let is_rate = |c: &str| {
            let lower = c.to_lowercase();
            unit_in(c).is_some()
                || ["throughput", "bandwidth", "rate", "bps", "mbit", "gbit"]
                    .iter()
                    .any(|w| lower.contains(w))
                    && other_than_rate(c, false).is_none()
        };
        let rate = (0..head.len()).find(|i| *i != from && *i != to && is_rate(head[*i]))?;
        let fits = below.len() > rate.max(from).max(to) && is_host(below[from]) && is_host(below[to]);
        return fits.then_some(Layout::Long { from, to, rate });
    }
    let exact = |words: &[&str]| head.iter().position(|c| is_one_of(c, words));
    if let (Some(host), Some(group)) = (exact(&HOSTS), exact(&GROUPS))
        && host != group
        && below.len() > host.max(group)
    {
        return Some(Layout::Members { host, group, kind: head[group].to_lowercase() });
    }
    square(head, below, if head.len() == below.len() { Some(head[0]) } else { None }, false)
}

/// A matrix with this corner, or none; `has_gap`: its rows have one value less than there are columns.
fn square(head: &[&str], below: &[&str], corner: Option<&str>, has_gap: bool) -> Option<Layout> {
    let columns: Vec<&str> =
        head[usize::from(corner.is_some())..].iter().map(|name| with_group(without_unit(name)).0).collect();
    let sides = corner.and_then(sides_in);
    let row = with_group(below.first()?).0;
    // A table of anything else has other names in its rows than in its columns.
    let same = columns.contains(&row) || sides.is_some() && !has_gap;
    let is_of_hosts = columns.len() >= 2 && is_name(row) && columns.iter().all(|name| is_name(name));
    if !same || !is_of_hosts || below.len() + usize::from(has_gap) != columns.len() + 1 {
        return None;
    }
    // One that is no rate is reported when its row is read.
    let anything = Scale { unit: 1.0, thousands: false };
    let read = below[1..].iter().filter(|c| rate(c, anything).is_some()).count() + usize::from(has_gap);
    let is_rate = |c: &&str| matches!(rate(c, anything), Some(Cell::Rate(_)));
    let values = read * 2 > columns.len() && (read == columns.len() || below[1..].iter().any(is_rate));
    values.then(|| Layout::Square {
        columns: columns.into_iter().map(str::to_owned).collect(),
        corner: corner.unwrap_or_default().to_owned(),
        sides,
        has_gap,
    })
}

/// Which side sends by a corner such as `from \ to`, `receiver` or `rows receive`.
fn sides_in(corner: &str) -> Option<Sides> {
    let by_words = match (word_in(corner, &FROM), word_in(corner, &TO)) {
        (None, None) => None,
        (Some(from), Some(to)) if to < from => Some(Sides::RowsReceive),
        (None, Some(_)) => Some(Sides::RowsReceive),
        _ => Some(Sides::RowsSend),
    };
    sides(corner).filter(|s| *s != Sides::Unclear).or(by_words)
}

/// The name of a column without the unit that stands behind it: `a [Gbit/s]`.
fn without_unit(name: &str) -> &str {
    match name.split_once([' ', '[', '(']) {
        Some((bare, _)) if unit_in(name).is_some() || bracketed_unit(name) => bare,
        _ => name,
    }
}

/// A unit in brackets, of a rate or of anything else.
fn bracketed_unit(name: &str) -> bool {
    bare_unit_in(name, true).is_some() || name.contains(['[', '(']) && other_unit_in(name, true).is_some()
}

/// What the head of a table and the lines above state about its numbers.
struct Heading {
    /// Bit/s of one of them.
    unit: Option<f64>,
    /// What they are, when that is no rate.
    other: Option<&'static str>,
    /// One of these is from the lines above the table.
    by_label: bool,
}

/// Reads the head first, then the lines above, the nearest one first.
fn heading(layout: &Layout, head: &[&str], label: &str) -> Heading {
    // A list of memberships has no unit.
    let own = match layout {
        Layout::Square { corner, .. } => corner.as_str(),
        Layout::Long { rate, .. } => head.get(*rate).copied().unwrap_or_default(),
        Layout::Members { .. } => return Heading { unit: None, other: None, by_label: false },
    };
    let lines = || label.lines().rev().filter(|line| !line.is_empty());
    let above = lines().find_map(unit_in).or_else(|| lines().find_map(|line| bare_unit_in(line, true)));
    let bracketed = || head.iter().find_map(|cell| bare_unit_in(cell, true));
    let unit = unit_in(own)
        .or_else(|| bare_unit_in(own, false))
        .or_else(|| head.iter().find_map(|cell| unit_in(cell)))
        .or_else(bracketed);
    if unit.is_some() {
        // A title with the same unit is used too.
        return Heading { unit, other: None, by_label: above.is_some() };
    }
    let column = || head.iter().skip(1).filter(|c| bracketed_unit(c)).find_map(|c| other_unit_in(c, true));
    let is_square = matches!(layout, Layout::Square { .. });
    let other = if is_square { other_than_rate(own, false).or_else(column) } else { None };
    if other.is_some() {
        return Heading { unit, other, by_label: false };
    }
    // A column that is called throughput is one, whatever stands above.
    let mut nearest = lines().take_while(|line| !names_rate(line) || other_than_rate(line, true).is_some());
    let other = if names_rate(own) { None } else { nearest.find_map(|line| other_than_rate(line, true)) };
    Heading { unit: above, other, by_label: above.is_some() || other.is_some() }
}

/// Which side sends by the lines above a table; `None` when they do not speak of it.
fn sides_above(label: &str) -> Option<Sides> {
    label.lines().rev().find_map(sides)
}

/// Head, first row and separator of a table that begins here.
fn begin(block: &Block<'_>) -> Option<(Layout, Option<char>)> {
    let sign = separator(block.first());
    let head = cells(block.first(), sign);
    if !may_be_head(&head) {
        return None;
    }
    let next = if is_divider(block.line(1)) { 2 } else { 1 };
    // A row that is cut off or full of odd words may be the first one.
    let rows: Vec<Vec<&str>> = (next..next + ROWS_TRIED).map(|row| cells(block.line(row), sign)).collect();
    let gap = || sign.is_none().then(|| with_gap(&head, &rows)).flatten();
    let found = gap().or_else(|| rows.iter().find_map(|row| layout(&head, row)))?;
    Some((found, sign))
}

/// A table whose cells are parted by blanks and whose diagonal is blank: all rows have one value less than
/// there are columns. Without this the values behind the gap would stand below the wrong names.
fn with_gap(head: &[&str], rows: &[Vec<&str>]) -> Option<Layout> {
    let rows: Vec<&[&str]> = rows.iter().map(Vec::as_slice).take_while(|row| row.len() > 1).collect();
    let length = rows.first()?.len();
    if rows.len() < 2 || rows.iter().any(|row| row.len() != length) {
        return None;
    }
    let name = |cell: &str| with_group(without_unit(cell)).0.to_owned();
    let names: Vec<String> = head.iter().map(|cell| name(cell)).collect();
    let is_named = |row: &&[&str], names: &[String]| names.contains(&name(row[0]));
    let corner = match head.len().checked_sub(length)? {
        // The first name of the head is that of a row, too: there is no corner.
        0 if rows.iter().all(|row| is_named(row, &names)) && is_named(&rows[0], &names[..1]) => None,
        1 if rows.iter().all(|row| is_named(row, &names[1..])) => Some(head[0]),
        _ => return None,
    };
    rows.iter().find_map(|row| square(head, row, corner, true))
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
        let Some((layout, sign)) = begin(block) else {
            out.unread(0, "no table of rates between hosts");
            return 1;
        };
        let lines = extent(&layout, sign, block);
        if let Err(why) = check_size(&layout, lines, block) {
            out.unread(0, why);
            return lines;
        }
        let block = &Block { lines: &block.lines[..lines], at: block.at };
        let heading = heading(&layout, &cells(block.first(), sign), &block.at.label);
        out.used_label = heading.by_label || block.at.label_names_layer();
        if let Some(other) = heading.other {
            out.unread(0, format!("a table of {other}, not of throughput: nothing of it is read"));
            // Its rows are not quoted one by one.
            return Table::new(layout, sign, heading.unit, block).rows(&mut Sink::default());
        }
        let mut table = Table::new(layout, sign, heading.unit, block);
        if let Layout::Square { sides: sides @ None, .. } = &mut table.layout {
            *sides = sides_above(&block.at.label);
            match sides {
                None => {}
                // The line stays among those that were not understood.
                Some(Sides::Unclear) => {
                    out.used_label = false;
                    out.note(format!(
                        "{}: the line above the table names the sending side and is not \
                         understood: rows are taken for senders",
                        block.at.file
                    ));
                }
                Some(_) => out.used_label = true,
            }
        }
        members(&table, out);
        let taken = table.rows(out);
        if table.scale.thousands {
            out.note(format!("{}: its commas are read as those between thousands", block.at.file));
        }
        if table.used && heading.unit.is_none() {
            out.note(format!(
                "{}: no unit is named in the table: its numbers are read as Mbit/s",
                block.at.file
            ));
        }
        taken
    }
}

/// What the hosts of a matrix stand on, where its head or its rows name that in brackets.
fn members(table: &Table<'_>, out: &mut Sink) {
    let Layout::Square { corner, .. } = &table.layout else { return };
    let named = |text: &str| GROUPS.iter().find(|word| word_in(text, &[word]).is_some()).copied();
    let kind = named(corner).or_else(|| named(&table.block.at.label)).unwrap_or("hypervisor");
    let heads = cells(table.block.first(), table.sign);
    let rows = table.block.lines[1..].iter().filter_map(|line| cells(line, table.sign).first().copied());
    for (host, group) in heads.into_iter().chain(rows).map(with_group) {
        if let Some(group) = group {
            out.member(Membership { host: host.to_owned(), group: group.to_owned(), kind: kind.to_owned() });
        }
    }
}

/// How many lines a table takes, its head among them. Nothing is kept of them.
fn extent(layout: &Layout, sign: Option<char>, block: &Block<'_>) -> usize {
    let is_host_at =
        |cells: &[&str], at: usize| cells.get(at).is_some_and(|cell| is_host(with_group(cell).0));
    let is_row = |cells: &[&str]| match layout {
        Layout::Square { columns, has_gap, .. }
            if cells.len() + usize::from(*has_gap) == columns.len() + 1 =>
        {
            let scales = [false, true].map(|thousands| Scale { unit: 1.0, thousands });
            let is_rate = |cell: &&str| scales.iter().any(|scale| rate(cell, *scale).is_some());
            is_host_at(cells, 0) && cells[1..].iter().any(is_rate)
        }
        // One that is cut off is reported.
        Layout::Square { .. } => is_host_at(cells, 0) && cells.len() > 2,
        Layout::Long { from, to, rate } => {
            is_host_at(cells, *from) && is_host_at(cells, *to) && cells.len() > *rate
        }
        Layout::Members { host, group, .. } => is_host_at(cells, *group) && cells.len() > *host,
    };
    let rows = block.lines[1..].iter().take_while(|line| is_divider(line) || is_row(&cells(line, sign)));
    1 + rows.count()
}

/// Refuses a table with more pairs than can be judged, before anything of it is kept.
fn check_size(layout: &Layout, lines: usize, block: &Block<'_>) -> Result<(), String> {
    let columns = match layout {
        Layout::Square { columns, .. } => columns.len(),
        Layout::Long { .. } => 1,
        Layout::Members { .. } => return Ok(()),
    };
    let rows = lines - 1 - usize::from(lines > 1 && is_divider(block.line(1)));
    let pairs = rows.saturating_mul(columns);
    if pairs <= PAIRS_MAX {
        return Ok(());
    }
    Err(format!(
        "a table of {rows} rows x {columns} columns has {pairs} pairs, at most {PAIRS_MAX} are read: cut it into smaller tables"
    ))
}

struct Table<'b> {
    layout: Layout,
    scale: Scale,
    /// Between cells; `None` for blanks.
    sign: Option<char>,
    /// Numbers without a unit of their own were used.
    used: bool,
    block: &'b Block<'b>,
}

impl<'b> Table<'b> {
    fn new(layout: Layout, sign: Option<char>, unit: Option<f64>, block: &'b Block<'b>) -> Self {
        let unit = unit.unwrap_or(1e6);
        // Where a semicolon parts the fields, the comma is taken: by the point of a number.
        let thousands = sign != Some(';')
            && parts_thousands(block.lines[1..].iter().flat_map(|line| cells(line, sign)), unit);
        Self { layout, scale: Scale { unit, thousands }, sign, used: false, block }
    }

    /// All rows; how many lines the table takes.
    fn rows(&mut self, out: &mut Sink) -> usize {
        let block = self.block;
        let mut taken = 1;
        for (at, line) in block.lines.iter().enumerate().skip(1) {
            if !is_divider(line) {
                match self.row(at, &cells(line, self.sign), out) {
                    Ok(()) => {}
                    Err(None) => break,
                    Err(Some(why)) => out.unread(at, why),
                }
            }
            taken = at + 1;
        }
        taken
    }

    /// One row: `Err(None)` when the table has ended, `Err(Some(…))` when this row cannot be used.
    fn row(&mut self, at: usize, cells: &[&str], out: &mut Sink) -> Result<(), Option<String>> {
        match &self.layout {
            Layout::Square { columns, sides, has_gap, .. } => {
                let (turned, has_gap, columns) =
                    (*sides == Some(Sides::RowsReceive), *has_gap, columns.clone());
                self.square(at, cells, (&columns, turned, has_gap), out)
            }
            Layout::Long { from, to, rate: column } => {
                let (from, to, column) = (*from, *to, *column);
                let (Some(from), Some(to), Some(cell)) = (cells.get(from), cells.get(to), cells.get(column))
                else {
                    return Err(None);
                };
                if !is_host(from) || !is_host(to) {
                    return Err(None);
                }
                // Where blanks part the cells, they part a number from its unit too.
                let unit =
                    cells.get(column + 1).filter(|next| self.sign.is_none() && unit_in(next).is_some());
                let cell = &unit.map_or_else(|| (*cell).to_owned(), |unit| format!("{cell} {unit}"));
                match rate(cell, self.scale) {
                    Some(Cell::Rate(bps)) => {
                        self.used |= self.scale.number(cell).is_some();
                        self.put(from, to, bps, out);
                        Ok(())
                    }
                    Some(Cell::Empty) => Ok(()),
                    None => Err(Some("no rate".to_owned())),
                }
            }
            Layout::Members { host, group, kind } => {
                let (Some(hosts), Some(group)) = (cells.get(*host), cells.get(*group).filter(|g| is_host(g)))
                else {
                    return Err(None);
                };
                for host in hosts.split([',', ' ']).map(str::trim).filter(|h| is_host(h)) {
                    out.member(Membership {
                        host: host.to_owned(),
                        group: (*group).to_owned(),
                        kind: kind.clone(),
                    });
                }
                Ok(())
            }
        }
    }

    /// One row of a matrix: its columns, whether they send, whether the cell of its own host is left out.
    fn square(
        &mut self,
        at: usize,
        cells: &[&str],
        (columns, turned, has_gap): (&[String], bool, bool),
        out: &mut Sink,
    ) -> Result<(), Option<String>> {
        let name = cells.first().map(|cell| with_group(cell).0).filter(|n| is_host(n));
        let Some(name) = name else { return Err(None) };
        let own = columns.iter().position(|column| column == name);
        let mut cells = cells.to_vec();
        // A blank at the end is lost where blanks at the end of a line are.
        let is_last = self.sign.is_some() && own.is_some_and(|own| own + 1 == columns.len());
        if let Some(own) = own.filter(|_| (has_gap || is_last) && cells.len() == columns.len()) {
            cells.insert(own + 1, "");
        }
        if cells.len() != columns.len() + 1 {
            let why = format!("{} values for {} columns", cells.len() - 1, columns.len());
            return Err((cells.len() > 2).then_some(why));
        }
        let rates: Vec<Option<Cell>> = cells[1..].iter().map(|c| rate(c, self.scale)).collect();
        if rates.iter().all(Option::is_none) {
            return Err(None);
        }
        let mut used = false;
        for ((column, value), cell) in columns.iter().zip(&rates).zip(&cells[1..]) {
            match value {
                Some(Cell::Rate(bps)) if column != name => {
                    used |= self.scale.number(cell).is_some();
                    let (from, to) = if turned { (column.as_str(), name) } else { (name, column.as_str()) };
                    self.put(from, to, *bps, out);
                }
                Some(_) => {}
                None => out.unread(at, format!("`{}` is no rate", cell.chars().take(40).collect::<String>())),
            }
        }
        self.used |= used;
        Ok(())
    }

    fn put(&self, from: &str, to: &str, bps: f64, out: &mut Sink) {
        let outcome = if bps == 0.0 {
            Outcome::NothingThrough { reason: "as the table reports".to_owned() }
        } else {
            Outcome::Measured(Box::new(Measurement { throughput_bps: Some(bps), ..Measurement::default() }))
        };
        out.sample(Raw {
            from: from.to_owned(),
            to: to.to_owned(),
            layer: self.block.at.layer(),
            // The duration is unknown; ten seconds is the default of the usual tools.
            kind: TcpPlan::single(10_000).into(),
            outcome,
            flow: None,
            start_ms: 0,
            variant: None,
        });
    }
}
