//! The two streams of a command: results to stdout, everything else to stderr. Nothing else in the crate prints.

use std::io::Write;

/// Writes a result.
pub(super) fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        stdout.write_all(b"\n")?;
    }
    stdout.flush()?;
    Ok(())
}

/// Writes a value as JSON.
pub(super) fn json<T: serde::Serialize>(value: &T) -> anyhow::Result<()> {
    print(&serde_json::to_string_pretty(value)?)
}

/// A remark for people.
pub(super) fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// An error with its causes, each once; hints come last.
pub(super) fn say_error(error: &anyhow::Error) {
    let mut hints = Vec::new();
    let mut lines = Vec::new();
    for cause in error.chain() {
        let text = cause.to_string();
        let mut parts = text.splitn(2, "\nhint: ");
        let head = parts.next().unwrap_or_default();
        hints.extend(parts.next().map(str::to_owned));
        if !head.is_empty() && !lines.iter().any(|l: &String| l.contains(head)) {
            lines.push(head.to_owned());
        }
    }
    note(&format!("error: {}", lines.join(": ")));
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
