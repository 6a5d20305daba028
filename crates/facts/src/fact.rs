//! What a topic of facts offers.
//!
//! In: a [`View`] of one network namespace. Out: [`Readings`]. The list of all topics is in the module above.

use linerate_model::fact::FactDecl;

use super::readings::Readings;
use super::view::View;

/// One topic of facts.
pub(super) trait Fact: Sync {
    /// What it can read. The first part of a pattern, up to its `*`, also tells whether the topic is wanted.
    fn declarations(&self) -> Vec<FactDecl>;

    /// Reads all of it. What cannot be read becomes a gap.
    fn read(&self, view: &View<'_>, out: &mut Readings);

    /// Whether a network namespace inside the host has its own.
    fn of_namespace(&self) -> bool {
        true
    }
}
