//! Zero-copy sending: `MSG_ZEROCOPY`, `sendfile` from memory, pages through a pipe.
//!
//! In: connected sockets and memory that does not change. Out: bytes accepted, and whether the kernel copied
//! after all. It decides nothing and never retries.

use std::fs::File;
use std::io::{self, Write};
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use crate::socket::set_option;

/// `SO_EE_ORIGIN_ZEROCOPY`: a message about a finished send.
const ORIGIN_ZEROCOPY: u8 = 5;

/// `SO_EE_CODE_ZEROCOPY_COPIED`: the kernel copied.
const COPIED: u8 = 1;

fn count(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Allows `MSG_ZEROCOPY` on a socket.
pub fn allow(socket: &impl AsFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    set_option(socket, libc::SOL_SOCKET, libc::SO_ZEROCOPY, &on)
}

/// Hands memory to the kernel, which sends from it until it reports completion ([`reap`]): the content must
/// not change before.
pub fn send(socket: &impl AsFd, data: &[u8]) -> io::Result<usize> {
    let flags = libc::MSG_ZEROCOPY | libc::MSG_NOSIGNAL;
    // SAFETY: `data` is readable for its length; the pages stay referenced by the kernel as long as it needs
    // them.
    count(unsafe { libc::send(socket.as_fd().as_raw_fd(), data.as_ptr().cast(), data.len(), flags) })
}

/// What the kernel says about earlier sends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reaped {
    /// Sends that are over.
    pub sends: u64,
    /// Of them copied after all.
    pub copied: u64,
}

/// Takes one message about finished sends; none when there is none.
pub fn reap(socket: &impl AsFd) -> io::Result<Option<Reaped>> {
    // Room for a control message with the error and an address behind it, aligned as control messages are.
    let mut control = [0_u64; 16];
    // SAFETY: all zero bytes are a valid msghdr: no name, no data.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    // SAFETY: the message points at `control`, which outlives the call.
    let result = unsafe {
        libc::recvmsg(socket.as_fd().as_raw_fd(), &raw mut message, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT)
    };
    match count(result) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
        Err(error) => return Err(error),
        Ok(_) => {}
    }
    // SAFETY: the kernel filled `control` as far as `msg_controllen` says; CMSG_FIRSTHDR checks that.
    let header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    if header.is_null() {
        return Ok(None);
    }
    // SAFETY: the header lies within `control`.
    let (level, kind, length) =
        unsafe { ((*header).cmsg_level, (*header).cmsg_type, (*header).cmsg_len as usize) };
    let of_errors = (level == libc::SOL_IP && kind == libc::IP_RECVERR)
        || (level == libc::SOL_IPV6 && kind == libc::IPV6_RECVERR);
    if !of_errors || length < size_of::<libc::cmsghdr>() + size_of::<libc::sock_extended_err>() {
        return Ok(None);
    }
    // SAFETY: the length was checked; the data need not be aligned for a read.
    let error: libc::sock_extended_err =
        unsafe { libc::CMSG_DATA(header).cast::<libc::sock_extended_err>().read_unaligned() };
    if error.ee_errno != 0 || error.ee_origin != ORIGIN_ZEROCOPY {
        return Ok(None);
    }
    let sends = u64::from(error.ee_data.wrapping_sub(error.ee_info)) + 1;
    Ok(Some(Reaped { sends, copied: if error.ee_code & COPIED != 0 { sends } else { 0 } }))
}

/// Whether an error says that too many sends are unfinished.
pub fn is_exhausted(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOBUFS)
}

/// A file in memory with this content.
pub fn memory_file(content: &[u8]) -> io::Result<File> {
    // SAFETY: the name is a C string; memfd_create returns a new descriptor or a negative number.
    let raw = unsafe { libc::memfd_create(c"linerate-load".as_ptr(), libc::MFD_CLOEXEC) };
    if raw < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and owned by nobody else.
    let mut file = unsafe { File::from_raw_fd(raw) };
    file.write_all(content)?;
    Ok(file)
}

/// Sends `length` bytes of a file from `offset` on. A peer that hung up raises SIGPIPE in programs that do
/// not ignore it.
pub fn send_file(socket: &impl AsFd, file: &File, offset: u64, length: usize) -> io::Result<usize> {
    let mut offset = i64::try_from(offset).map_err(io::Error::other)?;
    // SAFETY: both descriptors are open; the kernel reads and writes one offset.
    count(unsafe { libc::sendfile(socket.as_fd().as_raw_fd(), file.as_raw_fd(), &raw mut offset, length) })
}

/// A pipe that hands pages of memory to a socket.
#[derive(Debug)]
pub struct PagePipe {
    out: OwnedFd,
    into: OwnedFd,
    held: usize,
}

impl PagePipe {
    /// A pipe for about `bytes`; the kernel may give less.
    pub fn new(bytes: usize) -> io::Result<Self> {
        let mut ends = [0; 2];
        // SAFETY: the kernel writes two descriptors.
        if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) } < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: both descriptors are new and owned by nobody else.
        let (out, into) = unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) };
        let wanted = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
        // SAFETY: the command takes its argument by value. A smaller pipe only costs more calls.
        unsafe { libc::fcntl(into.as_raw_fd(), libc::F_SETPIPE_SZ, wanted) };
        Ok(Self { out, into, held: 0 })
    }

    /// Fills the empty pipe with pages of `data`, whose content must not change, and moves what it holds into
    /// the socket.
    pub fn push(&mut self, socket: &impl AsFd, data: &[u8]) -> io::Result<usize> {
        if self.held == 0 {
            let part = libc::iovec { iov_base: data.as_ptr().cast_mut().cast(), iov_len: data.len() };
            // SAFETY: the part describes `data`; the kernel only references its pages.
            self.held = count(unsafe {
                libc::vmsplice(self.into.as_raw_fd(), &raw const part, 1, libc::SPLICE_F_NONBLOCK)
            })?;
        }
        let null = std::ptr::null_mut();
        let flags = libc::SPLICE_F_MOVE | libc::SPLICE_F_MORE;
        // SAFETY: both descriptors are open; no offsets are given.
        let moved = count(unsafe {
            libc::splice(self.out.as_raw_fd(), null, socket.as_fd().as_raw_fd(), null, self.held, flags)
        })?;
        self.held -= moved.min(self.held);
        Ok(moved)
    }

    /// Bytes in the pipe that are still to be moved.
    pub fn held(&self) -> usize {
        self.held
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    use super::*;
    use crate::pages::Buffer;
    use crate::socket::{Ready, wait};

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    fn content() -> Buffer {
        let mut data = Buffer::new(50_000).unwrap();
        data.iter_mut().enumerate().for_each(|(i, byte)| *byte = i as u8);
        data
    }

    #[test]
    fn bytes_sent_in_place_arrive_and_are_reported() {
        let ((client, mut server), data) = (pair(), content());
        allow(&client).unwrap();
        let sent = send(&client, &data).unwrap();
        let mut room = vec![0; sent];
        server.read_exact(&mut room).unwrap();
        assert_eq!(room, data[..sent]);
        assert!(wait(&[client.as_fd()], Ready::Closed, Duration::from_secs(60)).unwrap());
        assert_eq!(reap(&client).unwrap().map(|reaped| reaped.sends), Some(1));
        assert_eq!(reap(&client).unwrap(), None);
    }

    #[test]
    fn a_file_in_memory_and_a_pipe_of_pages_arrive() {
        let ((client, mut server), data) = (pair(), content());
        let file = memory_file(&data).unwrap();
        let sent = send_file(&client, &file, 100, 20_000).unwrap();
        let mut room = vec![0; sent];
        server.read_exact(&mut room).unwrap();
        assert_eq!(room, data[100..100 + sent]);
        let mut pipe = PagePipe::new(1 << 20).unwrap();
        let mut total = pipe.push(&client, &data).unwrap();
        while pipe.held() > 0 {
            total += pipe.push(&client, &data).unwrap();
        }
        let mut room = vec![0; total];
        server.read_exact(&mut room).unwrap();
        assert_eq!(room, data[..total]);
    }
}
