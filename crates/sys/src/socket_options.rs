//! Socket options that a user can choose, and sockets that need them before they are connected.
//!
//! In: a socket, a number or a name. Out: the kernel's answer. It decides nothing.

use std::io;
use std::net::{SocketAddr, SocketAddrV6, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::socket::{int_option, raw_address, set_option};

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn fresh(address: SocketAddr, kind: libc::c_int, protocol: libc::c_int) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    // SAFETY: socket returns a new descriptor, or a negative number that `check` turns into an error.
    unsafe { Ok(OwnedFd::from_raw_fd(check(libc::socket(family, kind | libc::SOCK_CLOEXEC, protocol))?)) }
}

/// TCP over one path, or over several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TcpPaths {
    /// TCP.
    #[default]
    One,
    /// Multipath TCP.
    Several,
}

impl TcpPaths {
    fn protocol(self) -> libc::c_int {
        match self {
            Self::One => 0,
            Self::Several => libc::IPPROTO_MPTCP,
        }
    }
}

fn bind(socket: &OwnedFd, address: SocketAddr) -> io::Result<()> {
    let (raw, length) = raw_address(address);
    // SAFETY: the address is valid for `length` bytes during the call.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const raw).cast(), length) }).map(|_| ())
}

/// Starts a TCP connection and returns at once, non-blocking. `prepare` sets options before the first packet;
/// `local` is the own end, any where none is given.
pub fn connect_prepared(
    local: Option<SocketAddr>,
    peer: SocketAddr,
    paths: TcpPaths,
    prepare: &dyn Fn(BorrowedFd<'_>) -> io::Result<()>,
) -> io::Result<TcpStream> {
    let socket = fresh(peer, libc::SOCK_STREAM | libc::SOCK_NONBLOCK, paths.protocol())?;
    prepare(socket.as_fd())?;
    if let Some(local) = local {
        reuse_address(&socket)?;
        bind(&socket, local)?;
    }
    let (raw, length) = raw_address(peer);
    // SAFETY: the address is valid for `length` bytes during the call.
    match check(unsafe { libc::connect(socket.as_raw_fd(), (&raw const raw).cast(), length) }) {
        Ok(_) => Ok(TcpStream::from(socket)),
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(TcpStream::from(socket)),
        Err(error) => Err(error),
    }
}

/// Connections that wait to be accepted; the host's own limit is often lower.
const BACKLOG: libc::c_int = 4096;

/// A listener in the place of another one, which the caller then closes: at the same address, with none of
/// the options that were set on the other, and without a moment in which the port is free for a program of
/// another user. It does not block.
pub fn listen_in_place_of(old: &TcpListener, paths: TcpPaths) -> io::Result<TcpListener> {
    let address = old.local_addr()?;
    let new = fresh(address, libc::SOCK_STREAM | libc::SOCK_NONBLOCK, paths.protocol())?;
    let share = |socket: &dyn AsFd, on: libc::c_int| {
        set_option(&socket.as_fd(), libc::SOL_SOCKET, libc::SO_REUSEPORT, &on)
    };
    share(old, 1)?;
    let made = (|| {
        reuse_address(&new)?;
        share(&new, 1)?;
        bind(&new, address)?;
        // SAFETY: listen takes its arguments by value.
        check(unsafe { libc::listen(new.as_raw_fd(), BACKLOG) })?;
        // From here on the port is as closed to others as it was.
        share(&new, 0)
    })();
    made.and(share(old, 0))?;
    Ok(TcpListener::from(new))
}

/// A UDP socket on an address that other sockets of this process may be bound to as well: one is connected to
/// each peer, the last one takes whoever comes next.
pub fn bind_shared(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = fresh(address, libc::SOCK_DGRAM, 0)?;
    reuse_address(&socket)?;
    bind(&socket, address)?;
    Ok(UdpSocket::from(socket))
}

fn reuse_address(socket: &impl AsFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    set_option(socket, libc::SOL_SOCKET, libc::SO_REUSEADDR, &on)
}

fn as_int(value: u32) -> libc::c_int {
    libc::c_int::try_from(value).unwrap_or(libc::c_int::MAX)
}

/// Both buffers of a socket, bytes. TCP's own choice of them is off from then on.
pub fn set_buffers(socket: &impl AsFd, bytes: u32) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_SNDBUF, &as_int(bytes))?;
    set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, &as_int(bytes))
}

/// The same beyond the host's limits where the rights allow it; returns what the kernel gave the smaller one
/// (it keeps half of a buffer for bookkeeping and says the double).
pub fn force_buffers(socket: &impl AsFd, bytes: u32) -> io::Result<u64> {
    let mut least = u64::MAX;
    for (forced, plain) in [(libc::SO_SNDBUFFORCE, libc::SO_SNDBUF), (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF)]
    {
        set_option(socket, libc::SOL_SOCKET, forced, &as_int(bytes))
            .or_else(|_| set_option(socket, libc::SOL_SOCKET, plain, &as_int(bytes)))?;
        let given = int_option(socket, libc::SOL_SOCKET, plain)?;
        least = least.min(u64::try_from(given).unwrap_or(0) / 2);
    }
    Ok(least)
}

/// Largest segment of a connection to be, bytes; 0 for the kernel's choice.
pub fn set_segment(socket: &impl AsFd, bytes: u32) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG, &as_int(bytes))
}

/// Largest segment of a connection, bytes.
pub fn segment(socket: &impl AsFd) -> io::Result<u32> {
    int_option(socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG).map(|bytes| u32::try_from(bytes).unwrap_or(0))
}

/// Congestion control of a connection, by its name.
pub fn set_congestion(socket: &impl AsFd, name: &str) -> io::Result<()> {
    // SAFETY: the kernel reads `len` bytes of the name during the call.
    check(unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_CONGESTION,
            name.as_ptr().cast(),
            name.len() as libc::socklen_t,
        )
    })
    .map(|_| ())
}

/// Type of service (IPv4) or traffic class (IPv6) of what is sent.
pub fn set_type_of_service(socket: &impl AsFd, value: u32, ipv6: bool) -> io::Result<()> {
    // A socket of both families carries IPv4 too.
    let v4 = set_option(socket, libc::IPPROTO_IP, libc::IP_TOS, &as_int(value));
    if ipv6 { set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_TCLASS, &as_int(value)) } else { v4 }
}

/// Rate that the kernel paces a socket to, bytes per second.
pub fn set_pacing_rate(socket: &impl AsFd, bytes_per_s: u64) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, &bytes_per_s)
}

/// How long data that was sent may stay unacknowledged before the kernel ends the connection, ms.
pub fn set_user_timeout(socket: &impl AsFd, ms: u32) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, &ms)
}

/// Probes of an idle connection; 0 leaves a number to the kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeepAlive {
    /// Seconds until the first one.
    pub idle_s: u32,
    /// Seconds between two.
    pub interval_s: u32,
    /// So many without an answer end the connection.
    pub count: u32,
}

/// Has the kernel probe an idle connection.
pub fn set_keep_alive(socket: &impl AsFd, probes: KeepAlive) -> io::Result<()> {
    let on: libc::c_int = 1;
    set_option(socket, libc::SOL_SOCKET, libc::SO_KEEPALIVE, &on)?;
    for (option, value) in [
        (libc::TCP_KEEPIDLE, probes.idle_s),
        (libc::TCP_KEEPINTVL, probes.interval_s),
        (libc::TCP_KEEPCNT, probes.count),
    ] {
        if value > 0 {
            set_option(socket, libc::IPPROTO_TCP, option, &as_int(value))?;
        }
    }
    Ok(())
}

/// Binds a socket to a network device by its name.
pub fn bind_to_device(socket: &impl AsFd, name: &str) -> io::Result<()> {
    // SAFETY: the kernel reads `len` bytes of the name during the call.
    check(unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_BINDTODEVICE,
            name.as_ptr().cast(),
            name.len() as libc::socklen_t,
        )
    })
    .map(|_| ())
}

/// `struct in6_flowlabel_req` of `linux/in6.h`.
#[repr(C)]
struct FlowLabelRequest {
    destination: [u8; 16],
    label: u32,
    action: u8,
    share: u8,
    flags: u16,
    expires: u16,
    linger: u16,
    padding: u32,
}

/// `IPV6_FL_F_CREATE`: a label that is free is taken.
const LABEL_CREATE: u16 = 1;
/// `IPV6_FL_S_ANY`: other processes may use it too.
const LABEL_SHARED: u8 = 255;
/// `IPV6_FLOWLABEL_MGR` and `IPV6_FLOWINFO_SEND` of `linux/in6.h`.
const FLOW_LABEL_MANAGER: libc::c_int = 32;
const FLOW_INFO_SEND: libc::c_int = 33;

/// Takes an IPv6 flow label of 20 bits for what a socket will send to a peer; it takes effect when the socket
/// connects to an address with that label.
pub fn set_flow_label(socket: &impl AsFd, peer: SocketAddrV6, label: u32) -> io::Result<()> {
    let request = FlowLabelRequest {
        destination: peer.ip().octets(),
        label: label.to_be(),
        action: 0,
        share: LABEL_SHARED,
        flags: LABEL_CREATE,
        expires: 0,
        linger: 0,
        padding: 0,
    };
    set_option(socket, libc::IPPROTO_IPV6, FLOW_LABEL_MANAGER, &request)?;
    let on: libc::c_int = 1;
    set_option(socket, libc::IPPROTO_IPV6, FLOW_INFO_SEND, &on)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::socket::{Ready, send_buffer, wait};

    #[test]
    fn a_listener_is_replaced_without_its_options_and_the_port_stays_taken() {
        for address in ["127.0.0.1:0", "[::]:0"] {
            let Ok(old) = TcpListener::bind(address) else { continue };
            let at = old.local_addr().unwrap();
            let plain = send_buffer(&old).unwrap();
            set_buffers(&old, 20_000).unwrap();
            set_segment(&old, 600).unwrap();
            let new = listen_in_place_of(&old, TcpPaths::One).unwrap();
            drop(old);
            assert_eq!((new.local_addr().unwrap(), send_buffer(&new).unwrap()), (at, plain));
            let taken = TcpListener::bind(at).unwrap_err();
            assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
            let client = TcpStream::connect(("127.0.0.1", at.port())).unwrap();
            assert!(wait(&[new.as_fd()], Ready::Readable, Duration::from_secs(60)).unwrap());
            let server = new.accept().unwrap().0;
            assert_eq!(server.peer_addr().unwrap().port(), client.local_addr().unwrap().port());
            // While connections of the first one live.
            let third = listen_in_place_of(&new, TcpPaths::One).unwrap();
            assert_eq!(third.local_addr().unwrap(), at);
        }
    }

    #[test]
    fn options_are_set_before_the_first_packet() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = listener.local_addr().unwrap();
        let local = Some("127.0.0.1:0".parse().unwrap());
        let client = connect_prepared(local, peer, TcpPaths::One, &|socket| {
            set_segment(&socket, 1000)?;
            set_buffers(&socket, 65_536)?;
            set_congestion(&socket, "reno")?;
            set_type_of_service(&socket, 0x20, false)
        })
        .unwrap();
        assert!(wait(&[client.as_fd()], Ready::Writable, Duration::from_secs(60)).unwrap());
        assert!(client.take_error().unwrap().is_none());
        assert!(segment(&client).unwrap() <= 1000);
        assert_eq!(send_buffer(&client).unwrap(), 131_072, "the kernel counts twice");
        assert_eq!(crate::tcp_info::congestion(&client).unwrap(), "reno");
        set_pacing_rate(&client, 1_000_000).unwrap();
        assert!(force_buffers(&client, 65_536).unwrap() >= 65_536);
        assert!(set_segment(&client, 7).is_err());
        assert!(set_congestion(&client, "no-such-control").is_err());
        drop(listener);
    }

    #[test]
    fn two_sockets_share_a_port_and_the_connected_one_keeps_its_peer() {
        let first = bind_shared("127.0.0.1:0".parse().unwrap()).unwrap();
        let at = first.local_addr().unwrap();
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.connect(at).unwrap();
        client.send(b"one").unwrap();
        let mut room = [0; 8];
        let (length, from) = first.recv_from(&mut room).unwrap();
        assert_eq!(&room[..length], b"one");
        first.connect(from).unwrap();
        let second = bind_shared(at).unwrap();
        client.send(b"two").unwrap();
        first.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        assert_eq!(first.recv(&mut room).unwrap(), 3);
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        other.send_to(b"three", at).unwrap();
        second.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        assert_eq!(second.recv(&mut room).unwrap(), 5);
    }
}
