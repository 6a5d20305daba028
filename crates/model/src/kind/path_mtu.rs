//! The largest packet that arrives, searched in both directions.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::test_plan::{Interference, OutOfLimits, TestPlan, buffer_overflowed, check, ms};
use crate::load::{LoadReport, Strangers};

/// A search for the largest packet, both directions in one test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PathMtuPlan {
    /// Smallest IP packet to try: what every path must take.
    pub least_bytes: u32,
    /// Largest IP packet to try, at most 65,535.
    pub most_bytes: u32,
    /// Probes of one size before it counts as not arriving.
    pub tries: u8,
}

impl TestPlan for PathMtuPlan {
    fn name() -> &'static str {
        "path-mtu"
    }

    fn title(&self) -> String {
        "path MTU".to_owned()
    }

    fn check(&self) -> Result<(), OutOfLimits> {
        let (least, most) = (self.least_bytes, self.most_bytes);
        check((128..=65_535).contains(&least), "least_bytes", least, "128 to 65,535")?;
        check((least..=65_535).contains(&most), "most_bytes", most, "least_bytes to 65,535")?;
        check((1..=8).contains(&self.tries), "tries", self.tries, "1 to 8")
    }

    fn time_max(&self) -> Duration {
        // Both directions, at most 20 sizes each, with the longest wait.
        ms(22_000_u64)
    }

    fn expected(&self) -> Duration {
        // Sizes that arrive take no time.
        ms(1000_u64)
    }

    fn missing(&self, tx: &LoadReport, _: &LoadReport) -> Option<&'static str> {
        tx.path_mtu.is_none().then_some("no probe was answered")
    }

    fn interference(&self, _: &LoadReport, _: &LoadReport, met: Strangers) -> Interference {
        buffer_overflowed(met)
    }
}
