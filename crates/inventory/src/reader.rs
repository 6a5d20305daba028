//! What an inventory format is: a text with its name in, what was understood or one error with file, line and
//! hint out. A reader starts no program and asks no resolver; the only further files it may see are those
//! that the text includes.

use super::draft::Understood;
use super::error::{Flaw, InventoryError};

/// Longest text of an inventory, bytes: the node list of a large Kubernetes cluster with all its images is
/// some 20 MB.
pub const TEXT_BYTES_MAX: usize = 64 << 20;

/// Gives the files that an `Include` of this pattern means, each with its name and text, or why there is
/// none.
pub type Include<'a> = dyn Fn(&str) -> Result<Vec<(String, String)>, String> + 'a;

/// A text to read.
pub struct SourceText<'a> {
    /// Name of the file, for error texts.
    pub file: &'a str,
    /// What stands in it.
    pub text: &'a str,
    /// Where included files come from.
    pub include: &'a Include<'a>,
    /// The file is the one that `ssh` itself reads, so that its names mean the same there.
    pub known_to_ssh: bool,
}

impl<'a> SourceText<'a> {
    /// A text by itself: what it includes is not there.
    pub fn alone(file: &'a str, text: &'a str) -> Self {
        Self { file, text, include: &|_| Err("is not read here".to_owned()), known_to_ssh: false }
    }

    /// An error at a line of this text.
    pub(super) fn at(&self, line: usize, flaw: Flaw) -> InventoryError {
        InventoryError::new(self.file, line, flaw)
    }

    /// The lines, numbered from 1.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, &'a str)> + use<'a> {
        self.text.lines().enumerate().map(|(i, line)| (i + 1, line))
    }
}

/// One format. To add one: a file beside this one, a line in `READERS` (see `readers`).
pub trait Reader: Sync {
    /// Name for `--format`.
    fn name(&self) -> &'static str;
    /// What it is, in a few words.
    fn describes(&self) -> &'static str;
    /// Whether a text is probably in this format. Cheap, and asked in the order of the list: the first match
    /// reads.
    fn detects(&self, text: &str) -> bool;
    /// Reads a text.
    fn read(&self, source: &SourceText<'_>) -> Result<Understood, InventoryError>;
}
