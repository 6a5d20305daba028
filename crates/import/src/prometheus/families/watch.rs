//! `linerate_host_*`: probes of `linerate watch`.

use super::super::family::Family;
use super::super::metric::{Row, Use};

/// The family.
pub(super) struct Watch;

const ROWS: &[Row] = &[
    ("linerate_host_send_probes_total", "watch.sent", Use::Counter, 1.0),
    ("linerate_host_send_probes_lost_total", "watch.sent_lost", Use::Counter, 1.0),
    ("linerate_host_receive_probes_total", "watch.received", Use::Counter, 1.0),
    ("linerate_host_receive_probes_lost_total", "watch.received_lost", Use::Counter, 1.0),
];

impl Family for Watch {
    fn name(&self) -> &'static str {
        "linerate"
    }

    fn rows(&self) -> &'static [Row] {
        ROWS
    }
}
