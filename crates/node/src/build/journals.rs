//! The folder of journals of builds: one JSON file for each, written before each step and after it.

use std::path::{Path, PathBuf};

use linerate_sys::root::Root;
use linerate_wire::message::BuildEntry;

use super::error::BuildError;
use super::journal::Journal;
use linerate_facts::change::host::{ChangingHost, RealHost};

/// Where the steps of this host are journalled.
pub(super) struct Journals {
    folder: PathBuf,
    /// Name in the inventory.
    host: String,
}

/// The host that this program runs on.
pub(super) fn real_host() -> RealHost {
    RealHost::new(Root::live())
}

/// What in a journal this program would not have written.
fn stray(journal: &Journal, build: &str) -> Option<String> {
    if journal.build != build {
        return Some(format!("another build, `{}`", journal.build.escape_debug()));
    }
    let wrong = journal.steps.iter().find_map(|done| done.step.operation().check().err())?;
    Some(format!("a step that cannot be done: {wrong}"))
}

impl Journals {
    /// Below the folder of the node's state.
    pub(super) fn below(state_dir: &Path, host: &str) -> Self {
        Self { folder: state_dir.join("builds"), host: host.to_owned() }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    fn disk(&self, what: &'static str, path: &Path) -> impl Fn(std::io::Error) -> BuildError {
        BuildError::disk(&self.host, what, path)
    }

    fn file(&self, build: &str) -> PathBuf {
        self.folder.join(format!("{build}.json"))
    }

    fn parse(&self, path: &Path) -> Result<Option<Journal>, BuildError> {
        let disk = self.disk("read", path);
        match real_host().load_private(path).map_err(&disk)? {
            None => Ok(None),
            Some(text) => serde_json::from_str(&text).map(Some).map_err(|e| disk(e.into())),
        }
    }

    /// The journal of a build that can be gone on with: its own name, and steps that this program would do.
    pub(super) fn read(&self, build: &str) -> Result<Option<Journal>, BuildError> {
        let path = self.file(build);
        let journal = self.parse(&path)?;
        match journal.as_ref().and_then(|journal| stray(journal, build)) {
            None => Ok(journal),
            Some(names) => Err(BuildError::Planted { host: self.host.clone(), path, names }),
        }
    }

    /// When this returns it is on the disk, also after a crash.
    pub(super) fn write(&self, journal: &Journal) -> Result<(), BuildError> {
        let path = self.file(&journal.build);
        let disk = self.disk("write", &path);
        let text = serde_json::to_string_pretty(journal).map_err(|e| disk(e.into()))?;
        real_host().store_private(&path, &text).map_err(disk)
    }

    /// Removes the journal of a build; none is no error.
    pub(super) fn remove(&self, build: &str) -> Result<(), BuildError> {
        let path = self.file(build);
        real_host().remove_private(&path).map_err(self.disk("remove", &path))
    }

    /// All builds of the folder.
    pub(super) fn list(&self) -> Result<Vec<BuildEntry>, BuildError> {
        let mut paths = real_host().list(&self.folder).map_err(self.disk("list", &self.folder))?;
        paths.retain(|path| path.extension().is_some_and(|e| e == "json"));
        paths.sort();
        let mut entries = Vec::new();
        for path in paths {
            if let Some(journal) = self.parse(&path)? {
                let whole = journal.steps.last().is_none_or(|done| done.whole);
                let left = journal.steps.iter().enumerate().filter(|(_, done)| done.was_there);
                let was_there = left.map(|(at, _)| at).collect();
                let steps = journal.steps.into_iter().map(|done| done.step).collect();
                entries.push(BuildEntry {
                    build: journal.build,
                    created_ms: journal.created_ms,
                    steps,
                    was_there,
                    whole,
                });
            }
        }
        Ok(entries)
    }
}
