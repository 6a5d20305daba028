//! A cause with its score and what speaks for and against it.

use linerate_knowledge::{Cause, SuspectKind};
use linerate_model::finding::{Clue, Direction, FactHit};

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

impl Scored<'_> {
    /// The direction of the hooks of all facts that indicate it, where it can be in that.
    pub(crate) fn direction_of_hooks(&self) -> Option<Direction> {
        let direction = of_hook(&self.hits.first()?.key)?;
        let kind = if direction == Direction::Tx { SuspectKind::HostTx } else { SuspectKind::HostRx };
        let is_one = self.hits.iter().all(|hit| of_hook(&hit.key) == Some(direction));
        (is_one && self.cause.symptom.suspects.contains(&kind)).then_some(direction)
    }
}

/// The direction of the packets that a hook of the firewall or of tc acts on, by a key of it.
pub(crate) fn of_hook(key: &str) -> Option<Direction> {
    key.split('.').find_map(|part| match part {
        "output" | "postrouting" | "egress" => Some(Direction::Tx),
        "input" | "prerouting" | "ingress" => Some(Direction::Rx),
        _ => None,
    })
}
