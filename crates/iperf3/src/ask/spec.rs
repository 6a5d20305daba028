//! What a client is to do: whom to ask, for which test, as whom.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use linerate_sys::socket_options::KeepAlive;

use crate::auth::Rsa;
use crate::parameters::{Parameters, VERSION};
use crate::protocol::PORT;

/// Which addresses of a name are used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AddressFamily {
    /// Any.
    #[default]
    Any,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}

impl AddressFamily {
    pub(super) fn takes(self, address: &SocketAddr) -> bool {
        match self {
            Self::Any => true,
            Self::V4 => address.is_ipv4(),
            Self::V6 => address.is_ipv6(),
        }
    }
}

/// A user's name and password, and the server's public key.
#[derive(Debug, Clone)]
pub struct Credentials {
    /// Name.
    pub user: String,
    /// Password.
    pub password: String,
    /// Key and padding.
    pub rsa: Rsa,
}

/// A test to be made.
#[derive(Debug, Clone)]
pub struct ClientSpec {
    /// Name or address of the server.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Which addresses of the name.
    pub family: AddressFamily,
    /// Own address.
    pub bind: Option<IpAddr>,
    /// The only network device that is used.
    pub device: Option<String>,
    /// CPU of the threads.
    pub cpu: Option<u32>,
    /// Level of the trace of the control connection, 0 to 4.
    pub debug: u8,
    /// How long sent data may stay unacknowledged, ms.
    pub send_timeout_ms: Option<u32>,
    /// Probes of the control connection when it is idle.
    pub keep_alive: Option<KeepAlive>,
    /// Own port of the first stream; the others follow. 0 for any.
    pub client_port: u16,
    /// What the test is.
    pub parameters: Parameters,
    /// A finer time than the whole seconds of the parameters, when time ends the test.
    pub time: Option<Duration>,
    /// Length of an interval; zero for none.
    pub interval: Duration,
    /// How long a connection may take.
    pub connect_wait: Duration,
    /// How long nothing may happen.
    pub silence: Duration,
    /// How long a server that is busy, or whose listener is just being opened again, is asked again.
    pub patience: Duration,
    /// Who we are, where the server asks.
    pub credentials: Option<Credentials>,
}

impl ClientSpec {
    /// A test of this host with iperf3's defaults.
    pub fn new(host: &str) -> Self {
        Self {
            host: host.to_owned(),
            port: PORT,
            family: AddressFamily::Any,
            bind: None,
            device: None,
            cpu: None,
            debug: 0,
            send_timeout_ms: None,
            keep_alive: None,
            client_port: 0,
            parameters: Parameters {
                time_s: 10,
                parallel: 1,
                client_version: VERSION.to_owned(),
                ..Parameters::default()
            },
            time: None,
            interval: Duration::from_secs(1),
            connect_wait: Duration::from_secs(10),
            silence: Duration::from_secs(120),
            patience: Duration::ZERO,
            credentials: None,
        }
    }
}
