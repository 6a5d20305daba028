//! Stream sockets of every family that a transfer can use.
//!
//! In: a kind of socket, addresses. Out: streams, or the kernel's answer. A stream of any family is given as
//! the standard library's `TcpStream`, of which only reading, writing, shutting down and time limits are
//! used. It decides nothing and never retries.

use std::io;
use std::mem::{offset_of, size_of, zeroed};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use crate::socket::{int_option, local_end, raw_address};

/// Connections that wait to be accepted: all streams of a test may come at once.
const BACKLOG: libc::c_int = 2048;

/// `VMADDR_CID_LOCAL`: the own machine.
const CID_LOCAL: u32 = 1;

/// Kind of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamKind {
    /// TCP.
    Tcp,
    /// Multipath TCP.
    Mptcp,
    /// Inside the host and its network namespace, by an abstract name made from the port.
    Unix,
    /// To a virtual machine or its host.
    Vsock {
        /// Context identifier of the receiver.
        cid: u32,
    },
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// A socket that does not block, not yet bound or connected.
pub fn open(kind: StreamKind, ipv6: bool) -> io::Result<OwnedFd> {
    let inet = if ipv6 { libc::AF_INET6 } else { libc::AF_INET };
    let (family, protocol) = match kind {
        StreamKind::Tcp => (inet, 0),
        StreamKind::Mptcp => (inet, libc::IPPROTO_MPTCP),
        StreamKind::Unix => (libc::AF_UNIX, 0),
        StreamKind::Vsock { .. } => (libc::AF_VSOCK, 0),
    };
    let style = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: socket returns a new descriptor, or a negative number that `check` turns into an error.
    Ok(unsafe { OwnedFd::from_raw_fd(check(libc::socket(family, style, protocol))?) })
}

/// An address of any family, with its length.
struct Raw(libc::sockaddr_storage, libc::socklen_t);

impl Raw {
    fn unix(port: u16) -> Self {
        // SAFETY: all zero bytes are a valid sockaddr_un.
        let mut address: libc::sockaddr_un = unsafe { zeroed() };
        address.sun_family = libc::AF_UNIX as libc::sa_family_t;
        let name = format!("\0linerate-load-{port}");
        for (slot, byte) in address.sun_path.iter_mut().zip(name.bytes()) {
            *slot = byte as libc::c_char;
        }
        Self::of(address, offset_of!(libc::sockaddr_un, sun_path) + name.len())
    }

    fn vsock(cid: u32, port: u16) -> Self {
        // SAFETY: all zero bytes are a valid sockaddr_vm.
        let mut address: libc::sockaddr_vm = unsafe { zeroed() };
        address.svm_family = libc::AF_VSOCK as libc::sa_family_t;
        address.svm_cid = cid;
        address.svm_port = u32::from(port);
        Self::of(address, size_of::<libc::sockaddr_vm>())
    }

    fn inet(address: SocketAddr) -> Self {
        let (storage, length) = raw_address(address);
        Self(storage, length)
    }

    fn of<T>(address: T, length: usize) -> Self {
        const { assert!(size_of::<T>() <= size_of::<libc::sockaddr_storage>()) };
        // SAFETY: all zero bytes are a valid sockaddr_storage.
        let mut storage: libc::sockaddr_storage = unsafe { zeroed() };
        // SAFETY: sockaddr_storage is large enough (checked above) and aligned for every socket address.
        unsafe { (&raw mut storage).cast::<T>().write(address) };
        Self(storage, length as libc::socklen_t)
    }

    fn bind(&self, socket: &OwnedFd) -> io::Result<()> {
        // SAFETY: the address is valid for its length during the call.
        check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const self.0).cast(), self.1) }).map(|_| ())
    }

    fn connect(&self, socket: &OwnedFd) -> io::Result<()> {
        // SAFETY: the address is valid for its length during the call.
        match check(unsafe { libc::connect(socket.as_raw_fd(), (&raw const self.0).cast(), self.1) }) {
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(()),
            other => other.map(|_| ()),
        }
    }
}

/// Starts a connection from address `bind` to `peer` and returns at once. It is ready, or failed
/// (`take_error`), when it becomes writable. Only the port of `peer` matters to kinds without IP addresses.
pub fn connect(socket: OwnedFd, kind: StreamKind, bind: IpAddr, peer: SocketAddr) -> io::Result<TcpStream> {
    match kind {
        StreamKind::Tcp | StreamKind::Mptcp => {
            Raw::inet(local_end(bind, peer)).bind(&socket)?;
            Raw::inet(peer).connect(&socket)?;
        }
        StreamKind::Unix => Raw::unix(peer.port()).connect(&socket)?,
        StreamKind::Vsock { cid } => Raw::vsock(cid, peer.port()).connect(&socket)?,
    }
    Ok(TcpStream::from(socket))
}

/// Listens on address `bind`; returns the port. A kind whose ports the kernel does not choose tries those
/// from `first` on.
pub fn listen(socket: &OwnedFd, kind: StreamKind, bind: IpAddr, first: u16) -> io::Result<u16> {
    let from_first = || (0..64).map(|step| first.wrapping_add(step).max(1024));
    let taken = |error: &io::Error| error.kind() == io::ErrorKind::AddrInUse;
    let free = |raw: &dyn Fn(u16) -> Raw| {
        for port in from_first() {
            match raw(port).bind(socket) {
                Err(error) if taken(&error) => {}
                other => return other.map(|()| port),
            }
        }
        Err(io::ErrorKind::AddrInUse.into())
    };
    let port = match kind {
        StreamKind::Tcp | StreamKind::Mptcp => {
            Raw::inet(SocketAddr::new(bind, 0)).bind(socket)?;
            inet_port(socket)?
        }
        StreamKind::Unix => free(&Raw::unix)?,
        StreamKind::Vsock { cid } => {
            let own = if cid == CID_LOCAL { CID_LOCAL } else { libc::VMADDR_CID_ANY };
            free(&|port| Raw::vsock(own, port))?
        }
    };
    // SAFETY: listen takes its arguments by value.
    check(unsafe { libc::listen(socket.as_raw_fd(), BACKLOG) })?;
    Ok(port)
}

fn inet_port(socket: &OwnedFd) -> io::Result<u16> {
    // SAFETY: all zero bytes are a valid sockaddr_storage.
    let mut storage: libc::sockaddr_storage = unsafe { zeroed() };
    let mut length = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `storage`.
    check(unsafe { libc::getsockname(socket.as_raw_fd(), (&raw mut storage).cast(), &raw mut length) })?;
    // SAFETY: the port is at the same place in IPv4 and IPv6 addresses; the storage is large enough for both.
    let port = unsafe { (*(&raw const storage).cast::<libc::sockaddr_in>()).sin_port };
    Ok(u16::from_be(port))
}

/// Accepts one connection, which does not block either.
pub fn accept(socket: &OwnedFd) -> io::Result<TcpStream> {
    let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    let null = std::ptr::null_mut();
    // SAFETY: no address is asked for; accept4 returns a new descriptor, or a negative number.
    let owned =
        unsafe { OwnedFd::from_raw_fd(check(libc::accept4(socket.as_raw_fd(), null, null.cast(), flags))?) };
    Ok(TcpStream::from(owned))
}

/// CPU that handled the last packet of a stream.
pub fn incoming_cpu(socket: &impl AsFd) -> Option<u32> {
    int_option(socket, libc::SOL_SOCKET, libc::SO_INCOMING_CPU).ok().and_then(|cpu| u32::try_from(cpu).ok())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use super::*;
    use crate::socket::{Ready, wait};

    const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn connected(kind: StreamKind) -> io::Result<(TcpStream, TcpStream)> {
        let listener = open(kind, false)?;
        let port = listen(&listener, kind, LOCALHOST, 30_000)?;
        let client = connect(open(kind, false)?, kind, LOCALHOST, SocketAddr::new(LOCALHOST, port))?;
        assert!(wait(&[client.as_fd()], Ready::Writable, Duration::from_secs(60))?);
        client.take_error()?.map_or(Ok(()), Err)?;
        assert!(wait(&[listener.as_fd()], Ready::Readable, Duration::from_secs(60))?);
        let server = accept(&listener)?;
        client.set_nonblocking(false)?;
        server.set_nonblocking(false)?;
        Ok((client, server))
    }

    #[test]
    fn bytes_pass_through_every_kind() {
        for kind in
            [StreamKind::Tcp, StreamKind::Mptcp, StreamKind::Unix, StreamKind::Vsock { cid: CID_LOCAL }]
        {
            match connected(kind) {
                Ok((mut client, mut server)) => {
                    client.write_all(b"hello").unwrap();
                    let mut room = [0; 5];
                    server.read_exact(&mut room).unwrap();
                    assert_eq!(&room, b"hello");
                }
                Err(error) if matches!(kind, StreamKind::Mptcp | StreamKind::Vsock { .. }) => {
                    println!(
                        "SKIPPED bytes_pass_through_every_kind: hardware: {kind:?} is not in this kernel: {error}"
                    );
                }
                Err(error) => panic!("{kind:?}: {error}"),
            }
        }
    }

    #[test]
    fn two_names_in_use_do_not_collide() {
        let (one, two) = (open(StreamKind::Unix, false).unwrap(), open(StreamKind::Unix, false).unwrap());
        let first = listen(&one, StreamKind::Unix, LOCALHOST, 31_000).unwrap();
        assert_ne!(listen(&two, StreamKind::Unix, LOCALHOST, first).unwrap(), first);
    }

    #[test]
    fn the_cpu_of_the_packets_is_known() {
        let (client, mut server) = connected(StreamKind::Tcp).unwrap();
        (&client).write_all(&[1; 100]).unwrap();
        server.read_exact(&mut [0; 100]).unwrap();
        assert!(incoming_cpu(&server).is_some());
        assert_eq!(crate::socket::dropped(&server).unwrap(), 0);
    }
}
