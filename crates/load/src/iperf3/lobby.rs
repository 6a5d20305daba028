//! Connections that have not shown a cookie yet.
//!
//! What comes in: whoever connects. What goes out: connections with their cookies. Nobody who stands here keeps others out: there
//! is room for a few, each for a few seconds.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use super::control::accept;
use super::protocol::{COOKIE_BYTES, Cookie, STREAMS_MAX, State};

/// So many wait at most: all streams of the largest test, and some that are lost.
const ROOM: usize = 2 * STREAMS_MAX as usize + 16;
/// A client shows its cookie at once.
const PATIENCE: Duration = Duration::from_secs(5);

struct Visitor {
    stream: TcpStream,
    cookie: Cookie,
    shown: usize,
    since: Instant,
}

impl Visitor {
    /// Reads on; `None` when it is gone.
    fn read(&mut self) -> Option<()> {
        while self.shown < COOKIE_BYTES {
            match self.stream.read(&mut self.cookie[self.shown..]) {
                Ok(0) => return None,
                Ok(length) => self.shown += length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        Some(())
    }
}

/// Who has connected.
#[derive(Default)]
pub(super) struct Lobby {
    visitors: Vec<Visitor>,
}

impl Lobby {
    /// Takes whoever has connected.
    pub(super) fn accept(&mut self, listener: &TcpListener) -> io::Result<()> {
        // Bounded, so that a flood of connections does not hold up a test.
        for _ in 0..ROOM {
            let Some(stream) = accept(listener)? else { break };
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            if self.visitors.len() >= ROOM {
                Self::deny(&stream);
                continue;
            }
            let since = Instant::now();
            self.visitors.push(Visitor { stream, cookie: [0; COOKIE_BYTES], shown: 0, since });
        }
        Ok(())
    }

    /// The next connection that has shown its cookie, in the order in which they came.
    pub(super) fn next(&mut self) -> Option<(TcpStream, Cookie)> {
        self.visitors.retain_mut(|visitor| visitor.since.elapsed() < PATIENCE && visitor.read().is_some());
        let index = self.visitors.iter().position(|visitor| visitor.shown == COOKIE_BYTES)?;
        let visitor = self.visitors.remove(index);
        Some((visitor.stream, visitor.cookie))
    }

    /// Tells those who have shown their cookie that we are busy. The others would get a reset while they still write it, and
    /// say that instead of the reason.
    pub(super) fn deny_shown(&mut self) {
        while let Some((stream, _)) = self.next() {
            Self::deny(&stream);
        }
    }

    /// Tells one of them.
    pub(super) fn deny(mut stream: &TcpStream) {
        // Whoever does not take one byte at once does not want to know.
        let _ = stream.write(&[State::AccessDenied.byte()]);
        // What was sent by then is read, or closing would throw the byte away with a reset.
        let _ = stream.read(&mut [0; COOKIE_BYTES]);
    }

    pub(super) fn sockets(&self) -> Vec<BorrowedFd<'_>> {
        self.visitors.iter().map(|visitor| visitor.stream.as_fd()).collect()
    }
}
