//! The report as Markdown, for tickets and wikis: the same cards as the text. Material in, Markdown out.
//! Names are escaped.

use linerate_model::printable::is_control;
use linerate_model::units;
use std::fmt::Write;

use super::card::{self, Card, RowStyle};
use super::grid::{self, Grid};
use super::heat::Heat;
use super::material::{Format, Material};
use super::text;

/// Pairs that are listed of a cluster that no matrix can show.
const WORST_MAX: usize = 100;

/// `linerate show RUN --md`.
#[derive(Debug)]
pub struct Markdown;

impl Format for Markdown {
    fn name(&self) -> &'static str {
        "md"
    }

    fn extension(&self) -> &'static str {
        "md"
    }

    fn render(&self, m: &Material<'_>) -> String {
        let mut out = format!("# {}\n\n", escape(&m.diagnosis.headline));
        let date = units::date(m.snapshot.start_ms);
        let cluster = &m.snapshot.inventory.name;
        let _ = writeln!(out, "Cluster {}, run {} {date}", escape(cluster), escape(&m.snapshot.id));
        if let Some(reveal) = m.reveal {
            let _ = writeln!(out, "\n**What was broken:** {}", escape(reveal));
        }
        for grid in grid::grids(m.diagnosis, &m.snapshot.inventory) {
            matrix(&mut out, &grid);
        }
        for finding in &m.diagnosis.findings {
            render_card(&mut out, &card::finding(finding, &m.snapshot.inventory));
        }
        for trial in m.trials {
            render_card(&mut out, &card::trial(trial));
            arms(&mut out, trial);
        }
        let drives = super::disk_survey::of(m.snapshot, m.diagnosis);
        if !drives.is_empty() {
            out.push_str("\n## Drives\n");
            preformatted(&mut out, &drives);
        }
        let tables = super::single::tables(m.snapshot, true, super::heat::Style::default());
        if !tables.is_empty() {
            preformatted(&mut out, &tables);
        }
        section(&mut out, "Tuning advice", &text::advice(m.diagnosis));
        section(&mut out, "Notes", &m.diagnosis.notes);
        if let Some(imported) = &m.snapshot.imported {
            section(&mut out, "Notes on what was read", &imported.notes);
            section(&mut out, "Not understood", &super::imported::unread(imported));
        }
        section(&mut out, "Not used as evidence", &m.diagnosis.refused);
        section(&mut out, "Not seen", &text::blind_spots(m.snapshot, m.diagnosis));
        section(&mut out, "Left out", &m.snapshot.left_out);
        out
    }
}

/// A table of text: its columns stay. Words of a host in a block of code would stand there as they are, and a
/// viewer that does not know such blocks would take them for markup.
fn preformatted(out: &mut String, table: &str) {
    let text = table.trim_matches('\n').replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let _ = writeln!(out, "\n<pre>\n{text}\n</pre>");
}

fn section(out: &mut String, title: &str, lines: &[String]) {
    if !lines.is_empty() {
        let _ = write!(out, "\n## {title}\n\n");
        for line in lines {
            let _ = writeln!(out, "- {}", escape(line));
        }
    }
}

fn matrix(out: &mut String, grid: &Grid) {
    let _ = write!(out, "\n## {}\n\n", escape(&grid.title()));
    for line in &grid.ceilings {
        let _ = writeln!(out, "- {}", escape(line));
    }
    if grid.hosts.len() > grid::PAGE_HOSTS_MAX {
        *out += "\n| sender | receiver | value |\n| --- | --- | ---: |\n";
        for (r, c, square) in grid.worst().into_iter().take(WORST_MAX) {
            let (from, to) = (escape(&grid.hosts[r]), escape(&grid.hosts[c]));
            let _ = writeln!(out, "| {from} | {to} | {} |", escape(&square.text));
        }
        return;
    }
    *out += "\n| from \\ to |";
    for host in &grid.hosts {
        let _ = write!(out, " {} |", escape(host));
    }
    let _ = writeln!(out, "\n| --- |{}", " ---: |".repeat(grid.hosts.len()));
    for (number, host) in grid.hosts.iter().enumerate() {
        let _ = write!(out, "| {} |", escape(host));
        for square in grid.row(number) {
            // What is bad is bold: Markdown has no colours.
            let text = escape(&square.text);
            let strong = if square.heat >= Heat::Bad { "**" } else { "" };
            let _ = write!(out, " {strong}{text}{strong} |");
        }
        out.push('\n');
    }
}

/// Characters of a line of an instruction: a page does not break what it shows as commands.
const INSTRUCTION_WIDTH: usize = 94;

fn render_card(out: &mut String, card: &Card) {
    let _ = write!(out, "\n## {}\n\n", escape(&card.heading));
    for row in &card.rows {
        match row.shape {
            RowStyle::Prose => {
                let _ = writeln!(out, "- **{}:** {}", row.label, escape(&row.lines.join(" ")));
            }
            RowStyle::List => {
                let _ = writeln!(out, "- **{}:**", row.label);
                for line in &row.lines {
                    let _ = writeln!(out, "  - {}", escape(line));
                }
            }
            RowStyle::Commands | RowStyle::Instruction => {
                let _ = write!(out, "- **{}:**\n\n", row.label);
                let width = if row.shape == RowStyle::Instruction { INSTRUCTION_WIDTH } else { usize::MAX };
                for line in row.lines.iter().flat_map(|line| super::text::instruction(line, width)) {
                    let _ = writeln!(out, "      {line}");
                }
                out.push('\n');
            }
        }
    }
}

fn arms(out: &mut String, trial: &linerate_model::trial::Trial) {
    if trial.arms.is_empty() {
        return;
    }
    let unit = trial.response.unit();
    let shown = |v: Option<f64>| v.map_or("invalid".to_owned(), |v| units::value(v, unit));
    *out += "\n| arm | setting | affected pair | control pair |\n| ---: | --- | ---: | ---: |\n";
    for (i, arm) in trial.arms.iter().enumerate() {
        let setting = if arm.changed { "B changed" } else { "A as it was" };
        let control = if trial.control.is_some() { shown(arm.control) } else { "none".to_owned() };
        let _ = writeln!(out, "| {} | {setting} | {} | {control} |", i + 1, shown(arm.value));
    }
}

/// Text that Markdown shows as it is, also inside a table and also when it came from a host.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' => out.push(' '),
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' | '#' | '~' => {
                out.push('\\');
                out.push(c);
            }
            _ if is_control(c) => {}
            _ => out.push(c),
        }
    }
    out
}
