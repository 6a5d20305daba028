//! By which methods a survey moves the bytes of its transfers, and how they were chosen.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::inventory::Layer;
use crate::load::Turn;
use crate::tuning::Tuning;

/// A send method and a receive method, by their names on the command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MethodPair {
    /// Of the sender.
    pub send: String,
    /// Of the receiver.
    pub receive: String,
}

/// The methods that a survey compares on a fast path; the first is the plain one, which it uses everywhere
/// else. The others are those that won the calibrations of `docs/dev/performance.md`.
pub const SURVEY_METHODS: [(&str, &str); 4] = [
    ("write", "truncate"),
    ("write", "truncate-beside"),
    ("sendfile", "truncate-beside"),
    ("zerocopy", "truncate-beside"),
];

impl MethodPair {
    /// The methods of these names.
    #[must_use]
    pub fn named((send, receive): (&str, &str)) -> Self {
        Self { send: send.to_owned(), receive: receive.to_owned() }
    }

    /// What a survey uses where nothing better is known.
    #[must_use]
    pub fn plain() -> Self {
        Self::named(SURVEY_METHODS[0])
    }

    /// The options of a transfer by these methods. What the plain ones are, each node knows by itself.
    #[must_use]
    pub fn tuned(&self, tuning: Tuning) -> Tuning {
        if *self == Self::plain() {
            return tuning;
        }
        Tuning { send: Some(self.send.clone()), receive: Some(self.receive.clone()), ..tuning }
    }
}

impl std::fmt::Display for MethodPair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} > {}", self.send, self.receive)
    }
}

/// Paths that are measured by the same methods, because their rates are compared with one another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct PathClass {
    /// Layer.
    pub layer: Layer,
    /// Speed of the slowest link, bit/s; `None` where it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_bps: Option<u64>,
}

/// The methods of a class of paths.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathMethods {
    /// Which paths.
    pub class: PathClass,
    /// Methods of all their transfers.
    pub methods: MethodPair,
    /// When they were compared, Unix milliseconds: in this run or in an earlier one of the same cluster.
    pub compared_ms: u64,
    /// The transfers between which it was decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<Turn>,
}
