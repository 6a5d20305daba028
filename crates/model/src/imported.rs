//! Where imported evidence comes from: which lines of which file were understood as what, and which were not.

use serde::{Deserialize, Serialize};

/// What was read of the files of others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
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
}

/// Most entries of [`Imported::unread`].
pub const UNREAD_MAX: usize = 1000;

/// A run of lines that one reader understood.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// What.
    pub what: String,
    /// The command that supplies it, and where it is to be run.
    pub command: String,
}
