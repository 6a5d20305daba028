//! A block device that somebody wants to write, and what every check of it implements.
//!
//! What comes in: a path. What goes out: the device as the kernel lists it. Lists that a check needs are
//! whole or an error: what cannot be seen counts against writing.

use std::path::{Path, PathBuf};

use linerate_model::names::natural;
use linerate_sys::block::{self, Kind, Number};
use linerate_sys::root::{NAMES_MAX, ReadError, Root};

/// A block device that somebody wants to write.
#[derive(Debug)]
pub(in crate::disk) struct Candidate<'a> {
    pub(super) root: &'a Root,
    /// Path, links followed.
    pub(super) path: PathBuf,
    /// Name of the kernel.
    pub(super) name: String,
    pub(super) number: Number,
    /// Folder in `/sys`.
    pub(super) folder: String,
    /// The device that it is a part of, by name.
    pub(super) whole: Option<String>,
}

/// One reason not to write.
pub(super) trait Check: Sync {
    /// What is looked for, short and stable.
    fn name(&self) -> &'static str;
    /// Why it may not be written.
    fn look(&self, candidate: &Candidate<'_>) -> Result<(), String>;
}

/// Finds a device of this number among those of the kernel.
pub(super) fn find(root: &Root, path: PathBuf, number: Number) -> Result<Candidate<'_>, String> {
    let wanted = number.to_string();
    let is_it = |folder: &str| root.line(&format!("{folder}/dev")).is_ok_and(|dev| dev == wanted);
    let all =
        root.list("/sys/block").map_err(|e| format!("the list of block devices cannot be read: {e}"))?;
    for whole in all {
        let folder = format!("/sys/block/{whole}");
        if is_it(&folder) {
            return Ok(Candidate { root, path, name: whole, number, folder, whole: None });
        }
        for part in root.list(&folder).unwrap_or_default() {
            let below = format!("{folder}/{part}");
            if part.starts_with(&whole) && is_it(&below) {
                return Ok(Candidate { root, path, name: part, number, folder: below, whole: Some(whole) });
            }
        }
    }
    Err(format!("the kernel lists no block device {wanted}"))
}

/// The block device that a path leads to, links followed.
pub(super) fn candidate<'a>(root: &'a Root, path: &Path) -> Result<Candidate<'a>, String> {
    let path = std::fs::canonicalize(path).map_err(|e| format!("it cannot be found: {e}"))?;
    let Kind::Device(number) = block::kind(&path).map_err(|e| e.to_string())? else {
        return Err("it is no block device".to_owned());
    };
    find(root, path, number)
}

impl Candidate<'_> {
    /// A list that has to be seen, in the natural order of names: what is missing counts as not seen.
    pub(super) fn seen(&self, path: &str, what: &str) -> Result<Vec<String>, String> {
        let mut names = self.root.list(path).map_err(|e| format!("{what} cannot be seen: {path}: {e}"))?;
        // A list is cut there, and what is behind nobody has seen.
        if names.len() >= NAMES_MAX {
            return Err(format!("{what} cannot all be seen: {path} has {NAMES_MAX} entries or more"));
        }
        names.sort_by(|a, b| natural(a, b));
        Ok(names)
    }

    /// Numbers and names of it and of what it is a part of, or of its parts: whoever has one of them has it
    /// too.
    pub(super) fn family(&self) -> Result<Vec<(String, String)>, String> {
        let mut all = vec![(self.number.to_string(), self.name.clone())];
        let others = if let Some(whole) = &self.whole {
            vec![(format!("/sys/block/{whole}/dev"), whole.clone())]
        } else {
            let parts = self.partitions(&self.name)?;
            parts.into_iter().map(|part| (format!("{}/{part}/dev", self.folder), part)).collect()
        };
        for (path, name) in others {
            all.push((self.root.line(&path).map_err(|e| format!("{path}: {e}"))?, name));
        }
        Ok(all)
    }

    /// Partitions of a device, by name.
    pub(super) fn partitions(&self, whole: &str) -> Result<Vec<String>, String> {
        let folder = format!("/sys/block/{whole}");
        let names = self.seen(&folder, "its partitions")?;
        let mut parts = Vec::new();
        for name in names {
            let path = format!("{folder}/{name}/partition");
            match self.root.number(&path) {
                Ok(_) => parts.push(name),
                Err(ReadError::Missing) => {}
                Err(error) => return Err(format!("its partitions cannot be seen: {path}: {error}")),
            }
        }
        Ok(parts)
    }
}
