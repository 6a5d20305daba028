//! Requests and answers over TCP and UDP, idle and loaded, as histograms.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::test_plan::{Interference, OutOfLimits, TestPlan, buffer_overflowed, check, ms};
use crate::latency::LatencyPhase;
use crate::load::{LoadReport, Strangers};
use crate::sample::Measurement;

/// A latency test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyPlan {
    /// In order, at most 16.
    pub phases: Vec<LatencyPhase>,
    /// Time of each phase.
    pub phase_ms: u32,
    /// Payload of a request and of its answer; datagrams have at least 32 bytes.
    pub payload_bytes: u16,
    /// TCP streams that make the load.
    pub load_streams: u16,
    /// How long the load runs before the requests begin, so that its queue is full.
    pub settle_ms: u32,
    /// Phases that spin are refused where an end has no free CPU for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub spins_on_free_cpus: bool,
}

/// Longest phase: ten minutes.
const TIME_MAX_MS: u32 = 600_000;

impl LatencyPlan {
    /// All phases; a loaded one waits for its load, and `then_ms` for the end of it.
    fn phases(&self, then_ms: u64) -> Duration {
        let loaded_ms =
            |phase: &LatencyPhase| if phase.loaded { u64::from(self.settle_ms) + then_ms } else { 0 };
        ms(self.phases.iter().map(|phase| u64::from(self.phase_ms) + loaded_ms(phase)).sum::<u64>())
    }
}

impl TestPlan for LatencyPlan {
    fn name() -> &'static str {
        "latency"
    }

    fn title(&self) -> String {
        "latency".to_owned()
    }

    fn check(&self) -> Result<(), OutOfLimits> {
        let phases = self.phases.len();
        check((1..=16).contains(&phases), "the number of phases", phases as f64, "1 to 16")?;
        // A request and its answer fit into one packet, so that an RTT is one.
        check((1..=1200).contains(&self.payload_bytes), "payload_bytes", self.payload_bytes, "1 to 1200")?;
        let longest_ms = self.phase_ms.max(self.settle_ms);
        check(longest_ms <= TIME_MAX_MS, "phase_ms or settle_ms", longest_ms, "at most 600,000")?;
        let loads = !self.phases.iter().any(|p| p.loaded) || (1..=64).contains(&self.load_streams);
        check(loads, "load_streams", self.load_streams, "1 to 64")
    }

    fn time_max(&self) -> Duration {
        // With the sampling of the CPUs of both ends.
        ms(4_500_u64) + self.phases(4_000)
    }

    fn expected(&self) -> Duration {
        self.phases(0)
    }

    fn missing(&self, tx: &LoadReport, _: &LoadReport) -> Option<&'static str> {
        tx.latency.iter().all(|r| r.round_trip_ns.count() == 0).then_some("no request was answered")
    }

    fn interference(&self, tx: &LoadReport, _: &LoadReport, met: Strangers) -> Interference {
        Interference { by_connections: tx.stopped.is_some(), ..buffer_overflowed(met) }
    }

    fn read(&self, tx: &LoadReport, _: &LoadReport, values: &mut Measurement) -> Result<(), String> {
        let median_us = |loaded: bool| {
            let phase = tx.latency.iter().find(|r| r.phase.loaded == loaded)?;
            phase.round_trip_ns.quantile(0.5).map(|ns| ns as f64 / 1e3)
        };
        (values.rtt_idle_us, values.rtt_loaded_us) = (median_us(false), median_us(true));
        Ok(())
    }
}
