//! A block device as a write target, and the trait of its checks.
//!
//! What comes in: a path. What goes out: the device as the kernel lists it. Lists that a check needs are
//! whole or an error: what cannot be seen counts against writing.

use std::path::{Path, PathBuf};

use linerate_model::names::natural;
use linerate_sys::block::{self, FileKind, Number};
use linerate_sys::root::{NAMES_MAX, ReadError, Root};

use super::error::WriteRefusal;

/// A block device as a write target.
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
    /// What it checks, short and stable.
    fn name(&self) -> &'static str;
    /// Why it may not be written.
    fn run(&self, candidate: &Candidate<'_>) -> Result<(), WriteRefusal>;
}

/// Finds a device of this number among those of the kernel.
pub(super) fn find(root: &Root, path: PathBuf, number: Number) -> Result<Candidate<'_>, WriteRefusal> {
    let wanted = number.to_string();
    let is_it = |folder: &str| root.line(&format!("{folder}/dev")).is_ok_and(|dev| dev == wanted);
    let all =
        root.list("/sys/block").map_err(WriteRefusal::file("the list of block devices cannot be read"))?;
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
    Err(WriteRefusal::NotListed(number))
}

/// The block device that a path leads to, links followed.
pub(super) fn candidate<'a>(root: &'a Root, path: &Path) -> Result<Candidate<'a>, WriteRefusal> {
    let path = std::fs::canonicalize(path).map_err(WriteRefusal::step("it cannot be found"))?;
    let FileKind::Device(number) = block::kind(&path)? else { return Err(WriteRefusal::NoBlockDevice) };
    find(root, path, number)
}

impl Candidate<'_> {
    /// A list that has to be seen, in the natural order of names: what is missing counts as not seen.
    pub(super) fn seen(&self, path: &str, what: &str) -> Result<Vec<String>, WriteRefusal> {
        let unseen = |source| WriteRefusal::unseen(what, WriteRefusal::file(path)(source));
        let mut names = self.root.list(path).map_err(unseen)?;
        // A list is cut there, and the rest is unknown.
        if names.len() >= NAMES_MAX {
            return Err(WriteRefusal::LongList { what: what.to_owned(), list: path.to_owned() });
        }
        names.sort_by(|a, b| natural(a, b));
        Ok(names)
    }

    /// Numbers and names of it, of its whole device and of its partitions: a user of one of them uses it too.
    pub(super) fn family(&self) -> Result<Vec<(String, String)>, WriteRefusal> {
        let mut all = vec![(self.number.to_string(), self.name.clone())];
        let others = if let Some(whole) = &self.whole {
            vec![(format!("/sys/block/{whole}/dev"), whole.clone())]
        } else {
            let parts = self.partitions(&self.name)?;
            parts.into_iter().map(|part| (format!("{}/{part}/dev", self.folder), part)).collect()
        };
        for (path, name) in others {
            all.push((self.root.line(&path).map_err(WriteRefusal::file(&path))?, name));
        }
        Ok(all)
    }

    /// Partitions of a device, by name.
    pub(super) fn partitions(&self, whole: &str) -> Result<Vec<String>, WriteRefusal> {
        let folder = format!("/sys/block/{whole}");
        let names = self.seen(&folder, "its partitions")?;
        let mut parts = Vec::new();
        for name in names {
            let path = format!("{folder}/{name}/partition");
            match self.root.number(&path) {
                Ok(_) => parts.push(name),
                Err(ReadError::Missing) => {}
                Err(error) => {
                    return Err(WriteRefusal::unseen("its partitions", WriteRefusal::file(&path)(error)));
                }
            }
        }
        Ok(parts)
    }
}
