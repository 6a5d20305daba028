//! Datagram sockets beyond one datagram per call: segmentation and receive offload, kernel timestamps,
//! trains.
//!
//! In: sockets, buffers. Out: the kernel's answer. It decides nothing, never retries, never prints.

use std::io;
use std::mem::{size_of, zeroed};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::socket::set_option;

/// Segments that the kernel cuts one write into at most (`UDP_MAX_SEGMENTS` before Linux 6.11; 128 since).
pub const SEGMENTS_MAX: usize = 64;

/// Payload of one write at most: an IPv4 packet of 65,535 bytes less its headers.
pub const WRITE_MAX: usize = 65_507;

/// Room for the control data of one message: a time stamp and a segment size, 56 bytes on 64-bit machines.
const CONTROL_WORDS: usize = 12;

/// From now on one write is cut into datagrams of this payload (the last may be shorter); 0 switches it off.
/// Linux 4.18.
pub fn set_segment_bytes(socket: &UdpSocket, bytes: u16) -> io::Result<()> {
    set_option(socket, libc::SOL_UDP, libc::UDP_SEGMENT, &libc::c_int::from(bytes))
}

/// From now on one read may give several datagrams of the same size glued together. Linux 5.0.
pub fn set_receive_offload(socket: &UdpSocket, on: bool) -> io::Result<()> {
    set_option(socket, libc::SOL_UDP, libc::UDP_GRO, &libc::c_int::from(on))
}

/// Enables receive timestamps: every read returns when the kernel took the datagram from the device.
pub fn set_time_stamps(socket: &UdpSocket) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &(1 as libc::c_int))
}

/// Sleeps of the calling thread end as exactly as the kernel can; by default they may be 50 us late.
pub fn sleep_exactly() {
    // SAFETY: PR_SET_TIMERSLACK takes one number and touches no memory. It cannot fail for the calling
    // thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_000 as libc::c_ulong) };
}

/// Whether an error says that the path out cannot cut writes into segments: no checksum offload, segments
/// above the MTU.
pub fn is_no_offload(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EIO | libc::EINVAL | libc::EMSGSIZE | libc::EOPNOTSUPP))
}

/// One read: a datagram, or several of the same size glued together.
#[derive(Debug, Clone, Copy)]
pub struct DatagramRead<'a> {
    /// The bytes that were kept.
    pub bytes: &'a [u8],
    /// Bytes that came.
    pub length: usize,
    /// Payload of each datagram in it; the last may be shorter.
    pub segment: usize,
    /// When the kernel took it, Unix nanoseconds.
    pub taken_ns: Option<i64>,
}

#[derive(Debug, Clone, Copy)]
struct Kept {
    length: usize,
    segment: Option<usize>,
    taken_ns: Option<i64>,
}

/// Room for several reads in one call.
pub struct Trains {
    room: Vec<u8>,
    slot: usize,
    control: Vec<[u64; CONTROL_WORDS]>,
    kept: Vec<Kept>,
}

impl Trains {
    /// For `units` reads, of which the first `slot` bytes are kept.
    pub fn new(units: usize, slot: usize) -> Self {
        let (units, slot) = (units.max(1), slot.max(1));
        Self {
            room: vec![0; units * slot],
            slot,
            control: vec![[0; CONTROL_WORDS]; units],
            kept: Vec::with_capacity(units),
        }
    }

    /// Waits for at least one datagram (as long as the socket's read timeout says) and takes all that are
    /// there and fit.
    pub fn receive(&mut self, socket: &UdpSocket) -> io::Result<usize> {
        self.kept.clear();
        let mut parts: Vec<libc::iovec> = self
            .room
            .chunks_exact_mut(self.slot)
            .map(|part| libc::iovec { iov_base: part.as_mut_ptr().cast(), iov_len: part.len() })
            .collect();
        let mut messages: Vec<libc::mmsghdr> = parts
            .iter_mut()
            .zip(&mut self.control)
            .map(|(part, control)| {
                // SAFETY: all zero bytes are a valid mmsghdr.
                let mut message: libc::mmsghdr = unsafe { zeroed() };
                message.msg_hdr.msg_iov = std::ptr::from_mut(part);
                message.msg_hdr.msg_iovlen = 1;
                message.msg_hdr.msg_control = control.as_mut_ptr().cast();
                message.msg_hdr.msg_controllen = size_of_val(control) as _;
                message
            })
            .collect();
        // SAFETY: every message points at one entry of `parts`, which points into `self.room`, and at one
        // entry of `self.control`; all outlive the call and nothing else looks at them meanwhile.
        let result = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                messages.as_mut_ptr(),
                messages.len() as libc::c_uint,
                libc::MSG_WAITFORONE | libc::MSG_TRUNC,
                std::ptr::null_mut(),
            )
        };
        let number = usize::try_from(result).map_err(|_| io::Error::last_os_error())?;
        for message in messages.iter().take(number) {
            let mut kept = Kept { length: message.msg_len as usize, segment: None, taken_ns: None };
            read_control(&message.msg_hdr, &mut kept);
            self.kept.push(kept);
        }
        Ok(number)
    }

    /// What the last [`Self::receive`] took.
    pub fn iter(&self) -> impl Iterator<Item = DatagramRead<'_>> {
        self.room.chunks_exact(self.slot).zip(&self.kept).map(|(part, kept)| DatagramRead {
            bytes: &part[..kept.length.min(self.slot)],
            length: kept.length,
            segment: kept.segment.unwrap_or(kept.length),
            taken_ns: kept.taken_ns,
        })
    }
}

fn read_control(header: &libc::msghdr, kept: &mut Kept) {
    // SAFETY: the kernel filled `msg_control` up to `msg_controllen`, and both live as long as `header`;
    // CMSG_FIRSTHDR and CMSG_NXTHDR stay inside. Each value is read only where its length says that it is
    // there, from any alignment.
    unsafe {
        let mut at = libc::CMSG_FIRSTHDR(header);
        while let Some(part) = at.as_ref() {
            let data = libc::CMSG_DATA(at);
            let has = |bytes: usize| part.cmsg_len >= libc::CMSG_LEN(bytes as u32) as _;
            match (part.cmsg_level, part.cmsg_type) {
                (libc::SOL_UDP, libc::UDP_GRO) if has(size_of::<libc::c_int>()) => {
                    let size = data.cast::<libc::c_int>().read_unaligned();
                    kept.segment = usize::try_from(size).ok().filter(|size| *size > 0);
                }
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) if has(size_of::<libc::timespec>()) => {
                    let time = data.cast::<libc::timespec>().read_unaligned();
                    kept.taken_ns = time.tv_sec.checked_mul(1_000_000_000).map(|ns| ns + time.tv_nsec);
                }
                _ => {}
            }
            at = libc::CMSG_NXTHDR(header, at);
        }
    }
}

/// The time of day on the clock of the kernel's time stamps, Unix nanoseconds.
pub fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn pair() -> (UdpSocket, UdpSocket) {
        let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        receiver.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        (sender, receiver)
    }

    fn received(receiver: &UdpSocket, bytes: usize) -> Vec<(usize, usize)> {
        let mut trains = Trains::new(8, 65_536);
        let (mut seen, mut units) = (0, Vec::new());
        while seen < bytes {
            trains.receive(receiver).unwrap();
            for unit in trains.iter() {
                assert!(unit.bytes.iter().all(|byte| *byte == 7) && unit.bytes.len() == unit.length);
                seen += unit.length;
                units.push((unit.length, unit.segment));
            }
        }
        units
    }

    #[test]
    fn one_write_becomes_datagrams_and_one_read_takes_several() {
        let (sender, receiver) = pair();
        if let Err(error) = set_segment_bytes(&sender, 100) {
            println!("SKIPPED one_write_becomes_datagrams: no segmentation offload: {error}");
            return;
        }
        assert_eq!(sender.send(&[7; 250]).unwrap(), 250);
        assert_eq!(received(&receiver, 250), [(100, 100), (100, 100), (50, 50)]);
        set_receive_offload(&receiver, true).unwrap();
        sender.send(&[7; 250]).unwrap();
        assert_eq!(received(&receiver, 250), [(250, 100)]);
        set_segment_bytes(&sender, 0).unwrap();
        sender.send(&[7; 250]).unwrap();
        assert_eq!(received(&receiver, 250), [(250, 250)]);
    }

    #[test]
    fn a_datagram_tells_when_it_came() {
        let (sender, receiver) = pair();
        set_time_stamps(&receiver).unwrap();
        sleep_exactly();
        let before = now_ns();
        sender.send(&[1; 500]).unwrap();
        let mut trains = Trains::new(2, 16);
        assert_eq!(trains.receive(&receiver).unwrap(), 1);
        let unit = trains.iter().next().unwrap();
        assert_eq!((unit.bytes, unit.length, unit.segment), (&[1; 16][..], 500, 500));
        let taken = unit.taken_ns.expect("the kernel stamps");
        assert!(before <= taken && taken <= now_ns());
    }
}
