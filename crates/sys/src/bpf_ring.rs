//! Records of eBPF programs: the ring buffer of the kernel (`BPF_MAP_TYPE_RINGBUF`, Linux 5.8,
//! `Documentation/bpf/ringbuf.rst`).
//!
//! In: a map of that kind. Out: its records, in their order; the descriptor is readable while there are some.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::bpf::{BpfMap, MapKind};

/// Not handed over yet (`BPF_RINGBUF_BUSY_BIT`).
const BUSY: u32 = 1 << 31;
/// Given back without content (`BPF_RINGBUF_DISCARD_BIT`).
const DISCARDED: u32 = 1 << 30;
/// Length and an offset of the kernel before each record.
const HEADER_BYTES: usize = 8;

/// Memory that is shared with the kernel.
#[derive(Debug)]
struct Shared {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to this value alone; positions in it are accessed as atomics.
unsafe impl Send for Shared {}

impl Shared {
    fn map(map: &BpfMap, bytes: usize, protection: libc::c_int, offset: usize) -> io::Result<Self> {
        let (of, at) = (map.as_fd().as_raw_fd(), offset as libc::off_t);
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory in use.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, libc::MAP_SHARED, of, at) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, bytes })
    }

    /// The position that stands first in a mapping.
    fn position(&self) -> &AtomicUsize {
        // SAFETY: the mapping begins at a page, has at least one, and lives as long as `self`.
        unsafe { self.start.cast().as_ref() }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this start and size and is not used after.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// A ring buffer.
#[derive(Debug)]
pub struct BpfRing {
    map: BpfMap,
    /// How far it is read: ours to write.
    read: Shared,
    /// How far it is written, then the records twice in a row, so that each is in one piece.
    written: Shared,
    page: usize,
    bytes: usize,
}

impl BpfRing {
    /// Makes one of so many bytes, a power of two of whole pages.
    ///
    /// # Errors
    /// No right, or a kernel that does not know it.
    pub fn new(bytes: u32) -> io::Result<Self> {
        let map = BpfMap::new(MapKind::Ring, 0, 0, bytes)?;
        // SAFETY: takes a number and touches no memory.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).map_err(io::Error::other)?;
        let bytes = bytes as usize;
        let read = Shared::map(&map, page, libc::PROT_READ | libc::PROT_WRITE, 0)?;
        let written = Shared::map(&map, page + 2 * bytes, libc::PROT_READ, page)?;
        Ok(Self { map, read, written, page, bytes })
    }

    /// The map, for programs.
    pub fn map(&self) -> BorrowedFd<'_> {
        self.map.as_fd()
    }

    /// Records since the last call, up to the last one that was written when it began: a program that writes
    /// all the time does not keep it.
    pub fn drain(&mut self, mut each: impl FnMut(&[u8])) {
        let end = self.written.position().load(Ordering::Acquire);
        let mut at = self.read.position().load(Ordering::Relaxed);
        while at < end {
            let offset = self.page + (at & (self.bytes - 1));
            // SAFETY: the offset is below one page and the size of the ring, both mapped, and a multiple of
            // eight: the kernel begins records there.
            let header: &AtomicU32 = unsafe { self.written.start.add(offset).cast().as_ref() };
            let header = header.load(Ordering::Acquire);
            if header & BUSY != 0 {
                return;
            }
            let length = (header & !DISCARDED) as usize;
            let whole = (HEADER_BYTES + length).next_multiple_of(8);
            if whole > self.bytes {
                // No record of the kernel is longer than the ring.
                return;
            }
            if header & DISCARDED == 0 {
                // SAFETY: a record that begins in the first copy of the ring ends in the second one; the
                // kernel does not write to it before the position below passes it.
                let record = unsafe {
                    let start = self.written.start.add(offset + HEADER_BYTES);
                    std::slice::from_raw_parts(start.as_ptr(), length)
                };
                each(record);
            }
            at += whole;
            self.read.position().store(at, Ordering::Release);
        }
    }
}

impl AsFd for BpfRing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.map.as_fd()
    }
}
