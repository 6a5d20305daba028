//! Options of the sockets of a test, the same for both ends.

use std::io;
use std::net::{TcpStream, UdpSocket};
use std::os::fd::BorrowedFd;

use linerate_sys::{socket, socket_options};

use super::super::parameters::{Parameters, Protocol};

/// Receive buffer of UDP that is asked for when no window is given: what the socket drops is lost by the measurement.
const RECEIVE_BUFFER_BYTES: u32 = 8 << 20;

/// Options that a socket needs before its first packet.
pub(in super::super) fn prepare(
    parameters: &Parameters,
    socket: BorrowedFd<'_>,
    ipv6: bool,
) -> io::Result<()> {
    if let Some(window) = parameters.window {
        socket_options::set_buffers(&socket, window)?;
    }
    if let (Some(mss), Protocol::Tcp) = (parameters.mss, parameters.protocol) {
        socket_options::set_segment(&socket, mss)?;
    }
    if parameters.tos != 0 {
        socket_options::set_type_of_service(&socket, parameters.tos, ipv6)?;
    }
    Ok(())
}

/// Options of a stream of TCP that is connected.
pub(in super::super) fn finish_tcp(parameters: &Parameters, stream: &TcpStream) -> io::Result<()> {
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
pub(in super::super) fn finish_udp(parameters: &Parameters, udp: &UdpSocket) {
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
