//! Socket calls that the standard library lacks: connecting from a chosen address, discarding reads, batches
//! of datagrams, path MTU probing, and the options that a measurement needs.
//!
//! In: sockets, buffers. Out: the kernel's answer. It decides nothing, never retries and never prints.
//! Nothing here raises SIGPIPE.

use std::io;
use std::mem::{size_of, zeroed};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// Datagrams that one call sends or receives at most.
pub const BATCH_MAX: usize = 64;

/// `SK_MEMINFO_DROPS`: index of the drop count in what `SO_MEMINFO` returns.
const MEMINFO_DROPS: usize = 8;

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn count(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// An address as the kernel wants it, with its length.
pub(crate) fn raw_address(address: SocketAddr) -> (libc::sockaddr_storage, libc::socklen_t) {
    // SAFETY: all zero bytes are a valid sockaddr_storage.
    let mut storage: libc::sockaddr_storage = unsafe { zeroed() };
    let length = match address {
        SocketAddr::V4(v4) => {
            let raw = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(v4.ip().octets()) },
                sin_zero: [0; 8],
            };
            // SAFETY: sockaddr_storage is large enough and aligned for every socket address.
            unsafe { (&raw mut storage).cast::<libc::sockaddr_in>().write(raw) };
            size_of::<libc::sockaddr_in>()
        }
        SocketAddr::V6(v6) => {
            let raw = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: v6.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                sin6_scope_id: v6.scope_id(),
            };
            // SAFETY: as above.
            unsafe { (&raw mut storage).cast::<libc::sockaddr_in6>().write(raw) };
            size_of::<libc::sockaddr_in6>()
        }
    };
    (storage, length as libc::socklen_t)
}

/// The local end for a connection to `peer`: address `bind`, any port, the peer's zone for link-local
/// addresses.
pub fn local_end(bind: IpAddr, peer: SocketAddr) -> SocketAddr {
    let mut local = SocketAddr::new(bind, 0);
    if let (SocketAddr::V6(local), SocketAddr::V6(peer)) = (&mut local, peer) {
        local.set_scope_id(peer.scope_id());
    }
    local
}

/// Starts a TCP connection from address `bind` to `peer` and returns at once, non-blocking. It is ready, or
/// failed (`take_error`), when it becomes writable.
pub fn connect_start(bind: IpAddr, peer: SocketAddr) -> io::Result<TcpStream> {
    let family = if peer.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: socket returns a new descriptor, or a negative number that `check` turns into an error.
    let owned = unsafe { OwnedFd::from_raw_fd(check(libc::socket(family, kind, 0))?) };
    let (address, length) = raw_address(local_end(bind, peer));
    // SAFETY: the address is valid for `length` bytes during the call.
    check(unsafe { libc::bind(owned.as_raw_fd(), (&raw const address).cast(), length) })?;
    let (address, length) = raw_address(peer);
    // SAFETY: as above.
    match check(unsafe { libc::connect(owned.as_raw_fd(), (&raw const address).cast(), length) }) {
        Ok(_) => {}
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
        Err(error) => return Err(error),
    }
    Ok(TcpStream::from(owned))
}

/// What a wait is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ready {
    /// Something to read, or an end.
    Readable,
    /// Room to write, or a connection made or failed.
    Writable,
    /// Only that both directions are closed, or an error.
    Closed,
}

/// Waits until one of the sockets is ready or the time is over; true when one is.
pub fn wait(sockets: &[BorrowedFd<'_>], ready: Ready, timeout: Duration) -> io::Result<bool> {
    let events = match ready {
        Ready::Readable => libc::POLLIN,
        Ready::Writable => libc::POLLOUT,
        Ready::Closed => 0,
    };
    let mut list: Vec<libc::pollfd> =
        sockets.iter().map(|fd| libc::pollfd { fd: fd.as_raw_fd(), events, revents: 0 }).collect();
    // Rounded up: a rest below a millisecond must not become a busy loop.
    let milliseconds = i32::try_from(timeout.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
    // SAFETY: `list` holds `list.len()` entries that outlive the call.
    match check(unsafe { libc::poll(list.as_mut_ptr(), list.len() as libc::nfds_t, milliseconds) }) {
        Ok(number) => Ok(number > 0),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
        Err(error) => Err(error),
    }
}

/// Takes bytes of a TCP stream out of the kernel without copying them: at most `room.len()`, whose content
/// stays as it is or becomes arbitrary. 0 at the end of the stream.
pub fn receive_discarding(stream: &TcpStream, room: &mut [u8]) -> io::Result<usize> {
    // SAFETY: `room` is writable for its length, should the kernel copy after all.
    count(unsafe { libc::recv(stream.as_raw_fd(), room.as_mut_ptr().cast(), room.len(), libc::MSG_TRUNC) })
}

pub(crate) fn set_option<T>(
    socket: &impl AsFd,
    level: libc::c_int,
    name: libc::c_int,
    value: &T,
) -> io::Result<()> {
    // SAFETY: `value` is valid for the size of T during the call; callers pass plain C values.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    check(result).map(|_| ())
}

pub(crate) fn int_option(
    socket: &impl AsFd,
    level: libc::c_int,
    name: libc::c_int,
) -> io::Result<libc::c_int> {
    let mut value: libc::c_int = 0;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the kernel writes at most one int into `value`.
    let result = unsafe {
        libc::getsockopt(socket.as_fd().as_raw_fd(), level, name, (&raw mut value).cast(), &raw mut length)
    };
    check(result).map(|_| value)
}

/// Closing the stream sends a reset and leaves no TIME_WAIT behind.
pub fn reset_on_close(stream: &TcpStream) -> io::Result<()> {
    set_option(stream, libc::SOL_SOCKET, libc::SO_LINGER, &libc::linger { l_onoff: 1, l_linger: 0 })
}

/// A reader is woken only when so many bytes are there.
pub fn set_wake_bytes(stream: &TcpStream, bytes: u32) -> io::Result<()> {
    set_option(stream, libc::SOL_SOCKET, libc::SO_RCVLOWAT, &bytes)
}

/// A writer may queue only so many bytes that were not sent yet.
pub fn set_unsent_bytes(stream: &TcpStream, bytes: u32) -> io::Result<()> {
    set_option(stream, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, &bytes)
}

/// Receive buffer as the kernel counts it, bytes.
pub fn receive_buffer(socket: &impl AsFd) -> io::Result<u64> {
    int_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUF).map(|bytes| u64::try_from(bytes).unwrap_or(0))
}

/// Send buffer as the kernel counts it, bytes.
pub fn send_buffer(socket: &impl AsFd) -> io::Result<u64> {
    int_option(socket, libc::SOL_SOCKET, libc::SO_SNDBUF).map(|bytes| u64::try_from(bytes).unwrap_or(0))
}

/// Asks for a receive buffer, beyond the host's limit where the rights allow it.
pub fn set_receive_buffer(socket: &UdpSocket, bytes: u32) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &bytes)
        .or_else(|_| set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, &bytes))
}

/// Bytes in the send queue of a stream that the peer has not acknowledged.
pub fn unacknowledged(stream: &TcpStream) -> io::Result<u64> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: SIOCOUTQ writes one int.
    check(unsafe { libc::ioctl(stream.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) })?;
    Ok(u64::try_from(bytes).unwrap_or(0))
}

/// Packets that the kernel dropped because the socket buffer was full.
pub fn dropped(socket: &impl AsFd) -> io::Result<u64> {
    let mut values = [0_u32; MEMINFO_DROPS + 1];
    let mut length = size_of_val(&values) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `values`.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            values.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    check(result)?;
    if (length as usize) < size_of_val(&values) {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "this kernel does not count drops of a socket",
        ));
    }
    Ok(u64::from(values[MEMINFO_DROPS]))
}

/// Datagrams are sent unfragmented or not at all, whatever path MTU the kernel remembers.
pub fn set_mtu_probing(socket: &UdpSocket, ipv6: bool) -> io::Result<()> {
    if ipv6 {
        let probe: libc::c_int = libc::IPV6_PMTUDISC_PROBE;
        set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, &probe)?;
        let on: libc::c_int = 1;
        set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_DONTFRAG, &on)
    } else {
        let probe: libc::c_int = libc::IP_PMTUDISC_PROBE;
        set_option(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, &probe)
    }
}

/// Path MTU that the kernel knows for a connected socket, bytes.
pub fn path_mtu(socket: &UdpSocket, ipv6: bool) -> io::Result<u32> {
    let value = if ipv6 {
        int_option(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU)
    } else {
        int_option(socket, libc::IPPROTO_IP, libc::IP_MTU)
    }?;
    u32::try_from(value).map_err(io::Error::other)
}

/// Whether an error says that a datagram is larger than the path takes.
pub fn is_too_large(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EMSGSIZE)
}

/// Whether an error says that the send queue is full for now.
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ENOBUFS))
}

/// Sends `data` on a connected socket as datagrams of `size` bytes each, at most [`BATCH_MAX`]; returns how
/// many went.
pub fn send_batch(socket: &UdpSocket, data: &[u8], size: usize) -> io::Result<usize> {
    let mut parts: Vec<libc::iovec> = data
        .chunks_exact(size.max(1))
        .take(BATCH_MAX)
        .map(|part| libc::iovec { iov_base: part.as_ptr().cast_mut().cast(), iov_len: part.len() })
        .collect();
    let mut messages = messages_of(&mut parts);
    // SAFETY: every message points at one entry of `parts`, which points into `data`; both outlive the call,
    // and the kernel only reads from them.
    let result = unsafe {
        libc::sendmmsg(
            socket.as_raw_fd(),
            messages.as_mut_ptr(),
            messages.len() as libc::c_uint,
            libc::MSG_NOSIGNAL,
        )
    };
    count(result as isize)
}

/// One message per part.
fn messages_of(parts: &mut [libc::iovec]) -> Vec<libc::mmsghdr> {
    parts
        .iter_mut()
        .map(|part| {
            // SAFETY: all zero bytes are a valid mmsghdr: no name, no control data.
            let mut message: libc::mmsghdr = unsafe { zeroed() };
            message.msg_hdr.msg_iov = std::ptr::from_mut(part);
            message.msg_hdr.msg_iovlen = 1;
            message
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};

    use super::*;

    fn connected(address: &str) -> io::Result<(TcpStream, TcpStream)> {
        let listener = TcpListener::bind(address)?;
        let peer = listener.local_addr()?;
        let client = connect_start(peer.ip(), peer)?;
        assert!(wait(&[client.as_fd()], Ready::Writable, Duration::from_secs(60))?);
        assert!(client.take_error()?.is_none());
        client.set_nonblocking(false)?;
        let (server, from) = listener.accept()?;
        assert_eq!(from.ip(), peer.ip());
        Ok((client, server))
    }

    #[test]
    fn a_connection_is_made_counted_and_reset_in_both_families() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            // A machine without IPv6 cannot run the second half.
            let Ok((mut client, server)) = connected(address) else {
                assert!(address.starts_with('['));
                continue;
            };
            client.write_all(&[1; 5000]).unwrap();
            let mut room = vec![0; 65536];
            let mut total = 0;
            while total < 5000 {
                total += receive_discarding(&server, &mut room).unwrap();
            }
            assert_eq!(total, 5000);
            set_wake_bytes(&server, 4096).unwrap();
            set_unsent_bytes(&client, 65536).unwrap();
            assert!(receive_buffer(&server).unwrap() > 0 && send_buffer(&client).unwrap() > 0);
            reset_on_close(&client).unwrap();
            drop(client);
            assert!(wait(&[server.as_fd()], Ready::Closed, Duration::from_secs(60)).unwrap());
        }
    }

    #[test]
    fn a_batch_of_datagrams_arrives_with_its_lengths() {
        let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        receiver.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        assert_eq!(send_batch(&sender, &[9; 3000], 1000).unwrap(), 3);
        let mut inbox = crate::datagram::Trains::new(BATCH_MAX, 16);
        let mut seen = 0;
        while seen < 3 {
            seen += inbox.receive(&receiver).unwrap();
            assert!(inbox.iter().all(|unit| unit.bytes == [9; 16] && unit.length == 1000));
        }
        set_receive_buffer(&receiver, 1 << 20).unwrap();
        assert_eq!(dropped(&receiver).unwrap(), 0);
        set_mtu_probing(&sender, false).unwrap();
        assert!(path_mtu(&sender, false).unwrap() > 0);
    }

    #[test]
    fn the_zone_of_a_link_local_peer_is_taken_over() {
        let peer = SocketAddr::V6(std::net::SocketAddrV6::new(Ipv6Addr::LOCALHOST, 5, 0, 7));
        let SocketAddr::V6(local) = local_end(IpAddr::V6(Ipv6Addr::LOCALHOST), peer) else {
            panic!("family")
        };
        assert_eq!((local.scope_id(), local.port()), (7, 0));
    }
}
