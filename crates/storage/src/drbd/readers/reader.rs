//! What every reader of DRBD's states has in common: the trait, and words of the form `name:value`.

use linerate_model::drbd::Replica;

/// A format in which DRBD reports its state.
pub(super) trait StateReader: Sync {
    /// Whether a text is of this kind.
    fn is_mine(&self, text: &str) -> bool;
    /// The resources in it.
    fn read(&self, text: &str) -> Vec<Replica>;
}

/// `name:value` words of a line.
pub(super) fn words(line: &str) -> impl Iterator<Item = (&str, &str)> {
    line.split_ascii_whitespace().filter_map(|word| word.split_once(':'))
}

/// The value of one of them.
pub(super) fn word<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    words(line).find(|(n, _)| *n == name).map(|(_, value)| value)
}
