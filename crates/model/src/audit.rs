//! What is asked of a node, and what it answers, when a folder of data is looked through for what a power cut
//! has left. Nothing is ever changed by it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fact::Gap;
use crate::inventory::HostName;

/// Paths that are named for each class.
pub const EXAMPLES_MAX: usize = 20;

/// Kind of data that is looked through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AuditKind {
    /// Data folder of a Hadoop data node.
    Hadoop,
    /// Brick of a Gluster volume.
    Gluster,
}

impl AuditKind {
    /// All of them.
    pub const ALL: &[Self] = &[Self::Hadoop, Self::Gluster];

    /// As it is typed.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Hadoop => "hadoop",
            Self::Gluster => "gluster",
        }
    }
}

impl std::fmt::Display for AuditKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A piece of the work: a node keeps nothing between two of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditRequest {
    /// Folder.
    pub folder: PathBuf,
    /// What it is; found out when it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<AuditKind>,
    /// Read all data and compare checksums.
    pub sums: bool,
    /// Where the last piece ended; nothing for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// No other folder is begun after this time, milliseconds.
    pub budget_ms: u32,
}

/// How bad a class is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Harm {
    /// As it should be.
    Fine,
    /// Worth knowing, no data are lost by it.
    Remark,
    /// Data are gone, or cannot be found any more.
    Loss,
}

/// Files of one class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditClass {
    /// How bad.
    pub harm: Harm,
    /// What it is, in words.
    pub words: String,
    /// How many.
    pub count: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Some of them, below the folder, with what was seen.
    pub examples: Vec<String>,
}

/// What a piece, or all pieces together, found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditPart {
    /// What it is.
    pub kind: AuditKind,
    /// By the name of the class.
    pub classes: BTreeMap<String, AuditClass>,
    /// Folders that were looked through.
    pub folders: u64,
    /// What could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<Gap>,
    /// Where to go on; nothing at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl AuditPart {
    /// Nothing yet.
    #[must_use]
    pub fn new(kind: AuditKind) -> Self {
        Self { kind, classes: BTreeMap::new(), folders: 0, gaps: Vec::new(), next: None }
    }

    /// Adds a file to a class.
    pub fn add(
        &mut self,
        class: &str,
        harm: Harm,
        words: &str,
        bytes: u64,
        example: impl FnOnce() -> String,
    ) {
        let class = self.classes.entry(class.to_owned()).or_insert_with(|| AuditClass {
            harm,
            words: words.to_owned(),
            count: 0,
            bytes: 0,
            examples: Vec::new(),
        });
        class.count += 1;
        class.bytes = class.bytes.saturating_add(bytes);
        // What is fine needs no example.
        if harm > Harm::Fine && class.examples.len() < EXAMPLES_MAX {
            class.examples.push(example());
        }
    }

    /// Adds another piece.
    pub fn merge(&mut self, other: Self) {
        self.kind = other.kind;
        self.folders += other.folders;
        self.next = other.next;
        let room = EXAMPLES_MAX.saturating_sub(self.gaps.len());
        self.gaps.extend(other.gaps.into_iter().take(room));
        for (name, class) in other.classes {
            match self.classes.get_mut(&name) {
                None => drop(self.classes.insert(name, class)),
                Some(ours) => {
                    ours.count += class.count;
                    ours.bytes = ours.bytes.saturating_add(class.bytes);
                    let room = EXAMPLES_MAX.saturating_sub(ours.examples.len());
                    ours.examples.extend(class.examples.into_iter().take(room));
                }
            }
        }
    }

    /// Files of all classes that are a loss.
    #[must_use]
    pub fn losses(&self) -> u64 {
        self.classes.values().filter(|c| c.harm == Harm::Loss).map(|c| c.count).sum()
    }
}

/// The whole audit of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditReport {
    /// [`crate::SCHEMA`].
    pub schema: u32,
    /// Host.
    pub host: HostName,
    /// Folder.
    pub folder: PathBuf,
    /// Whether data were read and compared with their checksums.
    pub sums: bool,
    /// What was found.
    pub found: AuditPart,
    /// What it means.
    pub sentences: Vec<String>,
}
