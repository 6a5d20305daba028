//! Options of the sockets of a test, the same for both ends.

use std::io;
use std::net::{TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use linerate_sys::{socket, socket_options};

use crate::parameters::{Iperf3Protocol, Parameters};

/// Receive buffer of UDP that is asked for when no window is given: what the socket drops is lost by the
/// measurement.
const RECEIVE_BUFFER_BYTES: u32 = 8 << 20;

/// Options that have to be there before the first packet of a connection, so that a server sets them on its
/// listener.
pub(crate) struct Before {
    window: Option<u32>,
    segment: Option<u32>,
}

impl Before {
    pub(crate) fn of(parameters: &Parameters) -> Self {
        let segment = parameters.mss.filter(|_| parameters.protocol == Iperf3Protocol::Tcp);
        Self { window: parameters.window, segment }
    }

    pub(crate) fn is_any(&self) -> bool {
        self.window.is_some() || self.segment.is_some()
    }

    pub(crate) fn set(&self, socket: BorrowedFd<'_>) -> io::Result<()> {
        if let Some(window) = self.window {
            socket_options::set_buffers(&socket, window)?;
        }
        if let Some(segment) = self.segment {
            socket_options::set_segment(&socket, segment)?;
        }
        Ok(())
    }
}

/// Everything that the socket of a stream needs before its first packet. `device` is the only network device
/// that it uses.
pub(crate) fn prepare(
    parameters: &Parameters,
    device: Option<&str>,
    socket: BorrowedFd<'_>,
    ipv6: bool,
) -> io::Result<()> {
    bind_device(device, socket)?;
    Before::of(parameters).set(socket)?;
    mark(parameters, socket, ipv6)
}

/// Binds a socket to a network device where one is given.
pub(crate) fn bind_device(device: Option<&str>, socket: BorrowedFd<'_>) -> io::Result<()> {
    device.map_or(Ok(()), |name| {
        let words = |error: io::Error| io::Error::new(error.kind(), format!("device {name}: {error}"));
        socket_options::bind_to_device(&socket, name).map_err(words)
    })
}

/// The type of service of what is sent.
fn mark(parameters: &Parameters, socket: BorrowedFd<'_>, ipv6: bool) -> io::Result<()> {
    if parameters.tos == 0 {
        return Ok(());
    }
    socket_options::set_type_of_service(&socket, parameters.tos, ipv6)
}

/// Options of a stream of TCP that a server accepted.
pub(crate) fn finish_accepted(parameters: &Parameters, stream: &TcpStream) -> io::Result<()> {
    mark(parameters, stream.as_fd(), stream.local_addr()?.is_ipv6())?;
    finish_tcp(parameters, stream)
}

/// Options of a stream of TCP that is connected.
pub(crate) fn finish_tcp(parameters: &Parameters, stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(parameters.nodelay)?;
    if let Some(name) = &parameters.congestion {
        socket_options::set_congestion(stream, name)
            .map_err(|error| io::Error::new(error.kind(), format!("congestion control {name}: {error}")))?;
    }
    if parameters.fq_rate_bps > 0 {
        socket_options::set_pacing_rate(stream, parameters.fq_rate_bps / 8)?;
    }
    Ok(())
}

/// What a stream of UDP gets when it can be had.
pub(crate) fn finish_udp(parameters: &Parameters, udp: &UdpSocket) {
    if parameters.window.is_none() {
        // A smaller buffer makes more drops, which are counted as loss by iperf3 anyway.
        let _ = socket::set_receive_buffer(udp, RECEIVE_BUFFER_BYTES);
    }
    if parameters.fq_rate_bps > 0 {
        let _ = socket_options::set_pacing_rate(udp, parameters.fq_rate_bps / 8);
    }
    if parameters.dont_fragment {
        let ipv6 = udp.local_addr().is_ok_and(|local| local.is_ipv6());
        let _ = socket::set_mtu_probing(udp, ipv6);
    }
}
