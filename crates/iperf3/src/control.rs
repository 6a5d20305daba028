//! The control connection as a socket: reads what is there, writes within a time; and connections that are
//! made within a time.
//!
//! What comes in: bytes to send, addresses. What goes out: bytes that came. It knows nothing of what they
//! mean.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use linerate_sys::socket::{self, Ready};
use linerate_sys::socket_options::{self, KeepAlive, TcpPaths};

use super::SLICE;
use super::printable::printable;
use super::trace::Trace;

/// A peer that does not take a message within this time has vanished.
const WRITE_WAIT: Duration = Duration::from_secs(10);

/// Bytes of one read.
const READ_BYTES: usize = 64 << 10;

/// What a read brought.
pub(super) enum Came {
    Bytes(Vec<u8>),
    Nothing,
    End,
}

/// A control connection.
pub(super) struct Control {
    stream: TcpStream,
    /// What was sent, and what came.
    traces: [Trace; 2],
}

impl Control {
    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, traces: [Trace::new(0), Trace::new(0)] })
    }

    /// Writes to stderr what goes over it from now on, at this level; 0 for nothing.
    pub(super) fn traced(mut self, level: u8) -> Self {
        self.traces = [Trace::new(level), Trace::new(level)];
        self
    }

    fn trace(&mut self, direction: usize, bytes: &[u8]) {
        for line in self.traces[direction].lines(bytes) {
            let word = ["sent", "received"][direction];
            let shown = printable(&format!("debug: {word} {line}"));
            // A reader that has gone away is left alone.
            let _ = writeln!(io::stderr(), "{shown}");
        }
    }

    /// Options of a control connection that a user can choose.
    pub(super) fn tune(&self, keep_alive: Option<KeepAlive>, send_timeout_ms: Option<u32>) -> io::Result<()> {
        if let Some(probes) = keep_alive {
            socket_options::set_keep_alive(&self.stream, probes)?;
        }
        send_timeout_ms.map_or(Ok(()), |ms| socket_options::set_user_timeout(&self.stream, ms))
    }

    pub(super) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// What is there. A connection that broke has ended.
    pub(super) fn read(&mut self) -> Came {
        let mut buffer = vec![0; READ_BYTES];
        match self.stream.read(&mut buffer) {
            Ok(0) => Came::End,
            Ok(length) => {
                buffer.truncate(length);
                self.trace(1, &buffer);
                Came::Bytes(buffer)
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                Came::Nothing
            }
            Err(_) => Came::End,
        }
    }

    /// Sends all of it.
    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.trace(0, bytes);
        let until = Instant::now() + WRITE_WAIT;
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.stream.write(rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if Instant::now() >= until {
                        return Err(ErrorKind::TimedOut.into());
                    }
                    socket::wait(&[self.stream.as_fd()], Ready::Writable, SLICE)?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Makes a connection within a time; `prepare` sets options before its first packet.
pub(super) fn connect(
    local: Option<SocketAddr>,
    peer: SocketAddr,
    paths: TcpPaths,
    wait: Duration,
    stop: &dyn Fn() -> bool,
    prepare: &dyn Fn(BorrowedFd<'_>) -> io::Result<()>,
) -> io::Result<TcpStream> {
    let stream = socket_options::connect_prepared(local, peer, paths, prepare)?;
    let until = Instant::now() + wait;
    while !socket::wait(&[stream.as_fd()], Ready::Writable, SLICE)? {
        if stop() {
            return Err(ErrorKind::Interrupted.into());
        }
        if Instant::now() >= until {
            return Err(io::Error::new(
                ErrorKind::TimedOut,
                format!("no answer within {} ms", wait.as_millis()),
            ));
        }
    }
    match stream.take_error()? {
        Some(error) => Err(error),
        None => Ok(stream),
    }
}
