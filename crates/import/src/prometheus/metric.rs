//! What a metric is: its key here, and what becomes of its series.

use std::borrow::Cow;

/// What becomes of the series of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// Growth over the range, and the count since boot.
    Counter,
    /// The last value is a fact.
    Fact,
    /// The family takes it itself.
    Own,
}

/// A metric: name, key with `{label}` for the value of a label, use, factor from its unit to that of the key.
pub(super) type Row = (&'static str, &'static str, Use, f64);

/// A metric that a family takes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Metric {
    pub(super) key: Cow<'static, str>,
    pub(super) what: Use,
    pub(super) factor: f64,
}
