//! The list of promises: lines of JSON that grow while a node writes, on a disk that is not the one under
//! test.
//!
//! The first line is the head; `{"asked":N}` stands there before records up to `N` are begun,
//! `{"promised":N,"ms":T}` after they were acknowledged. So whatever is cut off, a record that was begun is
//! never taken for one that was not, and no record for promised that was not. In: such lines. Out:
//! [`Promises`].

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read as _, Write};
use std::path::{Path, PathBuf};

use linerate_model::durability::Promises;
use serde_json::{Value, json};

/// A list has a line per batch of records.
const LIST_BYTES_MAX: u64 = 256 << 20;

/// Why a list cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PromisesError {
    /// It cannot be read or written.
    #[error(
        "cannot {what} the list of promises {}: {source}\nhint: `--promises` names a file on another disk than the one under test, which `linerate disk durability write` makes", path.display()
    )]
    Io {
        /// The step.
        what: &'static str,
        /// Its file.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// It is none.
    #[error(
        "{} is no list of promises: {reason}\nhint: `linerate disk durability write` makes one", path.display()
    )]
    Strange {
        /// Its file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

/// A list that grows.
#[derive(Debug)]
pub struct List {
    path: PathBuf,
    /// `None` is stdout, which belongs to whoever reads it.
    file: Option<File>,
}

impl List {
    /// Begins a list in a file that is not there yet; `-` is stdout.
    ///
    /// # Errors
    /// The file is there already, or cannot be made.
    pub fn begin(path: &Path) -> Result<Self, PromisesError> {
        let io = |source| PromisesError::Io { what: "make", path: path.to_owned(), source };
        let file = if path == Path::new("-") {
            None
        } else {
            Some(OpenOptions::new().append(true).create_new(true).open(path).map_err(io)?)
        };
        Ok(Self { path: path.to_owned(), file })
    }

    /// Writes lines and waits until they are on the disk.
    fn add(&mut self, lines: &[Value]) -> Result<(), PromisesError> {
        let text = lines.iter().fold(String::new(), |text, line| text + &format!("{line}\n"));
        let written = if let Some(file) = &mut self.file {
            file.write_all(text.as_bytes()).and_then(|()| file.sync_data())
        } else {
            let mut stdout = io::stdout().lock();
            stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush())
        };
        written.map_err(|source| PromisesError::Io { what: "write", path: self.path.clone(), source })
    }

    /// The first line.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn head(&mut self, promises: &Promises) -> Result<(), PromisesError> {
        self.add(&[json!({ "promises": promises })])
    }

    /// What was acknowledged since, and up to which record the next ones are asked for.
    ///
    /// # Errors
    /// It cannot be written: then nothing more may be asked.
    pub fn step(&mut self, promises: &Promises) -> Result<(), PromisesError> {
        self.add(&[
            json!({ "promised": promises.acknowledged, "ms": promises.last_ms }),
            json!({ "asked": promises.asked }),
        ])
    }

    /// The last line.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn end(&mut self, promises: &Promises) -> Result<(), PromisesError> {
        self.add(&[
            json!({ "promised": promises.acknowledged, "ms": promises.last_ms }),
            json!({ "ended": promises.ended }),
        ])
    }
}

/// Reads a list. A last line that was cut off is left out.
///
/// # Errors
/// The file cannot be read, or has no head.
pub fn read(path: &Path) -> Result<Promises, PromisesError> {
    let strange = |reason: String| PromisesError::Strange { path: path.to_owned(), reason };
    let file = linerate_input::open(path).map_err(|error| PromisesError::Io {
        what: "read",
        path: path.to_owned(),
        source: std::io::Error::other(error.problem),
    })?;
    let mut lines = BufReader::new(file.take(LIST_BYTES_MAX)).lines();
    let first = lines.next().and_then(Result::ok).unwrap_or_default();
    let mut head: Value = serde_json::from_str(&first).map_err(|e| strange(format!("first line: {e}")))?;
    let mut promises: Promises =
        serde_json::from_value(head["promises"].take()).map_err(|e| strange(format!("first line: {e}")))?;
    promises.plan.check().map_err(strange)?;
    if promises.patterns.len() != promises.plan.patterns.len() {
        return Err(strange(format!(
            "{} patterns are described, {} are written",
            promises.patterns.len(),
            promises.plan.patterns.len()
        )));
    }
    for line in lines.map_while(Result::ok) {
        let Ok(line) = serde_json::from_str::<Value>(&line) else { break };
        let number = |key: &str| line.get(key).and_then(Value::as_u64);
        let records = |n: u64| u32::try_from(n).unwrap_or(u32::MAX).min(promises.plan.records);
        if let Some(asked) = number("asked").map(records) {
            promises.asked = promises.asked.max(asked);
        }
        if let Some(promised) = number("promised").map(records) {
            promises.acknowledged = promises.acknowledged.max(promised);
        }
        if let Some(ms) = number("ms") {
            promises.last_ms = ms;
        }
        if let Some(ended) = line.get("ended").and_then(Value::as_str) {
            ended.clone_into(&mut promises.ended);
        }
    }
    promises.asked = promises.asked.max(promises.acknowledged);
    Ok(promises)
}

#[cfg(test)]
mod tests {
    use linerate_model::SCHEMA;
    use linerate_model::durability::{FolderLocation, Pattern, PatternRule, Promised, WritePlan};

    use super::*;

    fn promises() -> Promises {
        let pattern = Pattern {
            name: "create".into(),
            doing: "x".into(),
            calls: String::new(),
            shape: PatternRule::Fresh,
            promised: Promised::Nothing,
        };
        let patterns = vec!["create".to_owned()];
        Promises {
            schema: SCHEMA,
            host: "arc-1".into(),
            folder: "/mnt/test".into(),
            plan: WritePlan { run: "0123456789abcdef".into(), patterns, files: 1, records: 100 },
            patterns: vec![pattern],
            place: FolderLocation::default(),
            start_ms: 5,
            acknowledged: 0,
            asked: 0,
            last_ms: 0,
            ended: String::new(),
        }
    }

    #[test]
    fn a_list_that_was_cut_at_any_byte_says_no_more_than_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list.jsonl");
        let mut list = List::begin(&path).unwrap();
        let mut now = promises();
        list.head(&now).unwrap();
        for step in 1..4 {
            (now.acknowledged, now.asked, now.last_ms) = (step * 10 - 10, step * 10, 7);
            list.step(&now).unwrap();
        }
        "time".clone_into(&mut now.ended);
        list.end(&now).unwrap();
        assert_eq!(read(&path).unwrap(), now);
        assert!(List::begin(&path).is_err(), "a list is never written over");
        let bytes = std::fs::read(&path).unwrap();
        let head = bytes.iter().position(|b| *b == b'\n').unwrap();
        let cut = folder.path().join("cut");
        for end in 0..bytes.len() {
            std::fs::write(&cut, &bytes[..end]).unwrap();
            match read(&cut) {
                Ok(read) => assert!(read.acknowledged <= read.asked && read.asked <= 30 && end >= head),
                Err(error) => assert!(end <= head, "{end}: {error}"),
            }
        }
    }

    #[test]
    fn what_is_no_list_is_refused_in_words() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let mut other = promises();
        other.patterns.clear();
        let mut bad_run = promises();
        bad_run.plan.run = "../x".into();
        for text in [
            String::new(),
            "{}".into(),
            "\u{1b}[2J".into(),
            json!({ "promises": other }).to_string(),
            json!({ "promises": bad_run }).to_string(),
        ] {
            std::fs::write(&path, &text).unwrap();
            assert!(read(&path).unwrap_err().to_string().contains("is no list of promises"), "{text}");
        }
        assert!(read(&folder.path().join("none")).unwrap_err().to_string().starts_with("cannot read"));
    }
}
