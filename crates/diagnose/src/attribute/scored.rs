//! A cause with its score and what speaks for and against it.

use linerate_knowledge::{Cause, SuspectKind};
use linerate_model::finding::{Clue, FactHit};

/// A cause with its score.
#[derive(Debug, Clone)]
pub(crate) struct Scored<'k> {
    /// Which.
    pub cause: &'k Cause,
    /// Log odds.
    pub score: f64,
    /// What speaks for it.
    pub supports: Vec<Clue>,
    /// What speaks against it.
    pub contradicts: Vec<Clue>,
    /// Facts that indicate it.
    pub hits: Vec<FactHit>,
    /// A reading speaks for it: a fact that healthy peers do not have as well, a counter that moved, or a
    /// feature that measures its mechanism.
    pub is_read: bool,
    /// The suspect kind of the cause that fits the location best.
    pub native: SuspectKind,
}
