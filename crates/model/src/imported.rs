//! Where imported evidence comes from: which lines of which file were understood as what, and which were not.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::sample::Sample;

/// What was read of the files of others.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Imported {
    /// Pieces that were understood, in the order of the files.
    pub pieces: Vec<Piece>,
    /// What was not, in the order of the files; at most [`UNREAD_MAX`].
    #[serde(default)]
    pub unread: Vec<Unread>,
    /// Number of all lines that were not understood.
    #[serde(default)]
    pub unread_lines: u64,
    /// What had to be assumed, and what could not be used.
    #[serde(default)]
    pub notes: Vec<String>,
    /// What would say more, with the command that supplies it.
    #[serde(default)]
    pub missing: Vec<Missing>,
    /// Tests of pairs that were measured again after something had changed, in the order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Earlier>,
    /// No word names the network of a table: the underlay is assumed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub layer_unknown: bool,
    /// Words of the text, in small letters, sorted; at most [`WORDS_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
    /// Words that stand only in sentences which rule something out, such as "the cable is exchanged".
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ruled_out: Vec<String>,
}

/// Host of evidence that names none.
pub const NAMELESS: &str = "unnamed-host";

/// Most entries of [`Imported::words`].
pub const WORDS_MAX: usize = 2000;

/// A test of an earlier state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Earlier {
    /// The condition under which it ran.
    pub condition: String,
    /// The condition of the last test of the same pair.
    pub last: String,
    /// The whole set of pairs was measured again later, as in a second table.
    #[serde(default)]
    pub whole: bool,
    /// The test.
    pub sample: Sample,
}

/// Most entries of [`Imported::unread`].
pub const UNREAD_MAX: usize = 1000;

/// A run of lines that one reader understood.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Piece {
    /// File.
    pub file: String,
    /// First line, 1-based.
    pub line: usize,
    /// Number of lines.
    pub lines: usize,
    /// Format that it was read as.
    pub format: String,
    /// Host that it speaks of; empty when it names its hosts itself.
    #[serde(default)]
    pub host: String,
    /// Values that were taken from it.
    pub readings: usize,
}

/// Lines that nobody understood.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unread {
    /// File.
    pub file: String,
    /// First line, 1-based; 0 when it is the file as a whole.
    pub line: usize,
    /// How many lines like it follow each other.
    pub lines: usize,
    /// The first of them, cut.
    pub text: String,
    /// Why it could not be used.
    pub why: String,
}

/// Something that the verdict lacks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Missing {
    /// What.
    pub what: String,
    /// The command that supplies it, and where it is to be run.
    pub command: String,
}
