//! The listener of a server: what one test sets on it ends with that test.
//!
//! What comes in: what a server was asked to do, the parameters of a test. What goes out: a listener. Buffers
//! and segment size have to be set before a connection comes, and a buffer once set cannot be given back to
//! the kernel: the listener is replaced then, while the port stays taken. Everything else is set on the
//! streams themselves.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::AsFd;

use linerate_sys::socket_options::{self, TcpPaths};

use super::{ServeError, ServerSpec};
use crate::ask::{self, AddressFamily};
use crate::parameters::{Iperf3Protocol, Parameters};

/// See the file's head.
pub(super) struct Listener {
    socket: TcpListener,
    /// It has options of a test.
    tuned: bool,
    /// The only network device that it takes connections from.
    device: Option<String>,
}

impl Listener {
    pub(super) fn open(spec: &ServerSpec) -> Result<Self, ServeError> {
        let v4 = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let v6 = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
        let choices = match (spec.bind, spec.family) {
            (Some(address), _) => vec![address],
            (None, AddressFamily::V4) => vec![v4],
            (None, AddressFamily::V6) => vec![v6],
            // The address of IPv6 takes both, where the machine has IPv6 at all.
            (None, AddressFamily::Any) => vec![v6, v4],
        };
        let mut last = None;
        for address in choices {
            let at = SocketAddr::new(address, spec.port);
            match TcpListener::bind(at).and_then(|l| l.set_nonblocking(true).map(|()| l)) {
                Ok(socket) => {
                    ask::bind_device(spec.device.as_deref(), socket.as_fd())
                        .map_err(|source| ServeError::Listen { at, source })?;
                    return Ok(Self { socket, tuned: false, device: spec.device.clone() });
                }
                Err(source) => last = Some(ServeError::Listen { at, source }),
            }
        }
        Err(last.expect("there is at least one address"))
    }

    pub(super) fn socket(&self) -> &TcpListener {
        &self.socket
    }

    pub(super) fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Options that the streams of a test inherit.
    pub(super) fn prepare(&mut self, parameters: &Parameters) -> io::Result<()> {
        if parameters.mptcp && parameters.protocol == Iperf3Protocol::Tcp {
            self.replace(TcpPaths::Several)?;
            self.tuned = true;
        }
        let asked = ask::Before::of(parameters);
        self.tuned |= asked.is_any();
        asked.set(self.socket.as_fd())
    }

    /// Whether it has options of a test.
    pub(super) fn is_tuned(&self) -> bool {
        self.tuned
    }

    /// Ends the options of a test. After an error they are still there.
    pub(super) fn renew(&mut self) -> io::Result<()> {
        if self.tuned {
            self.replace(TcpPaths::One)?;
            self.tuned = false;
        }
        Ok(())
    }

    fn replace(&mut self, paths: TcpPaths) -> io::Result<()> {
        let new = socket_options::listen_in_place_of(&self.socket, paths)?;
        ask::bind_device(self.device.as_deref(), new.as_fd())?;
        self.socket = new;
        Ok(())
    }
}
