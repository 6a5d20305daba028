//! Frames of one protocol below IP, as neighbours send them to a group address.
//!
//! In: a protocol number, devices by index. Out: the payload of each frame with the device that received it.
//! It decides nothing; every wait has a timeout.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// A socket for the frames of one protocol in the network namespace of the thread that opened it. Needs root.
#[derive(Debug)]
pub struct PacketSocket {
    fd: OwnedFd,
    protocol: u16,
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

impl PacketSocket {
    /// Opens it for an EtherType.
    ///
    /// # Errors
    /// No right to see frames.
    pub fn open(protocol: u16) -> io::Result<Self> {
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: a plain system call; the result is checked before it becomes an owned descriptor.
        let fd = unsafe { libc::socket(libc::AF_PACKET, kind, libc::c_int::from(protocol.to_be())) };
        check(fd)?;
        // SAFETY: `fd` is fresh and nobody else owns it.
        Ok(Self { fd: unsafe { OwnedFd::from_raw_fd(fd) }, protocol })
    }

    /// Lets the device with this index take frames to a group address, as long as the socket is open.
    ///
    /// # Errors
    /// No such device.
    pub fn join(&self, index: u32, group: [u8; 6]) -> io::Result<()> {
        let mut address = [0; 8];
        address[..6].copy_from_slice(&group);
        let request = libc::packet_mreq {
            mr_ifindex: index as libc::c_int,
            mr_type: libc::PACKET_MR_MULTICAST as libc::c_ushort,
            mr_alen: 6,
            mr_address: address,
        };
        // SAFETY: `request` is valid for its size during the call.
        check(unsafe {
            libc::setsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_ADD_MEMBERSHIP,
                (&raw const request).cast(),
                size_of::<libc::packet_mreq>() as libc::socklen_t,
            )
        })
    }

    /// The payload of the next frame and the index of its device; `None` when none came in time.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn receive(&self, buffer: &mut [u8], wait: Duration) -> io::Result<Option<(u32, usize)>> {
        let mut poll = libc::pollfd { fd: self.fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let wait_ms = libc::c_int::try_from(wait.as_millis()).unwrap_or(libc::c_int::MAX);
        // SAFETY: one descriptor, valid during the call.
        let ready = unsafe { libc::poll(&raw mut poll, 1, wait_ms) };
        if ready < 0 && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted {
            return Ok(None);
        }
        check(ready)?;
        // SAFETY: all zeroes is a valid address to be filled in.
        let mut from: libc::sockaddr_ll = unsafe { zeroed() };
        let mut length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: buffer and address are valid for the sizes that are passed.
        let count = unsafe {
            libc::recvfrom(
                self.fd.as_raw_fd(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                0,
                (&raw mut from).cast(),
                &raw mut length,
            )
        };
        if count >= 0 {
            return Ok(Some((from.sll_ifindex as u32, count as usize)));
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            // A device that went down says so once.
            Some(libc::EAGAIN | libc::EINTR | libc::ENETDOWN) => Ok(None),
            _ => Err(error),
        }
    }

    /// Sends a payload out of a device to a group address: how the tests of listeners speak.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn send(&self, index: u32, group: [u8; 6], payload: &[u8]) -> io::Result<()> {
        // SAFETY: all zeroes is a valid address.
        let mut to: libc::sockaddr_ll = unsafe { zeroed() };
        to.sll_family = libc::AF_PACKET as libc::c_ushort;
        to.sll_protocol = self.protocol.to_be();
        to.sll_ifindex = index as libc::c_int;
        to.sll_halen = 6;
        to.sll_addr[..6].copy_from_slice(&group);
        // SAFETY: payload and address are valid for the sizes that are passed.
        let sent = unsafe {
            libc::sendto(
                self.fd.as_raw_fd(),
                payload.as_ptr().cast(),
                payload.len(),
                0,
                (&raw const to).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}
