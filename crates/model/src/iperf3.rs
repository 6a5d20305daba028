//! A whole test against a plain iperf3 server, made by the one end that has a node program.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kind::TestKind;

/// How such tests are called beside the loads of a node; they have a request of their own.
pub const NAME: &str = "iperf3";

/// One test. Its report has the server's in `far`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Iperf3Spec {
    /// What: TCP or UDP; the protocol has nothing else.
    pub kind: TestKind,
    /// The server.
    pub peer: SocketAddr,
    /// The node sends, the server receives; or the other way.
    pub sends: bool,
    /// Own address of the endpoint.
    pub bind: IpAddr,
    /// Namespace inside the host in which the address lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netns: Option<PathBuf>,
    /// The test ends itself after this time whatever happens.
    pub deadline_ms: u32,
}
