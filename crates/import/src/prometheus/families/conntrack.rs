//! `node_nf_conntrack_*`: the table of connections.

use super::super::family::Family;
use super::super::metric::{Row, Use};

/// The family.
pub(super) struct Conntrack;

const ROWS: &[Row] = &[
    ("node_nf_conntrack_entries_limit", "sysctl.net.netfilter.nf_conntrack_max", Use::Fact, 1.0),
    ("node_nf_conntrack_stat_drop", "conntrack.drop", Use::Counter, 1.0),
    ("node_nf_conntrack_stat_early_drop", "conntrack.early_drop", Use::Counter, 1.0),
    ("node_nf_conntrack_stat_insert_failed", "conntrack.insert_failed", Use::Counter, 1.0),
];

impl Family for Conntrack {
    fn name(&self) -> &'static str {
        "conntrack"
    }

    fn rows(&self) -> &'static [Row] {
        ROWS
    }
}
