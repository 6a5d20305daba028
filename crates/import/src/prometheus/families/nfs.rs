//! `node_nfs_*`: requests of a client, all mounts together.

use super::super::family::Family;
use super::super::metric::{Row, Use};

/// The family.
pub(super) struct Nfs;

const ROWS: &[Row] = &[
    ("node_nfs_rpcs_total", "nfs.rpc.calls", Use::Counter, 1.0),
    ("node_nfs_rpc_retransmissions_total", "nfs.rpc.repeated", Use::Counter, 1.0),
];

impl Family for Nfs {
    fn name(&self) -> &'static str {
        "nfs"
    }

    fn rows(&self) -> &'static [Row] {
        ROWS
    }
}
