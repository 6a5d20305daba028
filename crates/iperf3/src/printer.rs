//! Shows tests while they run and when they are over, as text or JSON.
//!
//! What comes in: what a [`Watcher`] sees. What goes out: lines to a writer, and for a server a copy of them
//! for its client. It never fails: a reader that has gone away is remembered and left alone.

use std::io::Write;

use linerate_sys::local_time;
use serde_json::Value;

use super::ask::Watcher;
use super::flags::OutputStyle;
use super::printable::printable;
use super::record::{RecordInterval, TestRecord};
use super::results::ServerOutput;
use super::{json, text};

/// A printer of tests.
pub struct Printer<W> {
    out: W,
    show: OutputStyle,
    /// Text of this test so far.
    printed: String,
    /// The closing lines are out already.
    closed: bool,
    gone: bool,
}

/// Longest copy for a client, bytes: what a client of ours reads of results.
const PRINTED_BYTES_MAX: usize = 4 << 20;

impl<W: Write> Printer<W> {
    /// Prints to `out`.
    pub fn new(out: W, show: OutputStyle) -> Self {
        Self { out, show, printed: String::new(), closed: false, gone: false }
    }

    /// What was printed to.
    pub fn into_inner(self) -> W {
        self.out
    }

    /// A line of its own, not part of a test.
    pub fn line(&mut self, line: &str) {
        self.write(&format!("{line}\n"));
    }

    fn write(&mut self, text: &str) {
        if !self.gone {
            self.gone = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush()).is_err();
        }
    }

    fn print(&mut self, text: &str) {
        if self.show.json {
            return;
        }
        if self.printed.len() + text.len() <= PRINTED_BYTES_MAX {
            self.printed += text;
        }
        self.write(text);
    }

    /// A line of JSON of something that happened, where they are wanted.
    fn event(&mut self, name: &str, data: impl FnOnce() -> Value) {
        if self.show.json_stream {
            self.line(&serde_json::json!({ "event": name, "data": data() }).to_string());
        }
    }

    fn events_of_the_end(&mut self, record: &TestRecord) {
        if let Some(error) = &record.error {
            self.event("error", || error.as_str().into());
        }
        match record.server_output.as_ref().filter(|_| !record.server) {
            Some(ServerOutput::Json(value)) => self.event("server_output_json", || value.clone()),
            Some(ServerOutput::Text(text)) => self.event("server_output_text", || text.as_str().into()),
            None => {}
        }
        self.event("end", || json::end(record));
    }

    fn close(&mut self, record: &TestRecord) {
        if !std::mem::replace(&mut self.closed, true) {
            self.print(&text::closing(record, self.show.unit));
            if self.show.verbose && !record.ends.is_empty() {
                self.print(&text::details(record));
            }
        }
    }
}

impl<W: Write> Watcher for Printer<W> {
    fn connected(&mut self, record: &TestRecord) {
        self.printed.clear();
        self.closed = false;
        self.event("start", || json::start(record));
        self.print(&text::opening(record));
    }

    fn interval(&mut self, record: &TestRecord, interval: &RecordInterval) {
        self.event("interval", || json::interval(record, interval));
        self.print(&text::interval(record, interval, self.show.unit));
    }

    fn output(&mut self, record: &TestRecord) -> Option<ServerOutput> {
        if self.show.json {
            return Some(ServerOutput::Json(json::document(record)));
        }
        self.close(record);
        Some(ServerOutput::Text(self.printed.clone()))
    }

    fn finished(&mut self, record: &TestRecord) {
        self.events_of_the_end(record);
        if self.show.json_stream && !self.show.json_stream_full {
            // Every part of the document is out already.
        } else if self.show.json {
            // A value of our own making can always be written.
            let document = serde_json::to_string_pretty(&json::document(record)).unwrap_or_default();
            self.write(&format!("{document}\n"));
        } else {
            self.close(record);
            if let (false, Some(output)) = (record.server, &record.server_output) {
                let shown = match output {
                    ServerOutput::Text(text) => text.clone(),
                    ServerOutput::Json(value) => value.to_string(),
                };
                self.write(&format!("\nServer output:\n{}\n", printable(&shown)));
            }
            if let Some(error) = &record.error {
                self.write(&format!("error: {}\n", printable(error)));
            }
        }
        self.printed.clear();
        self.closed = false;
    }
}

/// Puts the time before each line, in a format of `strftime`.
pub struct Stamped<W> {
    out: W,
    format: String,
    at_start: bool,
}

impl<W: Write> Stamped<W> {
    /// Before each line of `out`.
    pub fn new(out: W, format: String) -> Self {
        Self { out, format, at_start: true }
    }
}

impl<W: Write> Write for Stamped<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            if std::mem::replace(&mut self.at_start, line.ends_with(b"\n")) {
                self.out.write_all(local_time::now(&self.format).as_bytes())?;
            }
            self.out.write_all(line)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}
