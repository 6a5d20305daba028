//! A cause with its score and what speaks for and against it.

use linerate_knowledge::{Cause, SuspectKind};
use linerate_model::fact::FactValue;

/// A fact that indicates a cause.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FactHit {
    /// Host.
    pub host: String,
    /// Key.
    pub key: String,
    /// Value there.
    pub value: FactValue,
    /// What most peers have.
    pub peers: Option<FactValue>,
}

/// A cause with its score.
#[derive(Debug, Clone)]
pub(crate) struct Scored<'k> {
    /// Which.
    pub cause: &'k Cause,
    /// Log odds.
    pub score: f64,
    /// What speaks for it.
    pub evidence: Vec<String>,
    /// What speaks against it.
    pub against: Vec<String>,
    /// Facts that indicate it.
    pub hits: Vec<FactHit>,
    /// The suspect kind of the cause that fits the place best.
    pub native: SuspectKind,
}
