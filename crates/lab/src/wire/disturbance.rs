//! Log of late wires: spans in which a measurement has to be discarded.
//!
//! In: how late a wire was. Out: lines `{"from_ms":…,"to_ms":…,"reason":"…"}` appended to one file, Unix
//! milliseconds. It never stops a wire: what cannot be written is dropped.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

/// The open file.
#[derive(Debug)]
pub struct Disturbances {
    file: File,
}

#[derive(Serialize)]
struct Line<'a> {
    from_ms: u64,
    to_ms: u64,
    reason: &'a str,
}

impl Disturbances {
    /// Opens the file for appending, and makes it when it is not there.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: OpenOptions::new().create(true).append(true).open(path)? })
    }

    /// A wire is delivering now what was due `late_ns` ago.
    pub fn late(&self, wire: &str, late_ns: u64) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let to_ms = now.as_millis() as u64;
        let from_ms = to_ms.saturating_sub(late_ns.div_ceil(1_000_000));
        let reason = format!("{wire}: {:.1} ms late", late_ns as f64 / 1e6);
        if let Ok(mut line) = serde_json::to_vec(&Line { from_ms, to_ms, reason: &reason }) {
            line.push(b'\n');
            // One write per line: lines of several wires never mix.
            let _ = (&self.file).write_all(&line);
        }
    }
}
