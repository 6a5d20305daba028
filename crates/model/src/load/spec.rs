//! The spec of one end of a test.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kind::TestKind;
use crate::tuning::Tuning;

/// Which end of a test a node is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Binds an ephemeral port on `bind` and reports it; accepts only streams that carry the token.
    Receiver,
    /// Connects to the receiver.
    Sender {
        /// Where the receiver listens.
        peer: SocketAddr,
    },
}

/// One end of one test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadSpec {
    /// What.
    pub kind: TestKind,
    /// Which end.
    pub role: Role,
    /// Own address of the endpoint.
    pub bind: IpAddr,
    /// Namespace inside the host in which the address lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netns: Option<PathBuf>,
    /// Secret of this test: 16 random bytes. Streams that do not show it are refused before anything is read
    /// from them.
    pub token: [u8; 16],
    /// The load ends itself after this time whatever happens.
    pub deadline_ms: u32,
    /// Both ends run under one kernel and share its CPUs, as far as the operator knows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub same_host: bool,
    /// How a bulk transfer is made.
    #[serde(default, skip_serializing_if = "Tuning::is_default")]
    pub tuning: Box<Tuning>,
}
