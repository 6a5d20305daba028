//! `node_cpu_seconds_total`: time of each CPU in software interrupts, and what the hypervisor took.

use super::super::family::Family;
use super::super::metric::{Row, Use};

/// The family.
pub(super) struct Cpu;

impl Family for Cpu {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn rows(&self) -> &'static [Row] {
        &[("node_cpu_seconds_total", "cpu.{cpu}.{mode}_us", Use::Counter, 1e6)]
    }

    fn query(&self, name: &str) -> String {
        format!("{name}{{mode=~\"softirq|steal\"}}")
    }
}
