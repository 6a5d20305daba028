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

    /// For one of so many steps that are left: its part of the time.
    fn part(&self, steps: usize) -> Self {
        let steps = u32::try_from(steps).unwrap_or(u32::MAX).max(1);
        let now = Instant::now();
        let limit = self.end.saturating_duration_since(now) / steps;
        // As it is printed: in tenths of a second.
        let tenths = (limit.as_secs_f64() * 10.0).round().max(1.0);
        Self { job: self.job, end: now + limit, limit: Duration::from_secs_f64(tenths / 10.0) }
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
    connect_within(peer, until, until)
}

/// A TCP connection to the first of these that answers. One that does not leaves time for the others.
pub(super) fn connect_any<'a>(peers: &[SocketAddr], until: &'a Until<'a>) -> Result<Timed<'a>, Failure> {
    let mut last = Err("the host has no address".to_owned());
    for (number, peer) in peers.iter().enumerate() {
        last = connect_within(*peer, until, &until.part(peers.len() - number));
        if last.is_ok() {
            break;
        }
    }
    last
}

/// Connects by the end of `step`, for a stream that lives until `until`.
fn connect_within<'a>(
    peer: SocketAddr,
    until: &'a Until<'a>,
    step: &Until<'_>,
) -> Result<Timed<'a>, Failure> {
    let name = format!("connect to {peer}");
    let words = |error: io::Error| step.words(&name, &error);
    let bind = match (until.job.spec.bind, peer) {
        (own, peer) if own.is_ipv4() == peer.is_ipv4() => own,
        (_, SocketAddr::V4(_)) => Ipv4Addr::UNSPECIFIED.into(),
        (_, SocketAddr::V6(_)) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let stream = socket::connect_start(bind, peer).map_err(words)?;
    loop {
        step.check().map_err(words)?;
        if socket::wait(&[stream.as_fd()], Ready::Writable, step.slice()).map_err(words)? {
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

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use linerate_model::kind::{HttpPlan, TestKind};
    use linerate_model::load::{LoadSpec, Role};

    use super::*;
    use crate::job::LoadControl;

    #[test]
    fn an_address_that_does_not_answer_leaves_time_for_the_next() {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let live = TcpListener::bind("127.0.0.1:0").unwrap();
        let (silent_at, live_at) = (silent.local_addr().unwrap(), live.local_addr().unwrap());
        // A full queue of connections: the kernel no longer answers.
        let fill = || socket::connect_start(Ipv4Addr::UNSPECIFIED.into(), silent_at).unwrap();
        let queued: Vec<TcpStream> = (0..300).map(|_| fill()).collect();
        let plan = HttpPlan {
            url: String::new(),
            via: Vec::new(),
            repeat: 1,
            max_bytes: 1,
            timeout_ms: 60_000,
            trusted_pem: None,
            insecure: false,
        };
        let spec = LoadSpec {
            kind: TestKind::from(plan),
            role: Role::Sender { peer: live_at },
            bind: Ipv4Addr::UNSPECIFIED.into(),
            netns: None,
            token: [0; 16],
            deadline_ms: 60_000,
            same_host: false,
            tuning: Box::default(),
        };
        let control = LoadControl { stop: std::sync::Arc::default(), listening: Box::new(|_| {}) };
        let job = Job::new(&spec, &control);
        let until = Until::new(&job, Duration::from_secs(4));
        let stream = connect_any(&[silent_at, live_at], &until).map_err(|error| panic!("{error}")).unwrap();
        assert_eq!(stream.stream.peer_addr().unwrap(), live_at);
        let last = connect_any(&[silent_at], &Until::new(&job, Duration::from_millis(100))).err().unwrap();
        assert!(last.contains(&format!("connect to {silent_at} within 0.1 s")), "{last}");
        assert!(connect_any(&[], &until).is_err());
        drop(queued);
    }
}
