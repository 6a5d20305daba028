//! `node_pressure_*`: how long tasks waited for CPUs, storage and memory (PSI).

use super::super::family::Family;
use super::super::metric::{Row, Use};

/// The family.
pub(super) struct Pressure;

const ROWS: &[Row] = &[
    ("node_pressure_cpu_waiting_seconds_total", "pressure.cpu.some_us", Use::Counter, 1e6),
    ("node_pressure_io_waiting_seconds_total", "pressure.io.some_us", Use::Counter, 1e6),
    ("node_pressure_io_stalled_seconds_total", "pressure.io.full_us", Use::Counter, 1e6),
    ("node_pressure_memory_waiting_seconds_total", "pressure.memory.some_us", Use::Counter, 1e6),
    ("node_pressure_memory_stalled_seconds_total", "pressure.memory.full_us", Use::Counter, 1e6),
];

impl Family for Pressure {
    fn name(&self) -> &'static str {
        "pressure"
    }

    fn rows(&self) -> &'static [Row] {
        ROWS
    }
}
