//! Files and folders of imported evidence: paths come in, texts for the readers of `linerate-import` go out.
//! What cannot be opened is told and left out. Links are not followed, and nothing is written.

use std::path::{Path, PathBuf};

use linerate_import::{BYTES_MAX, Document, is_wanted_of_sosreport};
use linerate_model::names;

use linerate_input::{self as input, InputError};

/// Most files that are read.
const FILES_MAX: usize = 20_000;
/// Most bytes that are read in all.
const TOTAL_BYTES_MAX: u64 = 1 << 30;
/// Deepest folder below the one that was named.
const DEPTH_MAX: usize = 24;
/// The folder that every sosreport has.
const SOSREPORT: &str = "sos_commands";

/// Texts, and what was left out.
#[derive(Debug, Default)]
pub struct Collected {
    /// In the order in which they were named; folders by name.
    pub documents: Vec<Document>,
    /// What could not be read, in words.
    pub remarks: Vec<String>,
    /// Bytes so far.
    bytes: u64,
    /// Files of sosreports that are of no use here.
    passed_over: usize,
    /// FIFOs, devices and sockets in folders.
    special: usize,
}

/// Reads files, folders and, for `-`, standard input.
pub fn collect(paths: &[PathBuf]) -> anyhow::Result<Collected> {
    let mut all = Collected::default();
    for path in paths {
        if path == Path::new("-") {
            all.documents.push(Document::new("stdin", input::stdin(BYTES_MAX)?));
            continue;
        }
        let name = path.file_name().map_or_else(|| "folder".to_owned(), |n| n.to_string_lossy().into_owned());
        if path.is_dir() {
            let report = path.join(SOSREPORT).is_dir().then_some("");
            all.folder(path, &name, report, 0);
        } else {
            all.file(path, &name).map_err(|error| {
                let hint = "name files or folders with what tools printed, or `-`".to_owned();
                if error.hint.is_empty() { InputError { hint, ..error } } else { error }
            })?;
        }
    }
    if all.passed_over > 0 {
        all.remarks.push(format!(
            "files of sosreports that say nothing about network or disks: {}",
            all.passed_over
        ));
    }
    if all.special > 0 {
        all.remarks.push(format!("FIFOs, devices and sockets in folders: {}", all.special));
    }
    Ok(all)
}

impl Collected {
    /// A folder; `report` is the path below the root of a sosreport, when this is inside one.
    fn folder(&mut self, path: &Path, name: &str, report: Option<&str>, depth: usize) {
        let mut entries: Vec<std::fs::DirEntry> = match std::fs::read_dir(path) {
            Ok(entries) => entries.filter_map(Result::ok).collect(),
            Err(error) => return self.remarks.push(format!("{name}: {error}")),
        };
        entries.sort_by(|a, b| {
            let [a, b] = [a, b].map(|entry| entry.file_name().to_string_lossy().into_owned());
            names::natural(&a, &b)
        });
        for entry in entries {
            let Ok(kind) = entry.file_type() else { continue };
            let own = entry.file_name().to_string_lossy().into_owned();
            let (path, name) = (entry.path(), format!("{name}/{own}"));
            let below = report.map(|r| if r.is_empty() { own.clone() } else { format!("{r}/{own}") });
            if kind.is_dir() && depth < DEPTH_MAX {
                let root = path.join(SOSREPORT).is_dir().then_some("");
                self.folder(&path, &name, below.as_deref().or(root), depth + 1);
            } else if kind.is_file() {
                if below.as_deref().is_some_and(|below| !is_wanted_of_sosreport(below)) {
                    self.passed_over += 1;
                } else if let Err(error) = self.file(&path, &name) {
                    self.remarks.push(format!("{name}: {}", error.problem));
                }
            } else if !kind.is_symlink() && !kind.is_dir() {
                self.special += 1;
            }
        }
    }

    /// Reads a file; an error when it cannot be read at all.
    fn file(&mut self, path: &Path, name: &str) -> Result<(), InputError> {
        if self.documents.len() >= FILES_MAX || self.bytes >= TOTAL_BYTES_MAX {
            let remark =
                format!("only the first {FILES_MAX} files and {} MB are read", TOTAL_BYTES_MAX >> 20);
            if self.remarks.last() != Some(&remark) {
                self.remarks.push(remark);
            }
            return Ok(());
        }
        let packed = [".xz", ".gz", ".bz2", ".zst", ".tar", ".tgz", ".zip"];
        if packed.iter().any(|end| name.ends_with(end)) {
            self.remarks.push(format!("{name}: an archive; unpack it and name the folder"));
            return Ok(());
        }
        let bytes = input::bytes(path, BYTES_MAX)?;
        self.bytes += bytes.len() as u64;
        self.documents.push(Document::new(name, bytes));
        Ok(())
    }
}
