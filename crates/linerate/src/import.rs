//! Files and folders of foreign evidence: paths come in, texts for the readers of `linerate-foreign` go out. What cannot be opened is
//! told and left out. Links are not followed, and nothing is written.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context;
use linerate_foreign::{BYTES_MAX, Document, is_wanted_of_sosreport};
use linerate_model::names;

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
}

/// Reads files, folders and, for `-`, standard input.
pub fn collect(paths: &[PathBuf]) -> anyhow::Result<Collected> {
    let mut all = Collected::default();
    for path in paths {
        if path == Path::new("-") {
            let mut bytes = Vec::new();
            let limit = BYTES_MAX as u64 + 1;
            std::io::stdin()
                .lock()
                .take(limit)
                .read_to_end(&mut bytes)
                .context("cannot read standard input")?;
            all.documents.push(Document::new("stdin", bytes));
            continue;
        }
        let kind = std::fs::metadata(path).with_context(|| {
            format!(
                "cannot read {}\nhint: name files or folders with what tools printed, or `-`",
                path.display()
            )
        })?;
        let name = path.file_name().map_or_else(|| "folder".to_owned(), |n| n.to_string_lossy().into_owned());
        if kind.is_dir() {
            let report = path.join(SOSREPORT).is_dir().then_some("");
            all.folder(path, &name, report, 0);
        } else {
            all.file(path, &name);
        }
    }
    if all.passed_over > 0 {
        all.remarks.push(format!(
            "files of sosreports that say nothing about network or disks: {}",
            all.passed_over
        ));
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
                } else {
                    self.file(&path, &name);
                }
            }
        }
    }

    fn file(&mut self, path: &Path, name: &str) {
        if self.documents.len() >= FILES_MAX || self.bytes >= TOTAL_BYTES_MAX {
            let remark =
                format!("only the first {FILES_MAX} files and {} MB are read", TOTAL_BYTES_MAX >> 20);
            if self.remarks.last() != Some(&remark) {
                self.remarks.push(remark);
            }
            return;
        }
        let packed = [".xz", ".gz", ".bz2", ".zst", ".tar", ".tgz", ".zip"];
        if packed.iter().any(|end| name.ends_with(end)) {
            self.remarks.push(format!("{name}: an archive; unpack it and name the folder"));
            return;
        }
        let mut bytes = Vec::new();
        let read =
            std::fs::File::open(path).and_then(|f| f.take(BYTES_MAX as u64 + 1).read_to_end(&mut bytes));
        match read {
            Ok(_) => {
                self.bytes += bytes.len() as u64;
                self.documents.push(Document::new(name, bytes));
            }
            Err(error) => self.remarks.push(format!("{name}: {error}")),
        }
    }
}
