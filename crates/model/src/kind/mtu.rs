//! Which datagram sizes arrive unfragmented.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::test_plan::{Interference, OutOfLimits, TestPlan, buffer_overflowed, check, ms};
use crate::load::{LoadReport, Strangers};
use crate::sample::Measurement;

/// Datagrams of some sizes, each sent with "do not fragment" and answered by a small one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MtuPlan {
    /// IP packet sizes to probe, small and full size; at most 32.
    pub sizes: Vec<u32>,
    /// Probes per size, at most 16.
    pub tries: u8,
}

impl TestPlan for MtuPlan {
    fn name() -> &'static str {
        "mtu"
    }

    fn title(&self) -> String {
        "path MTU".to_owned()
    }

    fn check(&self) -> Result<(), OutOfLimits> {
        let (sizes, tries) = (self.sizes.len(), usize::from(self.tries));
        let most = sizes.max(tries) as f64;
        check(sizes <= 32 && tries <= 16, "sizes or tries", most, "32 sizes, 16 tries")
    }

    fn time_max(&self) -> Duration {
        ms(500 + self.sizes.len() as u64 * u64::from(self.tries) * 250)
    }

    fn expected(&self) -> Duration {
        // When all are answered.
        ms(55_u64)
    }

    fn missing(&self, tx: &LoadReport, _: &LoadReport) -> Option<&'static str> {
        tx.mtu.iter().all(|p| p.answered == 0).then_some("no probe was answered")
    }

    fn interference(&self, _: &LoadReport, _: &LoadReport, met: Strangers) -> Interference {
        buffer_overflowed(met)
    }

    fn read(&self, tx: &LoadReport, _: &LoadReport, values: &mut Measurement) -> Result<(), String> {
        values.mtu.clone_from(&tx.mtu);
        Ok(())
    }
}
