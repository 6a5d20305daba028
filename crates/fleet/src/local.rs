//! Transport `local`: the machine that `linerate` runs on. Runs the node program as it is.

use std::ffi::OsString;
use std::path::Path;

use linerate_model::inventory::{Host, TransportSpec};

use super::transport::Transport;

/// See the file's head.
pub(super) struct Local;

impl Transport for Local {
    fn argv(&self, host: &Host, program: &Path) -> Option<Vec<OsString>> {
        (host.transport == TransportSpec::Local).then(|| vec![program.into()])
    }
}
