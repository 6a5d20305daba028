//! The journal of a build: its steps, with what was there before each of them.

use std::collections::BTreeMap;

use linerate_model::step::Step;
use serde::{Deserialize, Serialize};

use linerate_facts::change::host::Content;

/// A step that was begun.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Done {
    pub(crate) step: Step,
    /// What was at the place of a file that the step writes.
    pub(crate) before: Option<Content>,
    /// Whether what the step makes was on the host before it, and stays.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) was_there: bool,
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
