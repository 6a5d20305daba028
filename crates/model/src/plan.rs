//! What a survey will measure, round by round.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::inventory::{HostName, Layer};
use crate::kind::TestKind;

/// Number of a test in its run.
pub type TestId = u32;

/// One directed measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Test {
    /// Unique in the run.
    pub id: TestId,
    /// Sender.
    pub from: HostName,
    /// Receiver.
    pub to: HostName,
    /// Between which endpoints.
    pub layer: Layer,
    /// What.
    pub kind: TestKind,
    /// 0 for the first measurement of this pair and kind, 1 for its first repetition, …
    #[serde(default)]
    pub repeat: u16,
    /// Nothing else ran at the same time.
    #[serde(default)]
    pub serial: bool,
    /// A test of the adaptive second stage.
    #[serde(default)]
    pub second_stage: bool,
}

impl Test {
    /// A first measurement with nothing else at the same time, not yet numbered.
    pub fn new(from: HostName, to: HostName, layer: Layer, kind: TestKind) -> Self {
        Self { id: 0, from, to, layer, kind, repeat: 0, serial: true, second_stage: false }
    }
}

/// Tests that run at the same time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Round {
    /// Each host is in at most one of them.
    pub tests: Vec<Test>,
}

/// A plan.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// In order.
    pub rounds: Vec<Round>,
    /// How long it should take, in seconds.
    pub expected_s: f64,
    /// What the time budget left out, in words.
    #[serde(default)]
    pub left_out: Vec<String>,
}
