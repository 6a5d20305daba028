//! I/O requests to one file through io_uring: many in flight, with registered memory and a registered file.
//!
//! In: an open file, memory cut into slots, requests that each use one slot. Out: the result of each. A slot
//! cannot be touched while its request is in flight, and the memory outlives every request. It decides
//! nothing, measures nothing and never retries.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use io_uring::{IoUring, opcode, squeue, types};

use crate::pages::Buffer;

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// Fills the slot from the file.
    Read,
    /// Writes the slot to the file.
    Write,
    /// `fdatasync`.
    FlushData,
    /// `fsync`.
    Flush,
}

/// What of io_uring this kernel gave, beyond requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UringFeatures {
    /// The memory is pinned once and not for each request.
    pub fixed_memory: bool,
    /// The file is looked up once and not for each request.
    pub fixed_file: bool,
    /// One thread asks, and ends are worked off when it looks (Linux 6.1).
    pub deferred: bool,
}

/// A ring with its file and its memory.
pub struct Ring {
    queues: IoUring,
    file: File,
    room: Option<Buffer>,
    slot_bytes: usize,
    busy: Vec<bool>,
    under_way: usize,
    given: UringFeatures,
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring")
            .field("slots", &self.busy.len())
            .field("given", &self.given)
            .finish_non_exhaustive()
    }
}

/// The best kind of ring that this kernel makes, and whether its ends are worked off when they are looked
/// for.
fn build(entries: u32) -> io::Result<(IoUring, bool)> {
    let deferred = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_submit_all()
        .setup_clamp()
        .dontfork()
        .build(entries);
    match deferred {
        Ok(ring) => Ok((ring, true)),
        // Linux before 6.1 does not know these flags; what is forbidden stays so.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            Ok((IoUring::builder().setup_clamp().dontfork().build(entries)?, false))
        }
        Err(error) => Err(error),
    }
}

/// Whether io_uring cannot be had here: an old kernel, a sysctl (`kernel.io_uring_disabled`), a filter of
/// system calls.
pub fn is_forbidden(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM | libc::EACCES))
}

impl Ring {
    /// A ring of the calling thread, which alone may use it: one slot for each `slot_bytes` of `room`.
    ///
    /// # Errors
    /// io_uring is not to be had, or the memory holds no slot.
    pub fn new(file: File, room: Buffer, slot_bytes: usize) -> io::Result<Self> {
        let slots = room.len().checked_div(slot_bytes).unwrap_or(0);
        let entries = u32::try_from(slots).ok().filter(|n| *n > 0).ok_or(io::ErrorKind::InvalidInput)?;
        let (ring, deferred) = build(entries)?;
        // A kernel may give fewer entries than were asked for.
        if (ring.params().sq_entries() as usize) < slots {
            return Err(io::Error::other(format!(
                "{slots} requests at a time are more than this kernel takes"
            )));
        }
        let mut given = UringFeatures { deferred, ..UringFeatures::default() };
        let parts: Vec<libc::iovec> = (0..slots)
            .map(|slot| libc::iovec {
                // Within the buffer, for `slots` times `slot_bytes` are.
                iov_base: room.as_ptr().wrapping_add(slot * slot_bytes).cast_mut().cast(),
                iov_len: slot_bytes,
            })
            .collect();
        // SAFETY: the parts lie in `room`, which the ring owns and frees only after itself.
        given.fixed_memory = unsafe { ring.submitter().register_buffers(&parts) }.is_ok();
        given.fixed_file = ring.submitter().register_files(&[file.as_raw_fd()]).is_ok();
        Ok(Self {
            queues: ring,
            file,
            room: Some(room),
            slot_bytes,
            busy: vec![false; slots],
            under_way: 0,
            given,
        })
    }

    /// What the kernel gave.
    pub fn given(&self) -> UringFeatures {
        self.given
    }

    /// Requests in flight.
    pub fn under_way(&self) -> usize {
        self.under_way
    }

    /// The memory of a slot; `None` while its request is in flight.
    pub fn slot(&mut self, slot: usize) -> Option<&mut [u8]> {
        if self.busy.get(slot).copied().unwrap_or(true) {
            return None;
        }
        let start = slot * self.slot_bytes;
        self.room.as_mut()?.get_mut(start..start + self.slot_bytes)
    }

    /// Prepares a request of a free slot; it is handed over by [`Ring::wait`].
    ///
    /// # Errors
    /// The slot does not exist or is in flight.
    pub fn ask(&mut self, slot: usize, what: Ask, offset: u64) -> io::Result<()> {
        self.push(slot, what, offset, squeue::Flags::empty())
    }

    /// The same for a request that ended with "try again": the kernel first tries without waiting, and where
    /// it learns only below a stacked device (DRBD, md) that it has to wait, it cannot begin anew by itself.
    /// This one may wait from the beginning, in a thread of the kernel.
    ///
    /// # Errors
    /// The slot does not exist or is in flight.
    pub fn ask_patiently(&mut self, slot: usize, what: Ask, offset: u64) -> io::Result<()> {
        self.push(slot, what, offset, squeue::Flags::ASYNC)
    }

    fn push(&mut self, slot: usize, what: Ask, offset: u64, flags: squeue::Flags) -> io::Result<()> {
        let number = u16::try_from(slot).map_err(|_| io::ErrorKind::InvalidInput)?;
        let start = self.slot(slot).ok_or(io::ErrorKind::ResourceBusy)?.as_mut_ptr();
        let bytes = self.slot_bytes as u32;
        let raw = types::Fd(self.file.as_raw_fd());
        let entry = self.entry(what, raw, (start, bytes), offset, number).user_data(slot as u64).flags(flags);
        // SAFETY: the slot is marked busy until its end was seen, and memory and file outlive the ring's
        // requests (see `drop`).
        let pushed = unsafe { self.queues.submission().push(&entry) };
        // One entry per slot: it cannot be full.
        pushed.map_err(|_| io::Error::other("the submission queue is full"))?;
        self.busy[slot] = true;
        self.under_way += 1;
        Ok(())
    }

    fn entry(
        &self,
        what: Ask,
        raw: types::Fd,
        (start, bytes): (*mut u8, u32),
        offset: u64,
        number: u16,
    ) -> squeue::Entry {
        let fixed = types::Fixed(0);
        match (what, self.given.fixed_memory, self.given.fixed_file) {
            (Ask::Read, true, true) => {
                opcode::ReadFixed::new(fixed, start, bytes, number).offset(offset).build()
            }
            (Ask::Read, true, false) => {
                opcode::ReadFixed::new(raw, start, bytes, number).offset(offset).build()
            }
            (Ask::Read, false, true) => opcode::Read::new(fixed, start, bytes).offset(offset).build(),
            (Ask::Read, false, false) => opcode::Read::new(raw, start, bytes).offset(offset).build(),
            (Ask::Write, true, true) => {
                opcode::WriteFixed::new(fixed, start, bytes, number).offset(offset).build()
            }
            (Ask::Write, true, false) => {
                opcode::WriteFixed::new(raw, start, bytes, number).offset(offset).build()
            }
            (Ask::Write, false, true) => opcode::Write::new(fixed, start, bytes).offset(offset).build(),
            (Ask::Write, false, false) => opcode::Write::new(raw, start, bytes).offset(offset).build(),
            (Ask::FlushData, _, true) => opcode::Fsync::new(fixed).flags(types::FsyncFlags::DATASYNC).build(),
            (Ask::FlushData, _, false) => opcode::Fsync::new(raw).flags(types::FsyncFlags::DATASYNC).build(),
            (Ask::Flush, _, true) => opcode::Fsync::new(fixed).build(),
            (Ask::Flush, _, false) => opcode::Fsync::new(raw).build(),
        }
    }

    /// Hands over what was asked and waits until so many requests ended. Those in flight end whatever
    /// happens, so that no time limits it.
    ///
    /// # Errors
    /// The kernel's answer; a signal is none.
    pub fn wait(&mut self, at_least: usize) -> io::Result<()> {
        match self.queues.submitter().submit_and_wait(at_least.min(self.under_way)) {
            Ok(_) => Ok(()),
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINTR | libc::EBUSY)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Tells of every request that ended: its slot, and how many bytes it moved or the kernel's answer.
    pub fn ended(&mut self, mut tell: impl FnMut(usize, io::Result<u32>)) {
        for end in self.queues.completion() {
            let slot = end.user_data() as usize;
            if let Some(busy) = self.busy.get_mut(slot) {
                *busy = false;
                self.under_way = self.under_way.saturating_sub(1);
            }
            let result = end.result();
            tell(slot, u32::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result)));
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // The kernel may still write into the memory: it is given back only when nothing is in flight any
        // more.
        while self.under_way > 0 {
            if self.wait(1).is_err() {
                // Better leaked than reused while the kernel may write to it.
                std::mem::forget(self.room.take());
                return;
            }
            self.ended(|_, _| {});
        }
        // The kernel takes a ring apart in its own time; without this a file system could not be unmounted
        // for a while.
        let _ = self.queues.submitter().unregister_files();
        let _ = self.queues.submitter().unregister_buffers();
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, SeekFrom};

    use super::*;

    const SLOT: usize = 4096;

    /// A ring on a file of four slots; `None` where io_uring is forbidden, which is said.
    fn ring(slots: usize) -> Option<(Ring, File)> {
        let file = tempfile::tempfile().unwrap();
        file.set_len(4 * SLOT as u64).unwrap();
        match Ring::new(file.try_clone().unwrap(), Buffer::new(slots * SLOT).unwrap(), SLOT) {
            Ok(ring) => Some((ring, file)),
            Err(error) if is_forbidden(&error) => {
                println!("SKIPPED io_uring: {error}");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn all(ring: &mut Ring) -> Vec<(usize, u32)> {
        let mut ends = Vec::new();
        while ring.under_way() > 0 {
            ring.wait(1).unwrap();
            ring.ended(|slot, result| ends.push((slot, result.unwrap())));
        }
        ends.sort_unstable();
        ends
    }

    #[test]
    fn what_is_written_at_a_place_is_read_there() {
        let Some((mut ring, mut file)) = ring(4) else { return };
        for slot in 0..4 {
            ring.slot(slot).unwrap().fill(slot as u8 + 1);
            ring.ask(slot, Ask::Write, (slot * SLOT) as u64).unwrap();
            assert!(ring.slot(slot).is_none(), "nobody touches memory that the kernel reads");
            assert!(ring.ask(slot, Ask::Write, 0).is_err());
        }
        assert_eq!(all(&mut ring), [(0, 4096), (1, 4096), (2, 4096), (3, 4096)]);
        ring.ask(0, Ask::FlushData, 0).unwrap();
        ring.ask(1, Ask::Flush, 0).unwrap();
        ring.ask_patiently(2, Ask::Read, 3 * SLOT as u64).unwrap();
        assert_eq!(all(&mut ring), [(0, 0), (1, 0), (2, 4096)]);
        assert!(ring.slot(2).unwrap().iter().all(|b| *b == 4));
        assert!(ring.slot(4).is_none() && ring.ask(4, Ask::Read, 0).is_err());
        let mut content = Vec::new();
        file.seek(SeekFrom::Start(0)).unwrap();
        file.read_to_end(&mut content).unwrap();
        assert!(content.chunks(SLOT).zip(1..).all(|(part, n)| part.iter().all(|b| *b == n)));
    }

    #[test]
    fn a_request_that_fails_says_why_and_waiting_ends() {
        let folder = File::open("/").unwrap();
        let mut ring = match Ring::new(folder, Buffer::new(SLOT).unwrap(), SLOT) {
            Ok(ring) => ring,
            Err(error) => {
                assert!(is_forbidden(&error), "{error}");
                println!("SKIPPED io_uring: {error}");
                return;
            }
        };
        // Nothing is in flight: nothing is waited for.
        ring.wait(1).unwrap();
        ring.ask(0, Ask::Read, 0).unwrap();
        let mut why = None;
        while ring.under_way() > 0 {
            ring.wait(1).unwrap();
            ring.ended(|_, result| why = result.err().and_then(|e| e.raw_os_error()));
        }
        assert_eq!(why, Some(libc::EISDIR));
        assert!(Ring::new(File::open("/").unwrap(), Buffer::new(10).unwrap(), SLOT).is_err());
    }

    #[test]
    fn a_ring_that_goes_waits_for_what_is_under_way() {
        let Some((mut ring, mut file)) = ring(2) else { return };
        ring.slot(1).unwrap().fill(9);
        ring.ask(1, Ask::Write, 0).unwrap();
        drop(ring);
        let mut byte = [0];
        file.seek(SeekFrom::Start(0)).unwrap();
        file.read_exact(&mut byte).unwrap();
        assert_eq!(byte, [9]);
    }
}
