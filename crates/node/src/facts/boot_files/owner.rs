//! What an owner of settings is, and what it sees of a host.

use linerate_model::fact::{FactKey, FactValue, pattern_fits};

use super::super::view::View;
use super::tree::Tree;

/// What sets values at boot from files of its own.
pub(super) trait Owner {
    /// Its name, for people.
    fn name(&self) -> &'static str;

    /// Keys that it sets, as the pattern of a gap.
    fn sets(&self) -> &'static str;

    /// Its lines in the order in which they count. An error names the file that cannot be read.
    fn lines(&self, host: &HostFiles<'_>) -> Result<Vec<Line>, String>;
}

/// What an owner sees.
pub(super) struct HostFiles<'a> {
    pub(super) tree: Tree<'a>,
    /// Settings that are asked for, with the values in force.
    pub(super) settings: Vec<(FactKey, FactValue)>,
    pub(super) view: View<'a>,
}

impl HostFiles<'_> {
    /// Whether a line that sets this key, or keys of this pattern, is about a setting that is asked for.
    pub(super) fn wants(&self, key: &str) -> bool {
        self.settings.iter().any(|(asked, _)| asked == key || key.contains('*') && pattern_fits(key, asked))
    }
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) key: String,
    /// As a fact shows it.
    pub(super) value: String,
    /// File and line.
    pub(super) at: String,
}
