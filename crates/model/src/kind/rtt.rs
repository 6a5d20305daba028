//! Request and response of 64 bytes over UDP on an otherwise idle pair.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::test_plan::{Interference, OutOfLimits, TestPlan, buffer_overflowed, check, ms};
use crate::load::{LoadReport, Strangers};
use crate::sample::Measurement;
use crate::statistics::median;

/// The RTT of an idle path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RttPlan {
    /// Number of requests.
    pub count: u16,
}

impl TestPlan for RttPlan {
    fn name() -> &'static str {
        "rtt"
    }

    fn title(&self) -> String {
        "RTT".to_owned()
    }

    fn check(&self) -> Result<(), OutOfLimits> {
        check(self.count > 0, "count", self.count, "1 or more")
    }

    fn time_max(&self) -> Duration {
        ms(500 + u64::from(self.count) * 20)
    }

    fn expected(&self) -> Duration {
        ms(20 + u64::from(self.count) * 7)
    }

    fn missing(&self, tx: &LoadReport, _: &LoadReport) -> Option<&'static str> {
        tx.rtt_us.is_empty().then_some("no request was answered")
    }

    fn interference(&self, _: &LoadReport, _: &LoadReport, met: Strangers) -> Interference {
        buffer_overflowed(met)
    }

    fn read(&self, tx: &LoadReport, _: &LoadReport, values: &mut Measurement) -> Result<(), String> {
        values.rtt_idle_us = median(&tx.rtt_us);
        Ok(())
    }
}
