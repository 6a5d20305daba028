//! What both ends of a test of latency know: the words on the control connection, the stamps of datagrams,
//! how to wait.
//!
//! On the control connection the sender orders phases and makes requests; the receiver answers each order
//! with two ports, and each request with its own bytes.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};

use linerate_model::kind::LatencyPlan;
use linerate_model::latency::{Carrier, LatencyPhase, Waiting};

use crate::datagram;
use crate::job::{Job, LoadError, is_passing};

/// Instead of the port of a load, in a phase without load: the receiver has no free CPU to spin on. A sender
/// that does not know it goes on, and is served.
pub(super) const NO_FREE_CPU: u16 = 1;

/// Stamps of the datagrams.
pub(super) const REQUEST: &str = "latency request";
pub(super) const ANSWER: &str = "latency answer";

/// First bytes on the control connection: a phase begins (its number follows), a request, the phase is over,
/// all is over.
pub(crate) const BEGIN: u8 = b'P';
pub(super) const ASK: u8 = b'R';
pub(crate) const END: u8 = b'E';
pub(crate) const QUIT: u8 = b'Q';

/// Bytes of a datagram: the payload, at least its header.
pub(super) fn datagram_bytes(plan: &LatencyPlan) -> usize {
    usize::from(plan.payload_bytes).max(datagram::HEADER_BYTES)
}

/// Prepares a stream for a waiting mode.
pub(super) fn set_waiting(stream: &TcpStream, waiting: Waiting) -> Result<(), LoadError> {
    stream.set_nonblocking(waiting == Waiting::Spinning).map_err(LoadError::io("choose how to wait"))
}

/// What a spinning end does after an empty poll: now and then it yields its CPU, for on a busy host the other
/// end may need it.
pub(super) fn spin(polls: &mut u32) {
    *polls = polls.wrapping_add(1);
    if polls.is_multiple_of(64) {
        std::thread::yield_now();
    } else {
        std::hint::spin_loop();
    }
}

/// Writes to a stream that may not block: a request or an answer always fits soon.
pub(super) fn write_all(job: &Job<'_>, stream: &mut TcpStream, mut bytes: &[u8]) -> Result<(), LoadError> {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(length) => bytes = &bytes[length..],
            Err(error) if is_passing(&error) => job.check("writing a request or answer")?,
            Err(source) => return Err(LoadError::Broken { bytes: 0, source }),
        }
    }
    Ok(())
}

/// The peer of the load or of the datagrams: another port of the same host.
pub(super) fn other_port(peer: SocketAddr, port: u16) -> SocketAddr {
    let mut other = peer;
    other.set_port(port);
    other
}

/// Whether a phase needs a socket for datagrams.
pub(super) fn has_datagrams(phase: LatencyPhase) -> bool {
    phase.carrier == Carrier::Udp
}
