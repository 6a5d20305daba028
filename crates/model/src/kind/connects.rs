//! Connections set up per second.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::test_plan::{Interference, OutOfLimits, TestPlan, check, ms};
use crate::load::{LoadReport, Strangers};

/// Connections one after the other in each of several threads: connect, show the token, one byte back, reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectsPlan {
    /// Threads at the sender, each with one connection at a time; 1 to 32.
    pub parallel: u16,
    /// Longest time.
    pub duration_ms: u32,
    /// Most connections in all, at most 20,000: ephemeral ports are a host's own, and the reset at the end
    /// frees them at once, but a broken path must not eat them all.
    pub count_max: u32,
}

impl TestPlan for ConnectsPlan {
    fn name() -> &'static str {
        "connects"
    }

    fn title(&self) -> String {
        "connects".to_owned()
    }

    fn check(&self) -> Result<(), OutOfLimits> {
        check((1..=32).contains(&self.parallel), "parallel", self.parallel, "1 to 32")?;
        check((1..=20_000).contains(&self.count_max), "count_max", self.count_max, "1 to 20,000")
    }

    fn time_max(&self) -> Duration {
        ms(u64::from(self.duration_ms) + 4_000)
    }

    fn missing(&self, tx: &LoadReport, _: &LoadReport) -> Option<&'static str> {
        tx.connects.as_ref().is_none_or(|c| c.done == 0).then_some("no connection was made")
    }

    fn interference(&self, tx: &LoadReport, _: &LoadReport, _: Strangers) -> Interference {
        let Some(end) = &tx.connects else { return Interference::default() };
        // Those that failed came without the token as well, and the one that ends the test.
        let own_connections = end.failed + 1;
        Interference { own_connections, by_connections: end.failed > 0, by_datagrams: false }
    }
}
