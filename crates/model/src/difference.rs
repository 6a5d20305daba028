//! What differs between two hosts of a run, or between two runs, as facts; their texts are written by the
//! reports.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fact::{FactKey, FactValue};
use crate::inventory::{HostName, Layer};
use crate::path_methods::MethodPair;

/// What the pairs that were slow before prove about a fix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FixProof {
    /// They became faster.
    Faster,
    /// They became slower.
    Slower,
    /// The interval holds no change, or the other pairs changed too.
    Open,
}

/// One difference; the first value is that of the first host or run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Difference {
    /// A setting or property.
    Fact {
        /// Host, between two runs.
        host: Option<HostName>,
        /// Key.
        key: FactKey,
        /// First value, where it is known.
        before: Option<FactValue>,
        /// Second value.
        after: Option<FactValue>,
    },
    /// Throughput of one ordered pair.
    Cell {
        /// Sender.
        from: HostName,
        /// Receiver.
        to: HostName,
        /// Layer.
        layer: Layer,
        /// Both rates, bit/s.
        bps: (f64, f64),
        /// Second over first.
        ratio: f64,
        /// A small change in which every test after lies beyond every test before.
        is_small: bool,
        /// Both methods, where the transfers were made differently: the change may be that of the methods.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        methods: Option<(MethodPair, MethodPair)>,
    },
    /// The effect on all pairs that were slow: what a fix achieved.
    Effect {
        /// How many pairs.
        pairs: usize,
        /// Their medians, bit/s.
        bps: (f64, f64),
        /// Median of second over first.
        ratio: f64,
        /// 95 % interval of the ratio.
        interval: (f64, f64),
        /// How many other pairs there are, and by what ratio they changed.
        others: Option<(usize, f64)>,
        /// What it proves.
        proof: FixProof,
    },
}
