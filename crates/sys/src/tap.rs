//! TAP devices that carry whole offloaded frames: each frame comes with a virtio-net header, so that a TCP
//! frame of up to 64 kB crosses user space in one piece.
//!
//! In: a device name. Out: a non-blocking descriptor that reads and writes frames, each behind its virtio-net
//! header. It never looks into a frame.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

/// Bytes of the virtio-net header before each frame.
pub const VNET_HEADER_BYTES: usize = 10;
/// Largest frame with its header that a read can return: a GSO packet of 64 KiB, an Ethernet header and room
/// for tags.
pub const FRAME_BYTES_MAX: usize = VNET_HEADER_BYTES + 65536 + 64;

// linux/if_tun.h
const TUNSETIFF: libc::Ioctl = 0x4004_54ca_u32 as libc::Ioctl;
const TUNSETOFFLOAD: libc::Ioctl = 0x4004_54d0_u32 as libc::Ioctl;
const IFF_TAP: libc::c_short = 0x0002;
const IFF_NO_PI: libc::c_short = 0x1000;
const IFF_VNET_HDR: libc::c_short = 0x4000;
const TUN_F_CSUM: libc::c_ulong = 0x01;
const TUN_F_TSO4: libc::c_ulong = 0x02;
const TUN_F_TSO6: libc::c_ulong = 0x04;

/// An open TAP device. The device goes away when this is dropped.
#[derive(Debug)]
pub struct Tap {
    file: File,
}

fn open() -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open("/dev/net/tun")
}

/// Whether this process may ask for TAP devices; makes none.
///
/// # Errors
/// `/dev/net/tun` is missing, or closed to this user.
pub fn is_usable() -> io::Result<()> {
    open().map(drop)
}

impl Tap {
    /// Makes the device `name` in the network namespace of the calling thread.
    ///
    /// # Errors
    /// A name of 0 or more than 15 bytes, no `/dev/net/tun`, or no right to create devices in this namespace.
    pub fn create(name: &str) -> io::Result<Self> {
        if name.is_empty() || name.len() >= libc::IFNAMSIZ || name.contains('\0') {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("device name {name:?}: 1 to 15 bytes wanted"),
            ));
        }
        let file = open()?;
        // SAFETY: an all-zero ifreq is a valid value of that plain C struct.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
        // SAFETY: the request is a valid ifreq that outlives the call; the kernel writes only inside it.
        if unsafe { libc::ioctl(file.as_raw_fd(), TUNSETIFF, &raw mut request) } < 0 {
            return Err(io::Error::last_os_error());
        }
        let offloads = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6;
        // SAFETY: this ioctl takes its argument by value.
        if unsafe { libc::ioctl(file.as_raw_fd(), TUNSETOFFLOAD, offloads) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { file })
    }

    /// Reads one frame with its header. `WouldBlock` when there is none.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        (&self.file).read(buffer)
    }

    /// Writes one frame with its header.
    pub fn write(&self, frame: &[u8]) -> io::Result<usize> {
        (&self.file).write(frame)
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
