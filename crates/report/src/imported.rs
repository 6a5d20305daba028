//! What was understood of the files of others, as a table and as remarks: an account comes in, text and HTML
//! go out.

use std::collections::BTreeMap;
use std::fmt::Write;

use linerate_model::finding::Diagnosis;
use linerate_model::imported::{Imported, Unread};
use linerate_model::printable;
use linerate_model::snapshot::Snapshot;
use maud::{Markup, html};

use super::heat::Style;
use super::names;

/// Rows of the table, and quotations, that a person reads.
const ROWS_MAX: usize = 40;
const QUOTES_MAX: usize = 8;

/// One line of the table: file, format, host, readings, lines of it.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    file: String,
    format: String,
    host: String,
    readings: usize,
    lines: usize,
}

/// Pieces of the same file, format and host are one line, at the place of the first.
fn rows(imported: &Imported) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut places: BTreeMap<(&str, &str, &str), usize> = BTreeMap::new();
    for piece in &imported.pieces {
        let place = *places.entry((&piece.file, &piece.format, &piece.host)).or_insert_with(|| {
            rows.push(Row {
                file: piece.file.clone(),
                format: piece.format.clone(),
                host: if piece.host.is_empty() { "-".to_owned() } else { piece.host.clone() },
                readings: 0,
                lines: 0,
            });
            rows.len() - 1
        });
        rows[place].readings += piece.readings;
        rows[place].lines += piece.lines;
    }
    rows
}

/// A quotation: `mail.txt:12: "…" (and 3 more lines): no known format`.
pub fn quoted(unread: &Unread) -> String {
    let place = if unread.line > 0 {
        format!("{}:{}:", unread.file, unread.line)
    } else {
        format!("{}:", unread.file)
    };
    let text =
        if unread.text.is_empty() { String::new() } else { format!(" \"{}\"", names::cut(&unread.text, 60)) };
    let more = match unread.lines {
        0 | 1 => String::new(),
        2 => " and a line more".to_owned(),
        lines => format!(" and {} lines more", lines - 1),
    };
    let after = if text.is_empty() && more.is_empty() { "" } else { ":" };
    printable::clean(&format!("{place}{text}{more}{after} {}", unread.why))
}

/// Lines that were not understood, for people: the first ones, and how many there are.
pub fn unread(imported: &Imported) -> Vec<String> {
    let mut lines: Vec<String> = imported.unread.iter().take(QUOTES_MAX).map(quoted).collect();
    let shown: u64 = imported.unread.iter().take(QUOTES_MAX).map(|u| u.lines as u64).sum();
    let more = imported.unread_lines.saturating_sub(shown);
    if more > 0 {
        lines.push(format!("and {more} more lines: `linerate show --json` has them"));
    }
    lines
}

/// The table and the quotations, for a terminal.
pub fn account(snapshot: &Snapshot, style: Style) -> String {
    let Some(imported) = &snapshot.imported else { return String::new() };
    let rows = rows(imported);
    let width = |of: fn(&Row) -> &str, most: usize| {
        rows.iter().map(|r| of(r).chars().count()).max().unwrap_or(4).clamp(4, most)
    };
    let (file, format, host) = (width(|r| &r.file, 42), width(|r| &r.format, 12), width(|r| &r.host, 20));
    let mut out = style.bold(&format!(
        "{:file$}  {:format$}  {:host$}  {:>8}  {:>7}",
        "file", "format", "host", "readings", "lines"
    ));
    out.push('\n');
    for row in rows.iter().take(ROWS_MAX) {
        let name = printable::clean(&end_of(&row.file, file));
        let _ = writeln!(
            out,
            "{name:file$}  {:format$}  {:host$}  {:>8}  {:>7}",
            row.format,
            names::host(&row.host, host),
            row.readings,
            row.lines
        );
    }
    if rows.len() > ROWS_MAX {
        let _ = writeln!(out, "and {} more", rows.len() - ROWS_MAX);
    }
    let lines = unread(imported);
    if !lines.is_empty() {
        let _ = writeln!(out, "\n{} lines are not understood:", imported.unread_lines);
        for line in lines {
            let _ = writeln!(out, "  {}", names::cut(&line, style.width.saturating_sub(2)));
        }
    }
    out
}

/// What would say more, with the commands, for a terminal.
pub fn missing(diagnosis: &Diagnosis, style: Style) -> String {
    if diagnosis.asked.is_empty() {
        return String::new();
    }
    let mut out = format!("\n{}\n", style.bold("What to measure next"));
    for missing in &diagnosis.asked {
        let _ = writeln!(out, "  {}", printable::clean(&missing.what));
        let _ = writeln!(out, "      {}", printable::clean(&missing.command));
    }
    out
}

/// The end of a path says more than its beginning.
fn end_of(path: &str, most: usize) -> String {
    let length = path.chars().count();
    if length <= most {
        return path.to_owned();
    }
    format!("…{}", path.chars().skip(length + 1 - most).collect::<String>())
}

/// The same as a section of a page.
pub fn section(snapshot: &Snapshot) -> Markup {
    let Some(imported) = &snapshot.imported else { return html! {} };
    let rows = rows(imported);
    html! {
        table.plain {
            thead { tr { th { "file" } th { "format" } th { "host" } th.n { "readings" } th.n { "lines" } } }
            tbody {
                @for row in rows.iter().take(10 * ROWS_MAX) {
                    tr { td { (row.file) } td { (row.format) } td { (row.host) } td.n { (row.readings) } td.n { (row.lines) } }
                }
            }
        }
        @if imported.unread_lines > 0 {
            p { (imported.unread_lines) " lines are not understood:" }
            ul { @for line in unread(imported) { li { (line) } } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::imported::Piece;

    fn sample() -> Snapshot {
        let piece = |file: &str, format: &str, host: &str, readings| Piece {
            file: file.into(),
            line: 1,
            lines: 3,
            format: format.into(),
            host: host.into(),
            readings,
        };
        let imported = Imported {
            pieces: vec![
                piece("a.txt", "ethtool-k", "arc-1", 2),
                piece("a.txt", "ping", "", 1),
                piece("a.txt", "ethtool-k", "arc-1", 5),
            ],
            unread: vec![Unread {
                file: "a.txt".into(),
                line: 7,
                lines: 2,
                text: "<b>\u{1b}[1m".into(),
                why: "no known format".into(),
            }],
            unread_lines: 9,
            ..Imported::default()
        };
        Snapshot { imported: Some(Box::new(imported)), ..Snapshot::default() }
    }

    #[test]
    fn pieces_are_joined_and_lines_quoted() {
        let text = account(&sample(), Style::default());
        let rows: Vec<&str> = text.lines().collect();
        assert_eq!(rows[1].split_whitespace().collect::<Vec<_>>(), ["a.txt", "ethtool-k", "arc-1", "7", "6"]);
        assert!(
            text.contains("9 lines are not understood")
                && text.contains("a.txt:7:")
                && text.contains("and 7 more lines"),
            "{text}"
        );
        assert!(!text.contains('\u{1b}'), "{text:?}");
        let page = section(&sample()).into_string();
        assert!(page.contains("&lt;b&gt;") && !page.contains("<b>"), "{page}");
        assert_eq!(account(&Snapshot::default(), Style::default()), "");
    }
}
