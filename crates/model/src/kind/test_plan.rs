//! What every kind of test knows about itself.

use std::any::Any;
use std::time::Duration;

use crate::load::{LoadReport, Strangers};
use crate::sample::Measurement;

/// One kind of test: what is asked for, and what the reports of its ends come to. A test has a sender, whose
/// report is `tx`, and a receiver, whose report is `rx`.
pub trait TestPlan: Any + Send + Sync {
    /// Short stable name: of its load, of its view, and in JSON.
    fn name() -> &'static str
    where
        Self: Sized;

    /// What it is called while it runs.
    fn title(&self) -> String;

    /// Whether it has a sender only, whose peer is not looked at.
    fn has_one_end(&self) -> bool {
        false
    }

    /// Whether one of its ends may be a plain iperf3 server.
    fn runs_with_iperf3(&self) -> bool {
        false
    }

    /// The first number that is outside its limits.
    fn check(&self) -> Result<(), OutOfLimits>;

    /// Longest time of the load itself.
    fn time_max(&self) -> Duration;

    /// About how long it takes when all is well.
    fn expected(&self) -> Duration {
        self.time_max()
    }

    /// What is missing, where nothing got through.
    fn missing(&self, tx: &LoadReport, rx: &LoadReport) -> Option<&'static str>;

    /// What unrelated traffic at the port of the test did to it.
    fn interference(&self, _tx: &LoadReport, _rx: &LoadReport, _met: Strangers) -> Interference {
        Interference::default()
    }

    /// Writes the values that the reports come to, or gives the reason for which they are invalid.
    fn read(&self, _tx: &LoadReport, _rx: &LoadReport, _values: &mut Measurement) -> Result<(), String> {
        Ok(())
    }
}

/// What unrelated traffic at the port of a test did to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Interference {
    /// Connections without the token that were the sender's own.
    pub own_connections: u64,
    /// Connections made it less than it should be, although something got through.
    pub by_connections: bool,
    /// Datagrams did.
    pub by_datagrams: bool,
}

/// A number of a plan that is outside its limits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OutOfLimits {
    /// Which number.
    pub what: &'static str,
    /// Its value.
    pub value: f64,
    /// What is allowed.
    pub limit: &'static str,
}

/// Refuses `value` unless it is `within` its limits.
pub(super) fn check(
    within: bool,
    what: &'static str,
    value: impl Into<f64>,
    limit: &'static str,
) -> Result<(), OutOfLimits> {
    if within { Ok(()) } else { Err(OutOfLimits { what, value: value.into(), limit }) }
}

/// Datagrams without the token found the buffer of the test's socket full, or filled it.
pub(super) fn buffer_overflowed(met: Strangers) -> Interference {
    Interference { by_datagrams: met.dropped > 0, ..Interference::default() }
}

/// Milliseconds.
pub(super) fn ms(count: impl Into<u64>) -> Duration {
    Duration::from_millis(count.into())
}
