//! Memory for large reads and writes: reserved huge pages, else transparent ones where available, else plain.
//!
//! In: a size. Out: zeroed bytes, and the kind of pages. It prints nothing.

use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Usual size of a huge page; the buffer is a multiple of it, because `MAP_HUGETLB` demands that.
pub const HUGE_BYTES: usize = 2 << 20;

/// Which pages a buffer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    /// Reserved huge pages (`MAP_HUGETLB`).
    Huge,
    /// Plain ones that the kernel was asked to make huge (`MADV_HUGEPAGE`); it may or may not.
    Transparent,
    /// Plain ones.
    Plain,
}

impl Pages {
    /// Short name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Huge => "huge",
            Self::Transparent => "transparent",
            Self::Plain => "plain",
        }
    }
}

/// Zeroed memory of its own mapping.
#[derive(Debug)]
pub struct Buffer {
    start: NonNull<u8>,
    length: usize,
    mapped: usize,
    pages: Pages,
}

// SAFETY: the mapping belongs to the buffer alone; shared access is by `&[u8]` only.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

fn map(bytes: usize, flags: libc::c_int) -> io::Result<NonNull<u8>> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags;
    // SAFETY: a new anonymous mapping at an address of the kernel's choice touches no memory in use.
    let start =
        unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(start.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}

impl Buffer {
    /// At least one byte; huge pages are asked for when the size fills half of one.
    pub fn new(length: usize) -> io::Result<Self> {
        let length = length.max(1);
        if length < HUGE_BYTES / 2 {
            return Ok(Self { start: map(length, 0)?, length, mapped: length, pages: Pages::Plain });
        }
        let mapped = length.next_multiple_of(HUGE_BYTES);
        if let Ok(start) = map(mapped, libc::MAP_HUGETLB) {
            return Ok(Self { start, length, mapped, pages: Pages::Huge });
        }
        let start = map(mapped, 0)?;
        // SAFETY: the range is the mapping just made; the advice changes no content.
        let advised = unsafe { libc::madvise(start.as_ptr().cast(), mapped, libc::MADV_HUGEPAGE) };
        let pages = if advised == 0 { Pages::Transparent } else { Pages::Plain };
        Ok(Self { start, length, mapped, pages })
    }

    /// Which pages it has.
    pub fn pages(&self) -> Pages {
        self.pages
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the mapping is readable, initialised by the kernel, and lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `&mut self` is the only access.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this start and size and is not used after.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.mapped) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_large_buffers_hold_what_is_written() {
        for length in [0, 1, 4096, HUGE_BYTES, HUGE_BYTES + 5] {
            let mut buffer = Buffer::new(length).unwrap();
            assert_eq!(buffer.len(), length.max(1));
            assert!(buffer.iter().all(|&byte| byte == 0));
            buffer.fill(7);
            assert_eq!((buffer[0], buffer[buffer.len() - 1]), (7, 7));
            assert!(length >= HUGE_BYTES || buffer.pages() == Pages::Plain);
            assert!(!buffer.pages().name().is_empty());
        }
    }
}
