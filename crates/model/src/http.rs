//! A download over HTTP through chosen front ends, and how long each of its steps took.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Front ends of one test at most.
pub const FRONT_ENDS_MAX: usize = 64;
/// Downloads through one front end at most.
pub const REPEATS_MAX: u16 = 100;
/// Redirects that one download follows at most.
pub const REDIRECTS_MAX: usize = 5;

/// One download. A step that was not reached or not needed is `None`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HttpFetch {
    /// The front end as it was named; the address itself when none was.
    pub via: String,
    /// Number of the round.
    pub repeat: u16,
    /// Whom we connected to at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<SocketAddr>,
    /// Resolving the name, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dns_ms: Option<f64>,
    /// Setting up the TCP connection, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_ms: Option<f64>,
    /// TLS handshake, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_ms: Option<f64>,
    /// From the request to the first byte of the answer, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_byte_ms: Option<f64>,
    /// From the first byte to the last, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_ms: Option<f64>,
    /// Everything together, redirects included, milliseconds.
    #[serde(default)]
    pub total_ms: f64,
    /// Bytes of the body as they came over the connection, without chunk headers.
    #[serde(default)]
    pub bytes: u64,
    /// Status of the last answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// URLs that the redirects led to.
    #[serde(default)]
    pub redirects: Vec<String>,
    /// Version of TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<String>,
    /// The body is longer than was read.
    #[serde(default)]
    pub cut: bool,
    /// Why it did not end well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl HttpFetch {
    /// Rate of the body between its first and its last byte, bit/s; `None` where that took no time that can
    /// be measured.
    pub fn rate_bps(&self) -> Option<f64> {
        let seconds = self.body_ms? / 1e3;
        (seconds > 1e-4 && self.bytes > 0).then(|| self.bytes as f64 * 8.0 / seconds)
    }
}

/// A step of a download.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HttpStep {
    /// Resolving the name.
    Dns,
    /// TCP connection.
    Connect,
    /// TLS handshake.
    Tls,
    /// From the request to the first byte.
    FirstByte,
    /// Rate of the body.
    Rate,
}

impl HttpStep {
    /// All, in the order of a download.
    pub const ALL: [Self; 5] = [Self::Dns, Self::Connect, Self::Tls, Self::FirstByte, Self::Rate];

    /// Milliseconds, or bit/s for the rate.
    pub fn of(self, fetch: &HttpFetch) -> Option<f64> {
        match self {
            Self::Dns => fetch.dns_ms,
            Self::Connect => fetch.connect_ms,
            Self::Tls => fetch.tls_ms,
            Self::FirstByte => fetch.first_byte_ms,
            Self::Rate => fetch.rate_bps().filter(|_| fetch.error.is_none()),
        }
    }
}
