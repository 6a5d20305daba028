//! The report for a terminal: matrices and verdicts in plain words, at most 100 columns. Material in, text
//! out; colour only when the style says so. Never prints.

use std::collections::BTreeMap;
use std::fmt::Write;

use linerate_model::advice::Advice;
use linerate_model::fact::Gap;
use linerate_model::finding::Diagnosis;
use linerate_model::inventory::Inventory;
use linerate_model::plan::Test;
use linerate_model::printable;
use linerate_model::remark::Overall;
use linerate_model::sample::Outcome;
use linerate_model::snapshot::Snapshot;
use linerate_model::trial::{Trial, TrialStatus};
use linerate_model::units;

use super::card::{self, Card, RowStyle};
use super::grid::{self, Grid, GridMetric, SquareKind};
use super::heat::{Heat, Style};
use super::material::{Format, Material};
use super::names;
use super::wrap::wrap;

/// Up to this many hosts the whole matrix fits 100 columns.
const MATRIX_HOSTS_MAX: usize = 12;
/// Findings in full, and lines of each kind of remark: a report is read by a person.
const FINDINGS_MAX: usize = 20;
const LINES_MAX: usize = 40;
/// Tests that were not used: each says the same of another pair, and what follows from them is in the
/// headline.
const REFUSED_MAX: usize = 5;
/// Cells in the list of the worst.
const WORST_MAX: usize = 15;
/// Width of the labels of a card.
const LABEL: usize = 15;

/// `linerate show RUN` without a format.
#[derive(Debug)]
pub struct Text;

impl Format for Text {
    fn name(&self) -> &'static str {
        "text"
    }

    fn extension(&self) -> &'static str {
        "txt"
    }

    fn render(&self, m: &Material<'_>) -> String {
        let mut text = page(m.snapshot, m.diagnosis, Style::default());
        for one in m.trials {
            text += "\n";
            text += &trial(one, Style::default());
        }
        if let Some(reveal) = m.reveal {
            let _ = writeln!(text, "\nWhat was broken: {reveal}");
        }
        text
    }
}

/// Tuning advice in lines: the sentence, what to write, what others publish.
pub fn advice(diagnosis: &Diagnosis) -> Vec<String> {
    let line = |advice: &Advice| {
        let mut line = format!("{}.", advice.sentence);
        if !advice.settings.is_empty() {
            let _ = write!(line, " Set: {}.", advice.settings.join("; "));
        }
        if !advice.references.is_empty() {
            let _ = write!(line, " For comparison: {}.", advice.references.join("; "));
        }
        line
    };
    diagnosis.advice.iter().map(line).collect()
}

/// Matrices, and below them the verdict in at most four lines a finding: what a command prints unless all of
/// it is asked for. `more` is the command that shows all.
pub fn screen(snapshot: &Snapshot, diagnosis: &Diagnosis, more: &str, style: Style) -> String {
    let verdict = super::verdict::of(snapshot, diagnosis);
    let mut out = if verdict.findings.is_empty() {
        fine_matrices(snapshot, diagnosis, style)
    } else {
        matrices(snapshot, diagnosis, style)
    };
    // Single tests have no matrix; without a finding their tables are the answer.
    if verdict.findings.is_empty() && diagnosis.cells.is_empty() {
        out += &super::single::tables(snapshot, false, style);
    }
    // What an older version stored has its headline only.
    let is_old = diagnosis.summary.overall == Overall::Nothing && !diagnosis.cells.is_empty();
    let whole = if is_old { diagnosis.headline.clone() } else { super::words::whole(diagnosis) };
    out + &super::verdict::text(&verdict, &whole, more, style)
}

/// The first matrix, and a line for each other one where every pair of all of them is fine.
fn fine_matrices(snapshot: &Snapshot, diagnosis: &Diagnosis, style: Style) -> String {
    let grids = grid::grids(diagnosis, &snapshot.inventory);
    let Some((first, others)) = grids.split_first().filter(|_| grids.iter().all(grid::Grid::is_fine)) else {
        return matrices(snapshot, diagnosis, style);
    };
    let mut out = String::new();
    matrix(&mut out, first, style);
    out.push('\n');
    for grid in others {
        for part in wrap(&grid.fine_line(), style.width) {
            out += &style.dim(&part);
            out.push('\n');
        }
    }
    out + if others.is_empty() { "" } else { "\n" }
}

fn matrices(snapshot: &Snapshot, diagnosis: &Diagnosis, style: Style) -> String {
    let mut out = String::new();
    for grid in grid::grids(diagnosis, &snapshot.inventory) {
        matrix(&mut out, &grid, style);
        out.push('\n');
    }
    out
}

/// Matrix, verdict and gaps of a run, all of it.
pub fn page(snapshot: &Snapshot, diagnosis: &Diagnosis, style: Style) -> String {
    sheet(snapshot, diagnosis, true, style)
}

/// The same of single tests without the details of their views.
pub fn brief(snapshot: &Snapshot, diagnosis: &Diagnosis, style: Style) -> String {
    sheet(snapshot, diagnosis, false, style)
}

fn sheet(snapshot: &Snapshot, diagnosis: &Diagnosis, with_details: bool, style: Style) -> String {
    let mut out = matrices(snapshot, diagnosis, style);
    out += &verdict(diagnosis, &snapshot.inventory, style);
    let drives = super::disk_survey::of(snapshot, diagnosis);
    if !drives.is_empty() {
        let _ = write!(out, "\n{drives}");
    }
    out += &super::single::tables(snapshot, with_details, style);
    let mut rest = Vec::new();
    let mut add = |label, lines: &[String], max| rest.extend(some(lines, max).map(|line| (label, line)));
    add("Advice", &advice(diagnosis), LINES_MAX);
    add("Note", &super::disk_survey::other_notes(snapshot, &diagnosis.notes), LINES_MAX);
    if let Some(imported) = &snapshot.imported {
        add("Note", &imported.notes, LINES_MAX);
        add("Not understood", &super::imported::unread(imported), LINES_MAX);
    }
    add("Not used", &diagnosis.refused, REFUSED_MAX);
    let mut unseen = blind_spots(snapshot, diagnosis);
    if super::single::is_single(snapshot) {
        // The headline has it, and its hint stands below.
        unseen.retain(|line| {
            let reason = line.split_once(": ").map_or(line.as_str(), |(_, reason)| reason);
            !diagnosis.headline.contains(printable::without_hint(reason).0)
        });
    }
    add("Not seen", &unseen, LINES_MAX);
    add("Left out", &snapshot.left_out, LINES_MAX);
    if !rest.is_empty() {
        out.push('\n');
    }
    for (label, line) in rest {
        paragraph(&mut out, label, &line, style);
    }
    out += &super::imported::missing(diagnosis, style);
    out
}

/// Headline and findings.
pub fn verdict(diagnosis: &Diagnosis, inventory: &Inventory, style: Style) -> String {
    let mut out = String::new();
    for line in wrap(&diagnosis.headline, style.width) {
        out += &if diagnosis.findings.is_empty() { style.fine(&line) } else { style.alarm(&line) };
        out.push('\n');
    }
    let count = diagnosis.findings.len();
    for (i, finding) in diagnosis.findings.iter().enumerate().take(FINDINGS_MAX) {
        let number = if count > 1 { format!("Finding {} of {count}. ", i + 1) } else { String::new() };
        out.push('\n');
        let card = card::finding(finding, inventory);
        let said = number.is_empty() && card.heading == diagnosis.headline;
        if !said {
            for line in wrap(&format!("{number}{}", card.heading), style.width) {
                out += &style.bold(&line);
                out.push('\n');
            }
        }
        rows(&mut out, &card, style);
    }
    if count > FINDINGS_MAX {
        let _ = writeln!(out, "\nand {} more findings: `linerate show --json` has all", count - FINDINGS_MAX);
    }
    out
}

/// At most `max` of the lines, and how many more there are.
pub fn some(lines: &[String], max: usize) -> impl Iterator<Item = String> {
    let more = lines.len().saturating_sub(max);
    let rest = (more > 0).then(|| format!("and {more} more; the JSON report has all"));
    lines.iter().take(max).cloned().chain(rest)
}

/// A trial on the screen: what it proved and what next. What could not be undone is shown whole.
pub fn trial_brief(trial: &Trial, style: Style) -> String {
    if trial.status == TrialStatus::UndoFailed {
        return self::trial(trial, style);
    }
    let mut out = String::new();
    trial_card(&mut out, &card::trial_brief(trial), style);
    out
}

fn trial_card(out: &mut String, card: &Card, style: Style) {
    for line in wrap(&card.heading, style.width) {
        *out += &style.bold(&line);
        out.push('\n');
    }
    rows(out, card, style);
}

/// A trial: arms, effect, what next.
pub fn trial(trial: &Trial, style: Style) -> String {
    let mut out = String::new();
    trial_card(&mut out, &card::trial(trial), style);
    if !trial.arms.is_empty() {
        out.push('\n');
        arms(&mut out, trial, style);
    }
    out
}

fn arms(out: &mut String, trial: &Trial, style: Style) {
    let unit = trial.response.unit();
    let shown = |v: Option<f64>| v.map_or("invalid".to_owned(), |v| units::value(v, unit));
    let (from, to) = &trial.pair;
    let affected = printable::clean(&names::cut(&format!("{from} to {to}"), 34));
    let control =
        trial.control.as_ref().map_or("no control".to_owned(), |(a, b)| format!("{a} to {b}, control"));
    *out += &style.dim(&format!(
        "  {:<3} {:<11} {affected:>34}  {:>34}",
        "arm",
        "setting",
        printable::clean(&names::cut(&control, 34))
    ));
    out.push('\n');
    for (i, arm) in trial.arms.iter().enumerate() {
        let setting = if arm.changed { "B changed" } else { "A as it was" };
        let line =
            format!("  {:<3} {setting:<11} {:>34}  {:>34}", i + 1, shown(arm.value), shown(arm.control));
        *out += if trial.control.is_none() { line.trim_end_matches("invalid").trim_end() } else { &line };
        out.push('\n');
    }
}

/// What could not be seen: the diagnosis' own list, or the snapshot's when it has none, and lost tests.
pub fn blind_spots(snapshot: &Snapshot, diagnosis: &Diagnosis) -> Vec<String> {
    let gaps = if diagnosis.blind.is_empty() { &snapshot.gaps } else { &diagnosis.blind };
    // What imported evidence lacks is asked for below the verdict.
    let lacking = snapshot.imported.as_ref().map(|i| &i.missing[..]).unwrap_or_default();
    let gaps: Vec<&Gap> =
        gaps.iter().filter(|gap| lacking.iter().all(|m| m.what != gap.what.to_string())).collect();
    if gaps.len() <= 12 {
        return gaps.iter().map(|gap| format!("{}: {}", gap.what, gap.reason)).collect();
    }
    // Many gaps of the same reason are one line, at the place of the first.
    let mut same: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for gap in &gaps {
        same.entry(&gap.reason).or_default().push(gap.what.to_string());
    }
    gaps.iter()
        .filter_map(|gap| {
            let what = same.remove(gap.reason.as_str())?;
            Some(format!("{}: {}", names::list(&what, 4), gap.reason))
        })
        .collect()
}

/// Tests of a run by kind: planned, measured, nothing through, invalid, gap.
pub fn test_counts(snapshot: &Snapshot) -> Vec<(&'static str, [usize; 5])> {
    let mut rows: Vec<(&'static str, [usize; 5])> = Vec::new();
    for sample in &snapshot.samples {
        let Test { kind, .. } = &sample.test;
        let at = rows.iter().position(|r| r.0 == kind.name()).unwrap_or_else(|| {
            rows.push((kind.name(), [0; 5]));
            rows.len() - 1
        });
        let column = match sample.outcome {
            Outcome::Measured(_) => 1,
            Outcome::NothingThrough { .. } => 2,
            Outcome::Invalid { .. } => 3,
            Outcome::Gap { .. } => 4,
        };
        rows[at].1[0] += 1;
        rows[at].1[column] += 1;
    }
    rows
}

/// A matrix, or for many hosts its worst cells and a line per host.
fn matrix(out: &mut String, grid: &Grid, style: Style) {
    *out += &style.bold(&grid.title());
    out.push('\n');
    for line in &grid.ceilings {
        for (i, part) in wrap(line, style.width - 4).into_iter().enumerate() {
            *out += &style.dim(&format!("  {}{part}", if i > 0 { "  " } else { "" }));
            out.push('\n');
        }
    }
    if grid.hosts.len() > MATRIX_HOSTS_MAX {
        summary(out, grid, style);
    } else {
        squares(out, grid, style);
    }
    *out += &style.dim(&format!("  {}", legend(grid)));
    out.push('\n');
}

fn legend(grid: &Grid) -> String {
    let mut parts = vec!["rows send, columns receive"];
    if grid.hosts.len() > MATRIX_HOSTS_MAX {
        parts = vec!["sender to receiver"];
    }
    if grid.has(SquareKind::Dead) {
        parts.push("0 nothing got through");
    }
    if grid.has(SquareKind::Two) {
        parts.push("95|24 jumps between two levels");
    }
    if grid.has(SquareKind::Unseen) {
        parts.push("? not seen");
    }
    parts.join("; ")
}

fn squares(out: &mut String, grid: &Grid, style: Style) {
    let longest = grid.short.iter().map(|h| h.chars().count()).max().unwrap_or(0);
    let drawn: Vec<Vec<grid::Square>> = (0..grid.hosts.len()).map(|row| grid.row(row)).collect();
    let text_width = drawn.iter().flatten().map(|s| s.text.chars().count()).max().unwrap_or(1);
    let column_max = ((style.width - 2 - longest.min(16)) / grid.hosts.len().max(1)).saturating_sub(1).max(4);
    // Long names: columns are numbered, rows carry number and name.
    let numbered = longest > column_max;
    let (row_width, column) = if numbered {
        (longest.min(18) + 3, text_width.max(4).min(column_max))
    } else {
        (longest, longest.max(text_width).min(column_max))
    };
    let head = |i: usize| if numbered { (i + 1).to_string() } else { printable::clean(&grid.short[i]) };
    let row_name = |i: usize| {
        let name = names::host(&grid.short[i], 18);
        if numbered { format!("{:>2} {name}", i + 1) } else { name }
    };
    let _ = write!(out, "  {:row_width$}", "");
    for i in 0..grid.hosts.len() {
        let _ = write!(out, " {:>column$}", head(i));
    }
    out.push('\n');
    let room = 2 + row_width + grid.hosts.len() * (column + 1) + 2;
    for (i, row) in drawn.iter().enumerate() {
        let _ = write!(out, "  {:row_width$}", row_name(i));
        for square in row {
            let text = format!("{:>column$}", square.text);
            let plain = matches!(square.kind, SquareKind::Itself | SquareKind::Unseen);
            *out += " ";
            *out += &if plain { style.dim(&text) } else { style.square(&text, square.heat) };
        }
        let group = printable::clean(&grid.groups[i]);
        if !group.is_empty() && room + group.chars().count() <= style.width {
            *out += &style.dim(&format!("  {group}"));
        }
        out.push('\n');
    }
}

/// For many hosts: the worst cells, then the worst hosts.
fn summary(out: &mut String, grid: &Grid, style: Style) {
    let worst = grid.worst();
    let bad: Vec<_> = worst.iter().filter(|(_, _, s)| s.heat > Heat::Fine).collect();
    let _ = writeln!(out, "  {} pairs seen, {} of them below what they should reach", worst.len(), bad.len());
    for (r, c, square) in bad.iter().take(WORST_MAX) {
        let pair = format!("{} to {}", names::host(&grid.short[*r], 20), names::host(&grid.short[*c], 20));
        // A rate has its unit.
        let is_share = grid.metric == GridMetric::Share && !square.text.ends_with(char::is_alphabetic);
        let sign = if is_share { " %" } else { "" };
        let text = format!("{:>9}", square.text);
        let _ = writeln!(out, "  {pair:<44} {}{sign}", style.square(&text, square.heat));
    }
    if bad.len() > WORST_MAX {
        let _ = writeln!(out, "  and {} more", bad.len() - WORST_MAX);
    }
    host_lines(out, grid, style);
}

/// Median of what a host sends and receives, worst hosts first.
fn host_lines(out: &mut String, grid: &Grid, style: Style) {
    let n = grid.hosts.len();
    // What each host sends and receives.
    let mut ends: Vec<[Vec<&grid::Square>; 2]> = vec![Default::default(); n];
    for ((row, column), square) in &grid.tested {
        if row != column && square.kind != SquareKind::Unseen {
            ends[*row][0].push(square);
            ends[*column][1].push(square);
        }
    }
    let median = |squares: &[&grid::Square]| {
        let mut seen = squares.to_vec();
        seen.sort_by(|a, b| a.effect.total_cmp(&b.effect));
        (
            seen.get(seen.len() / 2).map(|s| (s.text.clone(), s.heat)),
            seen.iter().filter(|s| s.heat > Heat::Fine).count(),
        )
    };
    let mut lines: Vec<(usize, usize, String)> = (0..n)
        .map(|i| {
            let (tx, tx_bad) = median(&ends[i][0]);
            let (rx, rx_bad) = median(&ends[i][1]);
            let shown = |m: Option<(String, Heat)>| match m {
                Some((text, heat)) => style.square(&format!("{text:>9}"), heat),
                None => format!("{:>9}", "?"),
            };
            let name = names::host(&grid.short[i], 24);
            let line = format!("  {name:<24} {} {}  {:>3}", shown(tx), shown(rx), tx_bad + rx_bad);
            (tx_bad + rx_bad, i, line)
        })
        .collect();
    lines.sort_by_key(|(bad, i, _)| (std::cmp::Reverse(*bad), *i));
    *out += &style.dim(&format!("  {:<24} {:>9} {:>9}  bad cells", "host (median)", "sends", "receives"));
    out.push('\n');
    let shown = 24.min(n);
    for (_, _, line) in &lines[..shown] {
        *out += line;
        out.push('\n');
    }
    if let Some((most, ..)) = lines.get(shown) {
        let _ = writeln!(out, "  and {} more hosts with at most {most} bad cells each", n - shown);
    }
}

fn rows(out: &mut String, card: &Card, style: Style) {
    for row in &card.rows {
        match row.shape {
            RowStyle::Prose => paragraph(out, row.label, &row.lines.join("\n"), style),
            RowStyle::List => {
                let lines: Vec<String> = row
                    .lines
                    .iter()
                    .map(|l| if row.lines.len() > 1 { format!("- {l}") } else { l.clone() })
                    .collect();
                paragraph(out, row.label, &lines.join("\n"), style);
            }
            // Never wrapped: they are copied.
            RowStyle::Commands => commands(out, row.label, &row.lines, style),
            RowStyle::Instruction => {
                let broken = |line: &String| instruction(line, style.width - LABEL - 2);
                commands(out, row.label, &row.lines.iter().flat_map(broken).collect::<Vec<_>>(), style);
            }
        }
    }
}

fn commands(out: &mut String, label: &str, lines: &[String], style: Style) {
    for (i, line) in lines.iter().enumerate() {
        let label = if i == 0 { label } else { "" };
        let label = style.dim(&format!("{label:<LABEL$}"));
        let _ = writeln!(out, "  {label}{}", style.command(&printable::clean(line)));
    }
}

/// A step of an instruction in lines of at most `width` characters. What does not fit is mostly words, or a
/// command with a remark: the remark gets lines of its own, each of which a shell passes over.
pub fn instruction(line: &str, width: usize) -> Vec<String> {
    const INDENT: &str = "  ";
    if line.chars().count() <= width {
        return vec![line.to_owned()];
    }
    if let Some((command, remark)) = line.split_once(REMARK) {
        let remark = wrap(remark, width - REMARK.trim_start().len());
        let remark = remark.into_iter().map(|part| format!("{}{part}", REMARK.trim_start()));
        return instruction(command, width).into_iter().chain(remark).collect();
    }
    let parts = wrap(line, width - INDENT.len()).into_iter().enumerate();
    parts.map(|(i, part)| if i == 0 { part } else { format!("{INDENT}{part}") }).collect()
}

/// Between a command and what is to be said of it.
const REMARK: &str = "   # ";

/// A label and lines beside it; continuation lines of a list item are indented under its text.
fn paragraph(out: &mut String, label: &str, text: &str, style: Style) {
    let mut label = format!("{label:<LABEL$}");
    for line in text.lines() {
        let hang = if line.starts_with("- ") { 2 } else { 0 };
        for (i, part) in wrap(line, style.width - LABEL - 2 - hang).into_iter().enumerate() {
            let indent = if i > 0 { hang } else { 0 };
            let _ = writeln!(out, "  {}{:indent$}{part}", style.dim(&label), "");
            label = " ".repeat(LABEL);
        }
    }
}
