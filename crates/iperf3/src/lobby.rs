//! Connections that have not shown a cookie yet.
//!
//! What comes in: every connection to the server's port. What goes out: connections with their cookies. It
//! never closes to newcomers: a network that has filled its part pushes out its own oldest connection, and a
//! full lobby the oldest of all.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv6Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use super::protocol::{COOKIE_BYTES, Cookie, STREAMS_MAX, State};
use linerate_load::unproven::{ProofRead, QueueLimits, Unproven};

/// So many wait at most. A client shows its cookie at once, so that those that wait are lost or silent.
const LIMITS: QueueLimits =
    QueueLimits { capacity: 1024, grace: Duration::from_millis(300), life: Duration::from_secs(5) };
/// Of one network: all streams of the largest test, and as many again for other clients behind the same
/// translation of addresses.
const OF_NETWORK_MAX: usize = 4 * STREAMS_MAX as usize + 16;

struct Visitor {
    stream: TcpStream,
    network: IpAddr,
    cookie: Cookie,
    shown: usize,
}

impl Visitor {
    /// Reads on.
    fn poll(&mut self) -> ProofRead<Cookie> {
        while self.shown < COOKIE_BYTES {
            match self.stream.read(&mut self.cookie[self.shown..]) {
                Ok(0) => return ProofRead::Wrong,
                Ok(length) => self.shown += length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return ProofRead::Part,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return ProofRead::Wrong,
            }
        }
        ProofRead::Proof(self.cookie)
    }
}

/// What one user of the network can choose freely counts as one: the last 64 bits of an address of IPv6.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64).into(),
        v4 @ IpAddr::V4(_) => v4,
    }
}

/// The connections without a cookie.
pub(super) struct Lobby {
    visitors: Unproven<Visitor>,
}

impl Default for Lobby {
    fn default() -> Self {
        Self { visitors: Unproven::new(LIMITS) }
    }
}

impl Lobby {
    /// Takes what has connected. The error is the listener's own.
    pub(super) fn accept(&mut self, listener: &TcpListener) -> io::Result<()> {
        self.visitors.fill(
            Instant::now(),
            || listener.accept(),
            |visitors, (stream, from)| {
                stream.set_nonblocking(true).ok()?;
                let network = network(from.ip());
                if visitors.iter().filter(|visitor| visitor.network == network).count() >= OF_NETWORK_MAX
                    && let Some(oldest) = visitors.push_out_of(|visitor| visitor.network == network)
                {
                    Self::deny(&oldest.stream);
                }
                Some(Visitor { stream, network, cookie: [0; COOKIE_BYTES], shown: 0 })
            },
        )
    }

    /// The next connection that has shown its cookie, in the order in which they came.
    pub(super) fn next(&mut self) -> Option<(TcpStream, Cookie)> {
        let (visitor, cookie) = self.visitors.next_proven(Instant::now(), Visitor::poll)?;
        Some((visitor.stream, cookie))
    }

    /// Sends "busy" to those who have shown their cookie. The others would get a reset while they still write
    /// it, and report that instead of the reason.
    pub(super) fn deny_shown(&mut self) {
        while let Some((stream, _)) = self.next() {
            Self::deny(&stream);
        }
    }

    /// Closes every connection that waits.
    pub(super) fn clear(&mut self) {
        while let Some(visitor) = self.visitors.push_out_of(|_| true) {
            Self::deny(&visitor.stream);
        }
    }

    /// Sends it to one of them.
    pub(super) fn deny(mut stream: &TcpStream) {
        // A client that does not take one byte at once does not want to know.
        let _ = stream.write(&[State::AccessDenied.byte()]);
        // What was sent by then is read, or closing would throw the byte away with a reset.
        let _ = stream.read(&mut [0; COOKIE_BYTES]);
    }

    /// What to wait for: those that wait, and the listener unless an accept would fail again at once.
    pub(super) fn sockets<'a>(&'a self, listener: &'a TcpListener) -> Vec<BorrowedFd<'a>> {
        (self.visitors.takes().then(|| listener.as_fd()).into_iter())
            .chain(self.visitors.iter().map(|visitor| visitor.stream.as_fd()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use linerate_sys::affinity::raise_open_files;
    use linerate_sys::socket::{self, Ready};

    use super::*;

    #[test]
    fn silent_connections_of_one_address_push_out_each_other_and_nothing_else() {
        raise_open_files().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let far = listener.local_addr().unwrap();
        let mut lobby = Lobby::default();
        // Of another network, and before all others.
        let mut first = socket::connect_start([127, 0, 0, 2].into(), far).unwrap();
        let long = Duration::from_secs(60);
        assert!(socket::wait(&[listener.as_fd()], Ready::Readable, long).unwrap());
        lobby.accept(&listener).unwrap();
        let mut silent = Vec::new();
        for _ in 0..OF_NETWORK_MAX + 20 {
            silent.push(TcpStream::connect(far).unwrap());
            lobby.accept(&listener).unwrap();
        }
        assert_eq!(lobby.visitors.iter().count(), OF_NETWORK_MAX + 1);
        // The first of them was denied; the last still waits.
        let mut word = [0; 1];
        assert_eq!(silent[0].read(&mut word).unwrap(), 1);
        assert_eq!(word, [State::AccessDenied.byte()]);
        let last = silent.last().unwrap();
        last.set_nonblocking(true).unwrap();
        assert_eq!((&*last).read(&mut word).unwrap_err().kind(), ErrorKind::WouldBlock);
        first.write_all(&[b'c'; COOKIE_BYTES]).unwrap();
        assert!(socket::wait(&lobby.sockets(&listener), Ready::Readable, long).unwrap());
        assert_eq!(lobby.next().unwrap().1, [b'c'; COOKIE_BYTES]);
    }

    #[test]
    fn one_network_is_an_address_of_ipv4_or_64_bits_of_ipv6() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.7"), of("192.0.2.7"));
        assert_ne!(of("192.0.2.7"), of("192.0.2.8"));
    }
}
