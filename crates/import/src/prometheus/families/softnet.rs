//! `node_softnet_*`: packets that the kernel takes from its devices, all CPUs of a host together.

use super::super::family::Family;
use super::super::metric::{Row, Use};

/// The family.
pub(super) struct Softnet;

const ROWS: &[Row] = &[
    ("node_softnet_processed_total", "softnet.processed", Use::Counter, 1.0),
    ("node_softnet_dropped_total", "softnet.dropped", Use::Counter, 1.0),
    ("node_softnet_times_squeezed_total", "softnet.time_squeeze", Use::Counter, 1.0),
    ("node_softnet_received_rps_total", "softnet.received_rps", Use::Counter, 1.0),
];

impl Family for Softnet {
    fn name(&self) -> &'static str {
        "softnet"
    }

    fn rows(&self) -> &'static [Row] {
        ROWS
    }

    fn query(&self, name: &str) -> String {
        format!("sum without (cpu) ({name})")
    }
}
