//! Transport `netns`: a network namespace of the machine that `linerate` runs on. The node program enters it
//! by itself, because only then it can give itself a matching `/sys`.

use std::ffi::OsString;
use std::path::Path;

use linerate_model::inventory::{Host, TransportSpec};

use super::transport::Transport;

/// See the file's head.
pub(super) struct Netns;

impl Transport for Netns {
    fn argv(&self, host: &Host, program: &Path) -> Option<Vec<OsString>> {
        match &host.transport {
            TransportSpec::Netns { path } => Some(vec![program.into(), "--netns".into(), path.into()]),
            TransportSpec::Local
            | TransportSpec::Ssh(_)
            | TransportSpec::Slurm(_)
            | TransportSpec::Iperf3 { .. } => None,
        }
    }
}
