//! From a name to a connection, each step bounded in time.
//!
//! What comes in: host and port, the time that is left. What goes out: addresses, and a stream whose every
//! read and write ends at that time or when the load is stopped. It sends nothing of its own.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use linerate_sys::socket::{self, Ready};

use super::url::Failure;
use crate::job::{Job, SLICE, is_passing};

/// The time and the stop flag of one download.
pub(super) struct Until<'a> {
    job: &'a Job<'a>,
    end: Instant,
    limit: Duration,
}

impl<'a> Until<'a> {
    pub(super) fn new(job: &'a Job<'a>, limit: Duration) -> Self {
        Self { job, end: Instant::now() + limit, limit }
    }

    /// Whether it may go on.
    fn check(&self) -> io::Result<()> {
        self.job.check("downloading").map_err(io::Error::other)?;
        if Instant::now() < self.end { Ok(()) } else { Err(ErrorKind::TimedOut.into()) }
    }

    fn slice(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now()).clamp(Duration::from_millis(1), SLICE)
    }

    /// Whether our own address can talk to this one.
    pub(super) fn reaches(&self, address: SocketAddr) -> bool {
        let own = self.job.spec.bind;
        own.is_unspecified() || own.is_ipv4() == address.is_ipv4()
    }

    /// An error of a step in words.
    pub(super) fn words(&self, step: &str, error: &io::Error) -> Failure {
        if error.kind() == ErrorKind::TimedOut {
            return format!("could not {step} within {} s", self.limit.as_secs_f64());
        }
        format!("could not {step}: {error}")
    }
}

/// The addresses of a name. The system's resolver cannot be interrupted: it is left alone when it takes too
/// long.
pub(super) fn resolve(host: &str, port: u16, until: &Until<'_>) -> Result<Vec<SocketAddr>, Failure> {
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(ip, port)]);
    }
    let (found, wait) = mpsc::channel();
    let name = host.to_owned();
    let ask = move || {
        // The caller has timed out when this took too long.
        let _ = found.send((name.as_str(), port).to_socket_addrs().map(Iterator::collect::<Vec<_>>));
    };
    std::thread::Builder::new()
        .name("resolver".into())
        .spawn(ask)
        .map_err(|e| until.words("start a thread", &e))?;
    loop {
        until.check().map_err(|e| until.words(&format!("resolve `{host}`"), &e))?;
        match wait.recv_timeout(until.slice()) {
            Ok(Ok(addresses)) if addresses.is_empty() => return Err(format!("`{host}` has no address")),
            Ok(Ok(addresses)) => return Ok(addresses),
            Ok(Err(error)) => return Err(until.words(&format!("resolve `{host}`"), &error)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err("the resolver ended early".to_owned()),
        }
    }
}

/// A TCP connection to the peer.
pub(super) fn connect<'a>(peer: SocketAddr, until: &'a Until<'a>) -> Result<Timed<'a>, Failure> {
    let step = format!("connect to {peer}");
    let words = |error: io::Error| until.words(&step, &error);
    let bind = match (until.job.spec.bind, peer) {
        (own, peer) if own.is_ipv4() == peer.is_ipv4() => own,
        (_, SocketAddr::V4(_)) => Ipv4Addr::UNSPECIFIED.into(),
        (_, SocketAddr::V6(_)) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let stream = socket::connect_start(bind, peer).map_err(words)?;
    loop {
        until.check().map_err(words)?;
        if socket::wait(&[stream.as_fd()], Ready::Writable, until.slice()).map_err(words)? {
            break;
        }
    }
    if let Some(error) = stream.take_error().map_err(words)? {
        return Err(words(error));
    }
    let prepared = stream
        .set_nonblocking(false)
        .and_then(|()| stream.set_read_timeout(Some(SLICE)))
        .and_then(|()| stream.set_write_timeout(Some(SLICE)))
        .and_then(|()| stream.set_nodelay(true));
    prepared.map_err(words)?;
    Ok(Timed { stream, until })
}

/// What a download reads from: plain or through TLS.
pub(super) trait Stream: Read + Write {}

impl<T: Read + Write> Stream for T {}

/// A stream that ends at its time.
pub(super) struct Timed<'a> {
    stream: TcpStream,
    until: &'a Until<'a>,
}

impl Read for Timed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.until.check()?;
            match self.stream.read(buffer) {
                Err(error) if is_passing(&error) => {}
                other => return other,
            }
        }
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            self.until.check()?;
            match self.stream.write(bytes) {
                Err(error) if is_passing(&error) => {}
                other => return other,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
