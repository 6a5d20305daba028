//! A netlink socket and the parser of netlink messages and attributes.
//!
//! In: a request and its payload. Out: the payloads of the answers, or the kernel's error. Everything
//! received is bounded in size and number and parsed without trust: garbage gives fewer attributes, never a
//! panic. It does not know the meaning of a message.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

/// Request: answer with an acknowledgement.
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLM_F_DUMP: u16 = 0x300;
/// The dump was contended by a change; it must be asked again.
const NLM_F_DUMP_INTR: u16 = 0x10;
/// Create when missing, replace when there.
pub(crate) const NLM_F_REPLACE: u16 = 0x100;
/// See [`NLM_F_REPLACE`].
pub(crate) const NLM_F_CREATE: u16 = 0x400;
/// Add to what is there.
pub(crate) const NLM_F_APPEND: u16 = 0x800;

const NLMSG_NOOP: u16 = 1;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const HEADER_BYTES: usize = 16;
const NETLINK_CAP_ACK: libc::c_int = 10;
const NETLINK_EXT_ACK: libc::c_int = 11;
const NLMSGERR_ATTR_MSG: u16 = 1;
const NLM_F_ACK_TLVS: u16 = 0x200;

/// One datagram of the kernel is never larger than this.
const DATAGRAM_BYTES_MAX: usize = 64 << 10;
/// Most bytes of one answer: a full routing table is cut there.
const ANSWER_BYTES_MAX: usize = 32 << 20;
/// How often a contended dump is asked again.
const DUMP_TRIES: u32 = 4;
/// How long an answer may take.
const ANSWER_SECONDS: libc::time_t = 3;

/// Why the kernel did not answer as hoped.
#[derive(Debug, thiserror::Error)]
pub enum NetlinkError {
    /// The socket failed.
    #[error("netlink socket: {0}")]
    Socket(#[from] io::Error),
    /// The kernel refused.
    #[error("{}{}", reason(*.errno), if .message.is_empty() { String::new() } else { format!(" ({})", .message) })]
    Refused {
        /// Positive errno.
        errno: i32,
        /// The kernel's own words, or empty.
        message: String,
    },
    /// More than what is read.
    #[error("netlink answer larger than {limit} bytes")]
    TooLarge {
        /// Limit.
        limit: usize,
    },
    /// The dump was contended every time.
    #[error("netlink dump interrupted {DUMP_TRIES} times by changes")]
    Contended,
}

fn reason(errno: i32) -> String {
    match errno {
        libc::EOPNOTSUPP => "not offered by the driver".to_string(),
        libc::EPERM => "operation not permitted".to_string(),
        other => {
            let text = io::Error::from_raw_os_error(other).to_string();
            text.split(" (os error").next().unwrap_or_default().to_lowercase()
        }
    }
}

/// One message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// Type.
    pub kind: u16,
    /// Flags.
    pub flags: u16,
    /// Number of the request that it answers.
    pub sequence: u32,
    /// Number of the socket whose request it answers or reports; 0 where the kernel made it by itself.
    pub port: u32,
    /// What follows the header.
    pub payload: &'a [u8],
}

impl Message<'_> {
    /// The process whose request it reports. The kernel gives the first socket of a process the number of the
    /// process, and libnl puts a counter above its 22 bits; other numbers are negative.
    #[must_use]
    pub fn process(&self) -> Option<i32> {
        let port = self.port.cast_signed();
        (port > 0).then_some(port & 0x3f_ffff).filter(|pid| *pid > 0)
    }
}

/// Messages of a datagram; stops at the first one that does not fit.
pub fn messages(datagram: &[u8]) -> impl Iterator<Item = Message<'_>> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        let length = u32_at(rest, 0)? as usize;
        if length < HEADER_BYTES || length > rest.len() {
            return None;
        }
        let message = Message {
            kind: u16_at(rest, 4)?,
            flags: u16_at(rest, 6)?,
            sequence: u32_at(rest, 8)?,
            port: u32_at(rest, 12)?,
            payload: &rest[HEADER_BYTES..length],
        };
        rest = rest.get(align(length)..).unwrap_or_default();
        Some(message)
    })
}

/// One attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// Type without the flags for nesting and byte order.
    pub kind: u16,
    /// Value.
    pub data: &'a [u8],
}

impl<'a> Attribute<'a> {
    /// First byte.
    pub fn u8(&self) -> Option<u8> {
        self.data.first().copied()
    }

    /// Two bytes in network order (ports).
    pub fn u16_network(&self) -> Option<u16> {
        Some(u16::from_be_bytes(self.data.get(..2)?.try_into().ok()?))
    }

    /// Two bytes.
    pub fn u16(&self) -> Option<u16> {
        u16_at(self.data, 0)
    }

    /// Four bytes.
    pub fn u32(&self) -> Option<u32> {
        u32_at(self.data, 0)
    }

    /// One, four or eight bytes as a number.
    pub fn number(&self) -> Option<u64> {
        match self.data.len() {
            1 => self.u8().map(u64::from),
            2 => self.u16().map(u64::from),
            4 => self.u32().map(u64::from),
            8 => Some(u64::from_ne_bytes(self.data.try_into().ok()?)),
            _ => None,
        }
    }

    /// Text up to the first zero.
    pub fn text(&self) -> String {
        let end = self.data.iter().position(|b| *b == 0).unwrap_or(self.data.len());
        String::from_utf8_lossy(&self.data[..end]).into_owned()
    }

    /// Attributes inside.
    pub fn nested(&self) -> impl Iterator<Item = Attribute<'a>> + use<'a> {
        attributes(self.data)
    }
}

/// Attributes of a payload; stops at the first one that does not fit.
pub fn attributes(payload: &[u8]) -> impl Iterator<Item = Attribute<'_>> {
    let mut rest = payload;
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(rest, 0)?);
        let kind = u16_at(rest, 2)? & 0x3fff;
        if length < 4 || length > rest.len() {
            return None;
        }
        let data = &rest[4..length];
        rest = rest.get(align(length)..).unwrap_or_default();
        Some(Attribute { kind, data })
    })
}

/// First attribute of a kind.
pub fn attribute(payload: &[u8], kind: u16) -> Option<Attribute<'_>> {
    attributes(payload).find(|a| a.kind == kind)
}

fn align(length: usize) -> usize {
    (length + 3) & !3
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

pub(crate) fn i32_at(bytes: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// A payload under construction.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Payload {
    bytes: Vec<u8>,
}

impl Payload {
    /// Starts with the fixed header of the protocol.
    pub fn new(header: &[u8]) -> Self {
        let mut payload = Self { bytes: header.to_vec() };
        payload.pad();
        payload
    }

    /// Appends an attribute.
    #[must_use]
    pub fn bytes(mut self, kind: u16, data: &[u8]) -> Self {
        let length = u16::try_from(data.len() + 4).unwrap_or(u16::MAX);
        self.bytes.extend(length.to_ne_bytes());
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend(&data[..usize::from(length) - 4]);
        self.pad();
        self
    }

    /// Appends text with its final zero.
    #[must_use]
    pub fn text(self, kind: u16, text: &str) -> Self {
        let mut data = text.as_bytes().to_vec();
        data.push(0);
        self.bytes(kind, &data)
    }

    /// Appends a number of four bytes.
    #[must_use]
    pub fn u32(self, kind: u16, value: u32) -> Self {
        self.bytes(kind, &value.to_ne_bytes())
    }

    /// Appends the attributes of `inner` inside one.
    #[must_use]
    pub fn nest(self, kind: u16, inner: &Self) -> Self {
        self.bytes(kind | 0x8000, &inner.bytes)
    }

    /// The finished bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn pad(&mut self) {
        self.bytes.resize(align(self.bytes.len()), 0);
    }
}

/// A netlink socket in the network namespace of the thread that opened it.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    sequence: u32,
    buffer: Vec<u8>,
}

impl Socket {
    /// Opens one; `protocol` is `libc::NETLINK_ROUTE` or `libc::NETLINK_GENERIC`.
    pub fn open(protocol: libc::c_int) -> Result<Self, NetlinkError> {
        // SAFETY: plain system call; the result is checked before it becomes an owned descriptor.
        let raw = unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, protocol) };
        if raw < 0 {
            return Err(io::Error::last_os_error().into());
        }
        // SAFETY: `raw` is a fresh descriptor that nobody else owns.
        let fd = unsafe { OwnedFd::from_raw_fd(raw) };
        let socket = Self { fd, sequence: 0, buffer: vec![0; DATAGRAM_BYTES_MAX] };
        let limit = libc::timeval { tv_sec: ANSWER_SECONDS, tv_usec: 0 };
        socket.option(libc::SOL_SOCKET, libc::SO_RCVTIMEO, &limit)?;
        // Both are missing on old kernels, whose errors then come without words.
        let on: libc::c_int = 1;
        let _ = socket.option(libc::SOL_NETLINK, NETLINK_EXT_ACK, &on);
        let _ = socket.option(libc::SOL_NETLINK, NETLINK_CAP_ACK, &on);
        Ok(socket)
    }

    fn option<T>(&self, level: libc::c_int, name: libc::c_int, value: &T) -> io::Result<()> {
        let size = size_of::<T>() as libc::socklen_t;
        // SAFETY: pointer and size describe `value`, which outlives the call.
        let result = unsafe {
            libc::setsockopt(self.fd.as_raw_fd(), level, name, std::ptr::from_ref(value).cast(), size)
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Takes a number: a socket without one gets no messages of groups that answer no request.
    pub(crate) fn bind(&self) -> io::Result<()> {
        // SAFETY: all zeros is a valid address; the kernel chooses the number.
        let mut address: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
        address.nl_family = libc::AF_NETLINK as libc::sa_family_t;
        let size = size_of::<libc::sockaddr_nl>() as libc::socklen_t;
        // SAFETY: pointer and size describe `address`, which outlives the call.
        let bound = unsafe { libc::bind(self.fd.as_raw_fd(), (&raw const address).cast(), size) };
        if bound == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Takes part in a multicast group.
    pub(crate) fn join(&self, group: u32) -> io::Result<()> {
        self.option(libc::SOL_NETLINK, libc::NETLINK_ADD_MEMBERSHIP, &group)
    }

    /// A datagram that is there already; `WouldBlock` where none is.
    pub(crate) fn next_datagram(&mut self) -> io::Result<&[u8]> {
        let (descriptor, length) = (self.fd.as_raw_fd(), self.buffer.len());
        // SAFETY: pointer and length describe the buffer, which outlives the call.
        let got =
            unsafe { libc::recv(descriptor, self.buffer.as_mut_ptr().cast(), length, libc::MSG_DONTWAIT) };
        let got = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
        Ok(&self.buffer[..got])
    }

    /// Asks for everything; `each` gets every message. Asked again when a change contended the dump, so
    /// `each` may see an object twice.
    pub fn dump(
        &mut self,
        kind: u16,
        payload: &Payload,
        mut each: impl FnMut(&Message<'_>),
    ) -> Result<(), NetlinkError> {
        for _ in 0..DUMP_TRIES {
            self.send(kind, NLM_F_DUMP, payload)?;
            if self.receive(&mut each)? {
                return Ok(());
            }
        }
        Err(NetlinkError::Contended)
    }

    /// Sends one request and waits for its acknowledgement; `each` gets what the kernel answers before it.
    pub fn request(
        &mut self,
        kind: u16,
        flags: u16,
        payload: &Payload,
        mut each: impl FnMut(&Message<'_>),
    ) -> Result<(), NetlinkError> {
        self.send(kind, NLM_F_ACK | flags, payload)?;
        self.receive(&mut each).map(drop)
    }

    /// Sends one request between two that open and close a transaction, and waits for its acknowledgement:
    /// what nftables takes.
    pub fn transaction(
        &mut self,
        kind: u16,
        flags: u16,
        payload: &Payload,
        frame: (u16, u16, &Payload),
    ) -> Result<(), NetlinkError> {
        let (begin, end, of_frame) = frame;
        self.sequence = self.sequence.wrapping_add(1);
        let mut all = self.message(begin, 0, of_frame);
        all.extend(self.message(kind, NLM_F_ACK | flags, payload));
        all.extend(self.message(end, 0, of_frame));
        self.transmit(&all)?;
        self.receive(&mut |_| {}).map(drop)
    }

    fn send(&mut self, kind: u16, flags: u16, payload: &Payload) -> Result<(), NetlinkError> {
        self.sequence = self.sequence.wrapping_add(1);
        self.transmit(&self.message(kind, flags, payload))
    }

    fn message(&self, kind: u16, flags: u16, payload: &Payload) -> Vec<u8> {
        let length = (HEADER_BYTES + payload.bytes.len()) as u32;
        let mut message = Vec::with_capacity(length as usize);
        message.extend(length.to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend((NLM_F_REQUEST | flags).to_ne_bytes());
        message.extend(self.sequence.to_ne_bytes());
        message.extend(0_u32.to_ne_bytes());
        message.extend(&payload.bytes);
        message
    }

    fn transmit(&self, message: &[u8]) -> Result<(), NetlinkError> {
        // SAFETY: pointer and length describe `message`, which outlives the call.
        let sent = unsafe { libc::send(self.fd.as_raw_fd(), message.as_ptr().cast(), message.len(), 0) };
        if sent < 0 { Err(io::Error::last_os_error().into()) } else { Ok(()) }
    }

    /// Reads until the answer is complete. `false`: the dump was contended.
    fn receive(&mut self, each: &mut dyn FnMut(&Message<'_>)) -> Result<bool, NetlinkError> {
        let mut total = 0;
        let mut uncontended = true;
        loop {
            // SAFETY: pointer and length describe the buffer, which outlives the call.
            let got = unsafe {
                libc::recv(
                    self.fd.as_raw_fd(),
                    self.buffer.as_mut_ptr().cast(),
                    self.buffer.len(),
                    libc::MSG_TRUNC,
                )
            };
            let got = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
            total += got;
            if got > self.buffer.len() || total > ANSWER_BYTES_MAX {
                return Err(NetlinkError::TooLarge { limit: ANSWER_BYTES_MAX });
            }
            for message in messages(&self.buffer[..got]).filter(|m| m.sequence == self.sequence) {
                uncontended &= message.flags & NLM_F_DUMP_INTR == 0;
                match message.kind {
                    NLMSG_NOOP => {}
                    NLMSG_DONE => return end(&message).map(|()| uncontended),
                    NLMSG_ERROR => return end(&message).map(|()| true),
                    _ => each(&message),
                }
            }
        }
    }
}

/// The last message of an answer: an errno (0 for success) and, from new kernels, words.
fn end(message: &Message<'_>) -> Result<(), NetlinkError> {
    let errno = i32_at(message.payload, 0).unwrap_or(0).saturating_neg();
    if errno <= 0 {
        return Ok(());
    }
    // After the errno an error repeats the header of the request (capped), a done message does not.
    let at = if message.kind == NLMSG_ERROR { 4 + HEADER_BYTES } else { 4 };
    let words = message.payload.get(at..).filter(|_| message.flags & NLM_F_ACK_TLVS != 0);
    let message = words.and_then(|w| attribute(w, NLMSGERR_ATTR_MSG)).map(|a| a.text()).unwrap_or_default();
    Err(NetlinkError::Refused { errno, message })
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let mut seen = 0;
            for message in messages(&bytes) {
                seen += message.payload.len();
                let _ = end(&message);
            }
            for outer in attributes(&bytes) {
                seen += outer.data.len();
                let _ = (outer.u8(), outer.u16(), outer.u32(), outer.number(), outer.text(), outer.u16_network());
                seen += outer.nested().map(|a| a.data.len()).sum::<usize>();
            }
            prop_assert!(seen <= bytes.len() * 3);
        }

        #[test]
        fn what_is_built_is_parsed(parts in proptest::collection::vec((1_u16..1000, proptest::collection::vec(any::<u8>(), 0..50)), 0..20)) {
            let payload = parts.iter().fold(Payload::default(), |p, (kind, data)| p.bytes(*kind, data));
            let nested = Payload::default().nest(7, &payload);
            let outer = attribute(&nested.bytes, 7).unwrap();
            let back: Vec<_> = outer.nested().map(|a| (a.kind, a.data.to_vec())).collect();
            prop_assert_eq!(back, parts);
        }
    }

    #[test]
    fn an_oversized_attribute_is_cut_not_wrapped() {
        let payload = Payload::default().bytes(1, &vec![7; 100_000]);
        assert_eq!(attribute(&payload.bytes, 1).unwrap().data.len(), usize::from(u16::MAX) - 4);
    }
}
