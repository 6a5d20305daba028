//! The datagrams of the loads over UDP: a header that shows the token, and an end that answers requests.
//!
//! What comes in: sockets of one test. What goes out: sequence numbers of proven datagrams. A datagram
//! without the stamp of its kind in this test is passed over and counted, never answered. An answer is never
//! longer than its request.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use linerate_sys::socket;

use crate::job::{FIRST_CONTACT, Job, LoadError, SLICE, is_passing};
use crate::token::{STAMP_BYTES, Stamp, same};

/// Bytes of the header: stamp, sequence number, argument.
pub(crate) const HEADER_BYTES: usize = STAMP_BYTES + 8 + 8;

/// How often the end of a test is sent: one of them gets through.
const FAREWELLS: u64 = 4;

/// A receiver that answers is done after so long without a request. Longer than any pause of a sender, also
/// of one that waits for a CPU. It matters only when all last words are lost, and an operator stops such a
/// receiver sooner.
const IDLE: Duration = Duration::from_secs(2);

/// The header of a datagram.
pub(crate) fn header(stamp: &Stamp, sequence: u64, argument: u64) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..STAMP_BYTES].copy_from_slice(stamp);
    bytes[STAMP_BYTES..STAMP_BYTES + 8].copy_from_slice(&sequence.to_be_bytes());
    bytes[STAMP_BYTES + 8..].copy_from_slice(&argument.to_be_bytes());
    bytes
}

/// A datagram of this length, at least its header, filled up with zeros.
pub(crate) fn padded(stamp: &Stamp, sequence: u64, argument: u64, length: usize) -> Vec<u8> {
    let mut bytes = header(stamp, sequence, argument).to_vec();
    bytes.resize(length.max(HEADER_BYTES), 0);
    bytes
}

/// Bytes of the IP and UDP headers in front of a payload.
pub(crate) fn outer_bytes(ipv6: bool) -> usize {
    if ipv6 { 48 } else { 28 }
}

/// Sequence number and argument of a datagram that shows the stamp.
pub(crate) fn parse(stamp: &Stamp, datagram: &[u8]) -> Option<(u64, u64)> {
    let head = datagram.get(..HEADER_BYTES)?;
    if !same(&head[..STAMP_BYTES], stamp) {
        return None;
    }
    let number = |at: usize| Some(u64::from_be_bytes(head.get(at..at + 8)?.try_into().ok()?));
    Some((number(STAMP_BYTES)?, number(STAMP_BYTES + 8)?))
}

/// The receiver's socket, announced to the caller.
pub(crate) fn bind(job: &Job<'_>, receive_buffer: Option<u32>) -> Result<UdpSocket, LoadError> {
    let socket = UdpSocket::bind((job.spec.bind, 0)).map_err(LoadError::io("bind a UDP socket"))?;
    socket.set_read_timeout(Some(SLICE)).map_err(LoadError::io("set a time-out"))?;
    if let Some(bytes) = receive_buffer {
        // A smaller buffer is no reason not to measure: what it costs is in the drop count.
        let _ = socket::set_receive_buffer(&socket, bytes);
    }
    let port = socket.local_addr().map_err(LoadError::io("read the address of a UDP socket"))?.port();
    (job.control.listening)(port);
    Ok(socket)
}

/// The sender's socket.
pub(crate) fn connect(job: &Job<'_>, peer: SocketAddr) -> Result<UdpSocket, LoadError> {
    let refused =
        |error: io::Error| LoadError::Connect { peer, bind: job.spec.bind, reason: error.to_string() };
    let socket = UdpSocket::bind(socket::local_end(job.spec.bind, peer)).map_err(refused)?;
    socket.connect(peer).map_err(refused)?;
    socket.set_read_timeout(Some(SLICE)).map_err(LoadError::io("set a time-out"))?;
    socket.set_write_timeout(Some(SLICE)).map_err(LoadError::io("set a time-out"))?;
    Ok(socket)
}

/// Sends the end of the test to the receiver, with an `argument` for it.
pub(crate) fn farewell(socket: &UdpSocket, stamp: &Stamp, argument: u64) {
    for sequence in 0..FAREWELLS {
        // Nothing hangs on it: a receiver that gets none ends by itself.
        let _ = socket.send(&header(stamp, sequence, argument));
        std::thread::sleep(Duration::from_millis(3));
    }
}

/// Labels of the stamps of a test of requests and answers.
pub(crate) struct Labels {
    /// From sender to receiver.
    pub request: &'static str,
    /// From receiver to sender.
    pub answer: &'static str,
    /// The last word of the sender.
    pub end: &'static str,
}

/// Answers proven requests, each with `answer_bytes`, sequence number and the request's length as argument,
/// until the sender's end message. Returns the bytes of the requests.
pub(crate) fn answer(job: &Job<'_>, labels: &Labels, answer_bytes: usize) -> Result<u64, LoadError> {
    let [request, reply, end] =
        [labels.request, labels.answer, labels.end].map(|label| job.token.stamp(label, &[]));
    let socket = bind(job, None)?;
    let mut strangers = 0;
    let result = answer_all(job, &socket, [&request, &reply, &end], answer_bytes, &mut strangers);
    job.met_datagrams(strangers, &socket);
    result
}

fn answer_all(
    job: &Job<'_>,
    socket: &UdpSocket,
    [request, reply, end]: [&Stamp; 3],
    answer_bytes: usize,
    strangers: &mut u64,
) -> Result<u64, LoadError> {
    let mut buffer = vec![0; 65_536];
    let mut bytes = 0;
    let mut limit = Instant::now() + FIRST_CONTACT;
    while Instant::now() < limit {
        job.check("answering")?;
        let (length, from) = match socket.recv_from(&mut buffer) {
            Ok(received) => received,
            Err(error) if is_passing(&error) => continue,
            Err(source) => return Err(LoadError::Io { what: "receive", source }),
        };
        let datagram = &buffer[..length];
        if parse(end, datagram).is_some() {
            return Ok(bytes);
        }
        let Some((sequence, _)) = parse(request, datagram) else {
            *strangers += 1;
            continue;
        };
        bytes += length as u64;
        limit = Instant::now() + IDLE;
        let mut out = [0; 256];
        out[..HEADER_BYTES].copy_from_slice(&header(reply, sequence, length as u64));
        let size = answer_bytes.clamp(HEADER_BYTES, out.len()).min(length);
        // A lost answer is what the sender measures.
        let _ = socket.send_to(&out[..size], from);
    }
    if bytes == 0 {
        return Err(LoadError::NobodyCame { waited_ms: FIRST_CONTACT.as_millis(), got: 0, wanted: 1 });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_header_with_the_stamp_is_read() {
        let stamp = [3; STAMP_BYTES];
        let bytes = header(&stamp, 7, u64::MAX);
        assert_eq!(parse(&stamp, &bytes), Some((7, u64::MAX)));
        assert_eq!(parse(&stamp, &bytes[..31]), None);
        assert_eq!(parse(&[4; STAMP_BYTES], &bytes), None);
        assert_eq!(parse(&stamp, &[]), None);
    }
}
