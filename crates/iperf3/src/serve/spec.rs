//! What a server is to do: where to listen, whom to let in, what to allow.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use linerate_sys::socket_options::KeepAlive;

use crate::ask::AddressFamily;
use crate::auth::Rsa;
use crate::protocol::PORT;

/// Who is let in.
#[derive(Debug, Clone)]
pub struct AccessPolicy {
    /// The server's private key.
    pub rsa: Rsa,
    /// File of users; read for each test, so that it can be changed.
    pub users: PathBuf,
    /// Clocks may differ by so much, seconds.
    pub skew_s: u64,
}

/// A server to be run.
#[derive(Debug, Clone)]
pub struct ServerSpec {
    /// Own address; any when not given.
    pub bind: Option<IpAddr>,
    /// The only network device that is used.
    pub device: Option<String>,
    /// CPU of the threads, where the client names none.
    pub cpu: Option<u32>,
    /// How long sent data may stay unacknowledged, ms.
    pub send_timeout_ms: Option<u32>,
    /// Probes of the control connection when it is idle.
    pub keep_alive: Option<KeepAlive>,
    /// Port; 0 for any.
    pub port: u16,
    /// Which family.
    pub family: AddressFamily,
    /// One test only.
    pub one_off: bool,
    /// Goes on in the background once it listens.
    pub daemon: bool,
    /// Level of the trace of control connections, 0 to 4.
    pub debug: u8,
    /// Length of an interval.
    pub interval: Duration,
    /// How long no data may come in a test.
    pub silence: Duration,
    /// Who is let in; everybody when not given.
    pub listener: Option<AccessPolicy>,
    /// Longest test, seconds; 0 for iperf3's own limit.
    pub duration_s_max: u32,
    /// Largest total rate of a test, bit/s; 0 for none.
    pub rate_bps_max: u64,
}

impl Default for ServerSpec {
    fn default() -> Self {
        Self {
            bind: None,
            device: None,
            cpu: None,
            send_timeout_ms: None,
            keep_alive: None,
            port: PORT,
            family: AddressFamily::Any,
            one_off: false,
            daemon: false,
            debug: 0,
            interval: Duration::from_secs(1),
            silence: Duration::from_secs(120),
            listener: None,
            duration_s_max: 0,
            rate_bps_max: 0,
        }
    }
}
