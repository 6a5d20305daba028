//! What a test showed.

mod measurement;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fact::FactKey;
use crate::load::LoadReport;
use crate::path_methods::MethodPair;
use crate::plan::Test;

pub use measurement::Measurement;

/// A test and its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// What was asked.
    pub test: Test,
    /// Start, Unix milliseconds; 0 when unknown (imported evidence).
    #[serde(default)]
    pub start_ms: u64,
    /// What came out.
    pub outcome: Outcome,
    /// Change of the sender's counters around the test (only counters that changed).
    #[serde(default)]
    pub tx_counters: BTreeMap<FactKey, i64>,
    /// Change of the receiver's counters around the test.
    #[serde(default)]
    pub rx_counters: BTreeMap<FactKey, i64>,
}

impl Sample {
    /// A test that began at this time, Unix milliseconds, and its result, without counters.
    pub fn new(test: Test, start_ms: u64, outcome: Outcome) -> Self {
        Self { test, start_ms, outcome, tx_counters: BTreeMap::new(), rx_counters: BTreeMap::new() }
    }

    /// By which methods its bytes were moved; `None` where the reports do not have them.
    pub fn methods(&self) -> Option<MethodPair> {
        let Outcome::Measured(measured) = &self.outcome else { return None };
        let name = |report: &Option<Box<LoadReport>>| Some(report.as_ref()?.way.as_ref()?.name.clone());
        Some(MethodPair { send: name(&measured.tx)?, receive: name(&measured.rx)? })
    }
}

/// Result of a test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It ran. Boxed because it is much larger than the others.
    Measured(Box<Measurement>),
    /// It ran, and nothing got through: a value, not an error.
    NothingThrough {
        /// At which step: connect, stall, deadline.
        reason: String,
    },
    /// It ran, but something outside made it worthless (late wires, bytes of both ends differ).
    Invalid {
        /// What.
        reason: String,
    },
    /// It could not run: dead host, missing right.
    Gap {
        /// Why.
        reason: String,
    },
}
