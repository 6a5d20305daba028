//! The files of a host below the folder that stands for `/etc`, and below those that go with it: beside an
//! `etc` stand the `usr/lib` and `run` of the same system.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use linerate_sys::root::{ReadError, Root};

/// The files; see the file's head.
pub(super) struct Tree<'a> {
    root: &'a Root,
    etc: PathBuf,
    /// What holds `etc`; absent where the folder has another name.
    base: Option<PathBuf>,
    /// Files that are about to be written, by path: read instead of those on the disk.
    written: BTreeMap<String, String>,
}

impl<'a> Tree<'a> {
    pub(super) fn new(root: &'a Root, etc: &Path) -> Self {
        let base = etc.parent().filter(|_| etc.ends_with("etc")).map(Path::to_owned);
        Self { root, etc: etc.to_owned(), base, written: BTreeMap::new() }
    }

    /// The same files once these are written.
    pub(super) fn with(self, written: BTreeMap<String, String>) -> Self {
        Self { written, ..self }
    }

    /// Path of a file below `/etc`.
    pub(super) fn etc(&self, path: &str) -> String {
        self.etc.join(path).display().to_string()
    }

    /// Path of a file that stands by this path on the host; `None` where that is not of the same system.
    pub(super) fn at(&self, path: &str) -> Option<String> {
        match path.strip_prefix("/etc/") {
            Some(below) => Some(self.etc(below)),
            None => self.beside(path.strip_prefix('/')?),
        }
    }

    /// Whether a file may be run as a program.
    pub(super) fn is_executable(&self, path: &str) -> Result<bool, String> {
        match self.root.is_executable(path) {
            Err(error) if !is_absent(&error) => Err(format!("{path}: {error}")),
            known => Ok(known.unwrap_or(false)),
        }
    }

    /// Text of a file; `None` where it is not there.
    pub(super) fn read(&self, path: &str) -> Result<Option<String>, String> {
        if let Some(text) = self.written.get(path).or_else(|| self.written.get(&self.linked(path)?)) {
            return Ok(Some(text.clone()));
        }
        match self.root.read(path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(format!("{path}: {error}")),
        }
    }

    /// Where a path leads that is a link, where files are about to be written: `sysctl.d/99-sysctl.conf` is
    /// one to `../sysctl.conf`.
    fn linked(&self, path: &str) -> Option<String> {
        if self.written.is_empty() {
            return None;
        }
        let target = self.root.link(path).ok()?;
        let mut whole = PathBuf::new();
        for part in Path::new(path).parent()?.join(target).components() {
            if part == Component::ParentDir {
                whole.pop();
            } else {
                whole.push(part);
            }
        }
        Some(whole.display().to_string())
    }

    /// Names in a folder; none where it is not there.
    pub(super) fn list(&self, path: &str) -> Result<Vec<String>, String> {
        let mut names = match self.root.list(path) {
            Ok(names) => names,
            Err(error) if is_absent(&error) => Vec::new(),
            Err(error) => return Err(format!("{path}: {error}")),
        };
        let below =
            |file: &String| Some(file.strip_prefix(path)?.strip_prefix('/')?.split('/').next()?.to_owned());
        let new: Vec<String> = self.written.keys().filter_map(below).filter(|n| !names.contains(n)).collect();
        names.extend(new);
        Ok(names)
    }

    /// A path of a file below `/etc` as it is written in settings that persist.
    pub(super) fn below_etc(&self, path: &str) -> Option<PathBuf> {
        Path::new(path).strip_prefix(&self.etc).ok().map(Path::to_owned)
    }

    /// Path of a file of the same system: `usr/lib/tuned`.
    pub(super) fn beside(&self, path: &str) -> Option<String> {
        Some(self.base.as_ref()?.join(path).display().to_string())
    }

    /// The files of a folder as systemd reads them (systemd-system.conf(5), "CONFIGURATION DIRECTORIES AND
    /// PRECEDENCE"): by name over all folders, and of one name that of the first folder.
    pub(super) fn merged(&self, folder: &str, extension: &str) -> Result<Vec<String>, String> {
        let others = ["run", "usr/local/lib", "usr/lib"].map(|dir| self.beside(&format!("{dir}/{folder}")));
        let folders = [Some(self.etc(folder))].into_iter().chain(others).flatten();
        let mut files: BTreeMap<String, String> = BTreeMap::new();
        for folder in folders {
            for name in self.list(&folder)?.into_iter().filter(|name| name.ends_with(extension)) {
                files.entry(name.clone()).or_insert_with(|| format!("{folder}/{name}"));
            }
        }
        Ok(files.into_values().collect())
    }
}

fn is_absent(error: &ReadError) -> bool {
    matches!(error, ReadError::Missing)
}
