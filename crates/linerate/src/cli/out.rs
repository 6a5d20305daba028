//! The two streams of a command: results to stdout, everything else to stderr, for people or as events for
//! programs. Nothing else in the crate prints.
//!
//! What hosts say passes through here on its way to a terminal or a log: whatever could move a cursor, hide
//! or reorder text is written as an escape. Only line breaks, tabs and our own colours are let through.

use linerate_model::printable::{is_control, without_hint};
use std::borrow::Cow;
use std::io::Write;

use super::events::{self, Event};
use super::numbered::Numbered;
use linerate_fleet::clock;
use linerate_inventory::InventoryError;
pub(super) use linerate_model::shell::word;
use linerate_model::verdict::{Verdict, WithVerdict};
use linerate_report as report;
use linerate_report::heat::Style;

/// Text that a terminal shows as it is.
fn shown(text: &str) -> Cow<'_, str> {
    let passes = |c: char| !is_control(c) || matches!(c, '\n' | '\t');
    if text.chars().all(passes) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 64);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some(code) = Style::code_at(rest) {
            out.push_str(code);
            rest = &rest[code.len()..];
            continue;
        }
        if passes(c) {
            out.push(c);
        } else {
            out.extend(c.escape_default());
        }
        rest = &rest[c.len_utf8()..];
    }
    out.into()
}

/// Writes a result.
pub(super) fn print(text: &str) -> anyhow::Result<()> {
    let text = shown(text);
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        stdout.write_all(b"\n")?;
    }
    stdout.flush()?;
    Ok(())
}

/// Writes a result in the place of what a terminal shows now.
pub(super) fn screen(text: &str) -> anyhow::Result<()> {
    const FROM_THE_TOP: &[u8] = b"\x1b[H\x1b[J";
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(FROM_THE_TOP)?;
    drop(stdout);
    print(text)
}

/// Writes a value as one line of JSON.
pub(super) fn json_line<T: serde::Serialize>(value: &T) -> anyhow::Result<()> {
    print(&report::json::shown(serde_json::to_string(value)?))
}

/// Writes a document as JSON, with the number of its shape and its verdict.
pub(super) fn document<T: serde::Serialize>(summary: Verdict, document: T) -> anyhow::Result<()> {
    listing(WithVerdict { summary, document })
}

/// Writes a document as one line of JSON, with the number of its shape and its verdict.
pub(super) fn document_line<T: serde::Serialize>(summary: Verdict, document: T) -> anyhow::Result<()> {
    listing_line(WithVerdict { summary, document })
}

/// Writes a document in which nothing is judged as JSON, with the number of its shape.
pub(super) fn listing<T: serde::Serialize>(document: T) -> anyhow::Result<()> {
    json(&Numbered::new(document))
}

/// Writes a document in which nothing is judged as one line of JSON, with the number of its shape.
pub(super) fn listing_line<T: serde::Serialize>(document: T) -> anyhow::Result<()> {
    json_line(&Numbered::new(document))
}

/// Writes a value as JSON.
pub(super) fn json<T: serde::Serialize>(value: &T) -> anyhow::Result<()> {
    print(&report::json::shown(serde_json::to_string_pretty(value)?))
}

/// A remark for people.
pub(super) fn note(text: &str) {
    if events::are_wanted() {
        event(&Event::Note { text });
    } else {
        let _ = writeln!(std::io::stderr(), "{}", shown(text));
    }
}

/// An event for programs.
pub(super) fn event(event: &Event<'_>) {
    let line = report::json::shown(events::line(event, clock::now_ms()));
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// An error with its causes, each once; hints come last. Each error of a file is one of its own.
pub(super) fn say_error(error: &anyhow::Error) {
    if let Some(first) = error.downcast_ref::<InventoryError>().filter(|error| !error.others.is_empty()) {
        for one in std::iter::once(first).chain(&first.others) {
            say_error(&anyhow::Error::msg(one.alone()));
        }
        return;
    }
    let mut hints = Vec::new();
    let mut lines = Vec::new();
    for cause in error.chain() {
        let text = cause.to_string();
        let (head, hint) = without_hint(&text);
        hints.extend(hint.map(str::to_owned));
        if !head.is_empty() && !lines.iter().any(|l: &String| l.contains(head)) {
            lines.push(head.to_owned());
        }
    }
    let message = lines.join(": ");
    if events::are_wanted() {
        return event(&Event::Error { message: &message, hints: &hints });
    }
    note(&format!("error: {message}"));
    for hint in hints {
        note(&format!("hint: {hint}"));
    }
}

/// Whether the reader of our output went away (`linerate runs | head`): no error.
pub(super) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|c| {
        c.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_report::heat::Heat;

    #[test]
    fn nothing_that_acts_on_a_terminal_gets_through() {
        assert_eq!(shown("a\u{1b}[2Jb\u{7}\r\n\tc"), "a\\u{1b}[2Jb\\u{7}\\r\n\tc");
        assert_eq!(shown("a\u{9b}31mb\u{202e}c\u{7f}"), "a\\u{9b}31mb\\u{202e}c\\u{7f}");
        // Hidden text is none of our colours.
        assert_eq!(shown("\u{1b}[8mx"), "\\u{1b}[8mx");
        let ours = Style { colour: true, ..Style::default() };
        let text = ours.alarm("x")
            + &ours.square("y", Heat::Bad)
            + &ours.bold("z")
            + &ours.dim("z")
            + &ours.command("z");
        assert_eq!(shown(&text), text.as_str());
    }
}
