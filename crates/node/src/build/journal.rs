//! The journal of a build: one JSON file, written before each step and after it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use linerate_model::step::Step;
use linerate_wire::message::BuildEntry;
use serde::{Deserialize, Serialize};

use super::{BuildError, Builds};
use crate::change::host::{Content, Host};

/// A step that was begun.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Done {
    pub(crate) step: Step,
    /// What was at the place of a file that the step writes.
    pub(crate) before: Option<Content>,
    /// Whether it ended well.
    pub(crate) whole: bool,
    /// What it left on its devices that tells them from others, by path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) stamps: BTreeMap<String, Vec<u8>>,
}

/// A build on this host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Journal {
    pub(crate) schema: u32,
    /// Name in the inventory.
    pub(crate) host: String,
    pub(crate) build: String,
    /// Unix milliseconds of the first step.
    pub(crate) created_ms: u64,
    pub(crate) steps: Vec<Done>,
    /// The filesystem that was undone had been mounted: what was in its files may stand anywhere on the
    /// volume.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) was_mounted: bool,
}

impl Journal {
    pub(super) fn new(host: &str, build: &str, created_ms: u64) -> Self {
        let (host, build) = (host.to_owned(), build.to_owned());
        Self {
            schema: linerate_model::SCHEMA,
            host,
            build,
            created_ms,
            steps: Vec::new(),
            was_mounted: false,
        }
    }
}

/// What in a journal this program would not have written.
fn foreign(journal: &Journal, build: &str) -> Option<String> {
    if journal.build != build {
        return Some(format!("another build, `{}`", journal.build.escape_debug()));
    }
    let wrong = journal.steps.iter().find_map(|done| done.step.deed().check().err())?;
    Some(format!("a step that cannot be done: {wrong}"))
}

impl Builds {
    pub(super) fn file(&self, build: &str) -> PathBuf {
        self.folder.join(format!("{build}.json"))
    }

    fn parse(&self, path: &Path) -> Result<Option<Journal>, BuildError> {
        let disk = self.disk("read", path);
        match Self::real().load_private(path).map_err(&disk)? {
            None => Ok(None),
            Some(text) => serde_json::from_str(&text).map(Some).map_err(|e| disk(e.into())),
        }
    }

    /// The journal of a build that can be gone on with: its own name, and steps that this program would do.
    pub(super) fn read(&self, build: &str) -> Result<Option<Journal>, BuildError> {
        let path = self.file(build);
        let journal = self.parse(&path)?;
        match journal.as_ref().and_then(|journal| foreign(journal, build)) {
            None => Ok(journal),
            Some(names) => Err(BuildError::Planted { host: self.host.clone(), path, names }),
        }
    }

    /// When this returns it is on the disk, also after a crash.
    pub(super) fn write(&self, journal: &Journal) -> Result<(), BuildError> {
        let path = self.file(&journal.build);
        let disk = self.disk("write", &path);
        let text = serde_json::to_string_pretty(journal).map_err(|e| disk(e.into()))?;
        Self::real().store_private(&path, &text).map_err(disk)
    }

    pub(super) fn list(&self) -> Result<Vec<BuildEntry>, BuildError> {
        let mut paths = Self::real().list(&self.folder).map_err(self.disk("list", &self.folder))?;
        paths.retain(|path| path.extension().is_some_and(|e| e == "json"));
        paths.sort();
        let mut entries = Vec::new();
        for path in paths {
            if let Some(journal) = self.parse(&path)? {
                let whole = journal.steps.last().is_none_or(|done| done.whole);
                let steps = journal.steps.into_iter().map(|done| done.step).collect();
                entries.push(BuildEntry {
                    build: journal.build,
                    created_ms: journal.created_ms,
                    steps,
                    whole,
                });
            }
        }
        Ok(entries)
    }
}
