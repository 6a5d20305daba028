//! Records that are written to be looked for after a power cut: what is asked of a node, what it answers,
//! what is found.
//!
//! Which file a record goes to follows from its number alone, so that a list of promises needs nothing but
//! numbers, and no step depends on what a node remembers.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::inventory::HostName;

/// Most records of a plan.
pub const RECORDS_MAX: u32 = 1_000_000;
/// Most files of a pattern whose files are written again.
pub const FILES_MAX: u32 = 10_000;
/// Most records or files of one request.
pub const BATCH_MAX: u32 = 256;
/// Largest content of a file that is written at once, bytes.
pub const CONTENT_BYTES_MAX: u64 = 64 << 10;

/// What becomes of the files of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PatternRule {
    /// Each record is a file of its own.
    Fresh,
    /// A file is made empty and written again.
    Truncated,
    /// A file is written over where it is.
    InPlace,
    /// A file grows by a record.
    Grown,
    /// Another file takes the name.
    Replaced,
}

/// What the kernel has promised when a pattern is through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Promised {
    /// Nothing: no call that asks for it was made.
    Nothing,
    /// The content; the name was given in a folder that was not synchronised.
    Content,
    /// The content under its name.
    All,
}

/// A way in which programs write files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pattern {
    /// `replace+fsync`.
    pub name: String,
    /// In words: `temporary file, rename over the old one`.
    pub doing: String,
    /// Calls that ask for durability: `fsync of file and folder`; empty when none is made.
    pub calls: String,
    /// What becomes of its files.
    pub shape: PatternRule,
    /// What the kernel promises by it.
    pub promised: Promised,
}

/// What is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WritePlan {
    /// Sixteen hexadecimal digits: the records of another run are not taken for ours.
    pub run: String,
    /// Names of patterns, which take turns.
    pub patterns: Vec<String>,
    /// Files of each pattern that writes its files again.
    pub files: u32,
    /// Records in all.
    pub records: u32,
}

/// Where a record goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spot {
    /// Index of the pattern in the plan.
    pub pattern: usize,
    /// Number of the file.
    pub slot: u32,
    /// Version of the file that the record makes; 1 is the first. Files that are written again have their
    /// first version before any record is written.
    pub version: u32,
}

impl WritePlan {
    /// Where record `number` goes, if the pattern whose turn it is has this shape.
    #[must_use]
    pub fn spot(&self, number: u32, shape: impl Fn(usize) -> PatternRule) -> Option<Spot> {
        let patterns = u32::try_from(self.patterns.len()).ok().filter(|count| *count > 0)?;
        let (pattern, turn) = ((number % patterns) as usize, number / patterns);
        if shape(pattern) == PatternRule::Fresh {
            return Some(Spot { pattern, slot: turn, version: 1 });
        }
        let files = self.files.max(1);
        Some(Spot { pattern, slot: turn % files, version: (turn / files).saturating_add(2) })
    }

    /// What is wrong with it, for an error.
    ///
    /// # Errors
    /// A number is out of its bounds, or the run has no proper name.
    pub fn check(&self) -> Result<(), String> {
        if self.run.len() != 16 || !self.run.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(format!("the run is called {:?}, wanted are 16 hexadecimal digits", self.run));
        }
        let within = |what: &str, value: usize, max: u32| {
            if (1..=max as usize).contains(&value) {
                return Ok(());
            }
            Err(format!("{what}: {value}, allowed is 1 to {max}"))
        };
        within("patterns", self.patterns.len(), BATCH_MAX)?;
        within("files per pattern", self.files as usize, FILES_MAX)?;
        within("records", self.records as usize, RECORDS_MAX)
    }
}

/// What is asked of a node. No request depends on an earlier one but through the disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DurabilityRequest {
    /// Tell the ways of writing.
    Patterns,
    /// Make the folder, which must be empty or not there, and the first versions of files that are written
    /// again.
    Prepare {
        /// Folder.
        folder: PathBuf,
        /// What will be written.
        plan: WritePlan,
    },
    /// Write records, until the time is over.
    Write {
        /// Folder.
        folder: PathBuf,
        /// The same as at the beginning.
        plan: WritePlan,
        /// First record.
        from: u32,
        /// How many.
        count: u32,
        /// No record is begun after this time, milliseconds.
        budget_ms: u32,
    },
    /// Tell what the folder lies on, and what the host says of itself.
    Place {
        /// Folder.
        folder: PathBuf,
    },
    /// Read files of a pattern.
    Look {
        /// Folder.
        folder: PathBuf,
        /// The same as at the beginning.
        plan: WritePlan,
        /// Name of the pattern.
        pattern: String,
        /// First file.
        from: u32,
        /// How many.
        count: u32,
    },
    /// Remove everything that was written, if the folder is that of this run.
    Clean {
        /// Folder.
        folder: PathBuf,
        /// Run; any when it is not given.
        run: Option<String>,
    },
}

/// What a node answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DurabilityAnswer {
    /// All ways of writing, in the order of a table.
    Patterns(Vec<Pattern>),
    /// The folder is ready.
    Prepared {
        /// What it lies on.
        place: FolderLocation,
        /// The patterns of the plan, in its order.
        patterns: Vec<Pattern>,
    },
    /// Records were written.
    Written {
        /// How many of those that were asked for, from the first on.
        done: u32,
        /// Why the next one could not be written.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// The place of a folder.
    Place(FolderLocation),
    /// Files, in order.
    Seen(Vec<FoundFile>),
    /// Files were removed.
    Cleaned {
        /// How many.
        files: u64,
        /// What was not ours, and was left.
        left: Vec<String>,
    },
}

/// What a folder lies on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FolderLocation {
    /// `xfs`.
    pub filesystem: String,
    /// `/dev/sdb1`.
    pub source: String,
    /// Where it is mounted.
    pub mount: String,
    /// `rw,relatime`.
    pub options: String,
    /// Room that is left, bytes.
    pub free_bytes: u64,
    /// Identifier of this start of the system; empty where the kernel does not say.
    pub boot: String,
    /// Number of the device, `8:17`.
    pub device: String,
    /// The run whose files are in the folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

/// A file that was looked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FoundFile {
    /// Its number.
    pub slot: u32,
    /// What is there.
    pub state: FileState,
    /// A file under the temporary name of this one is there.
    #[serde(default)]
    pub temporary: bool,
}

/// What is found under a name. Versions are those of [`Spot`]; for a file that grows, the last record that is
/// whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FileState {
    /// Nothing.
    Missing,
    /// A file without a byte.
    Empty,
    /// Every byte of this version.
    Whole {
        /// Version.
        version: u32,
    },
    /// The beginning of this version, or whole records up to this version and the beginning of the next.
    Short {
        /// Version.
        version: u32,
        /// Length, bytes.
        bytes: u64,
    },
    /// Zeros in the place of everything, or behind whole records up to this version.
    Zeros {
        /// Version.
        version: u32,
        /// Length, bytes.
        bytes: u64,
    },
    /// Blocks of several versions.
    Torn {
        /// Oldest.
        oldest: u32,
        /// Newest.
        newest: u32,
    },
    /// Something else.
    Corrupt {
        /// Version up to which it is whole, of a file that grows; else 0.
        version: u32,
        /// In words.
        what: String,
    },
}

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// It is as it was acknowledged, or newer.
    Kept,
    /// No byte is left.
    Empty,
    /// The end is missing.
    Short,
    /// Zeros in the place of data.
    Zeros,
    /// Something else in the place of data, or blocks of several versions.
    Corrupt,
    /// An older version is there.
    Stale,
    /// Neither the name nor the data are there.
    Missing,
    /// The data had been synchronised, or are there under the temporary name, but the name is gone.
    NameLost,
    /// It was being written at the end, so that anything is right.
    UnderWay,
}

impl Fate {
    /// All that are a loss, in the order of a table.
    pub const LOSSES: [Self; 7] =
        [Self::Empty, Self::Short, Self::Zeros, Self::Corrupt, Self::Stale, Self::Missing, Self::NameLost];
}

/// A list of promises, as far as it is known outside of the disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Promises {
    /// [`crate::SCHEMA`].
    pub schema: u32,
    /// Who wrote.
    pub host: HostName,
    /// Where.
    pub folder: PathBuf,
    /// What.
    pub plan: WritePlan,
    /// The patterns of the plan, in its order.
    pub patterns: Vec<Pattern>,
    /// What the folder lay on.
    pub place: FolderLocation,
    /// Begin, Unix milliseconds.
    pub start_ms: u64,
    /// Records that were acknowledged: all before this one.
    #[serde(default)]
    pub acknowledged: u32,
    /// Records that may have been begun: all before this one.
    #[serde(default)]
    pub asked: u32,
    /// When the last acknowledgement came, milliseconds after the begin.
    #[serde(default)]
    pub last_ms: u64,
    /// Why it ended.
    #[serde(default)]
    pub ended: String,
}

/// A file that was lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LostFile {
    /// Path below the folder.
    pub file: String,
    /// What became of it.
    pub fate: Fate,
    /// The kernel had promised that this does not happen.
    pub promised: bool,
    /// In words.
    pub sentence: String,
}

/// What became of the files of a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PatternFate {
    /// The pattern.
    pub pattern: Pattern,
    /// Records that were acknowledged.
    pub records: u32,
    /// Files that they were in.
    pub files: u32,
    /// How many of the files each fate had.
    pub fates: std::collections::BTreeMap<Fate, u32>,
    /// Files that are not as the kernel had promised.
    pub broken: u32,
}

/// What a check says in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DurabilityVerdict {
    /// The host was not restarted: nothing is proven.
    NotRestarted,
    /// All that was promised is there.
    Kept,
    /// Something is gone that was promised.
    Broken,
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DurabilityReport {
    /// [`crate::SCHEMA`].
    pub schema: u32,
    /// What was written, by whom, where.
    pub promises: Promises,
    /// What the folder lies on now.
    pub place: FolderLocation,
    /// In a word.
    pub verdict: DurabilityVerdict,
    /// By pattern.
    pub patterns: Vec<PatternFate>,
    /// In sentences.
    pub sentences: Vec<String>,
    /// Some of the files that were lost, promised ones first.
    pub lost: Vec<LostFile>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> WritePlan {
        let patterns = ["create", "replace", "append"].map(str::to_owned).to_vec();
        WritePlan { run: "0123456789abcdef".into(), patterns, files: 2, records: 100 }
    }

    #[test]
    fn a_number_says_where_its_record_goes() {
        let shape = |pattern: usize| [PatternRule::Fresh, PatternRule::Replaced, PatternRule::Grown][pattern];
        let spot = |number| plan().spot(number, shape).unwrap();
        assert_eq!(spot(0), Spot { pattern: 0, slot: 0, version: 1 });
        assert_eq!(spot(3), Spot { pattern: 0, slot: 1, version: 1 });
        assert_eq!(spot(1), Spot { pattern: 1, slot: 0, version: 2 });
        assert_eq!(spot(4), Spot { pattern: 1, slot: 1, version: 2 });
        assert_eq!(spot(7), Spot { pattern: 1, slot: 0, version: 3 });
        assert_eq!(spot(u32::MAX).pattern, 0);
        assert_eq!(WritePlan { patterns: Vec::new(), ..plan() }.spot(1, shape), None);
    }

    #[test]
    fn a_plan_has_bounds() {
        assert_eq!(plan().check(), Ok(()));
        let wrong = [
            WritePlan { run: "../../etc/passwd".into(), ..plan() },
            WritePlan { run: String::new(), ..plan() },
            WritePlan { patterns: Vec::new(), ..plan() },
            WritePlan { files: 0, ..plan() },
            WritePlan { records: RECORDS_MAX + 1, ..plan() },
        ];
        for plan in wrong {
            assert!(plan.check().is_err(), "{plan:?}");
        }
    }
}
