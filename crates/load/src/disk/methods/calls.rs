//! Requests by plain calls (`pread`, `pwrite`, `fdatasync`): one at a time for each thread, for hosts that
//! forbid io_uring.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use linerate_sys::pages::Buffer;
use linerate_sys::uring::Ask;

use super::queue::{Method, Queue};

/// The method `calls`.
pub(super) struct Calls;

impl Method for Calls {
    fn name(&self) -> &'static str {
        "calls"
    }

    fn many(&self) -> bool {
        false
    }

    fn open(&self, file: File, buffer: Buffer, slot_bytes: usize) -> io::Result<Box<dyn Queue>> {
        Ok(Box::new(Done { file, buffer, slot_bytes, ends: Vec::new() }))
    }
}

/// Requests that ended, for each is over when it was asked.
struct Done {
    file: File,
    buffer: Buffer,
    slot_bytes: usize,
    ends: Vec<(usize, io::Result<u32>)>,
}

impl Queue for Done {
    fn slot(&mut self, slot: usize) -> Option<&mut [u8]> {
        let start = slot.checked_mul(self.slot_bytes)?;
        self.buffer.get_mut(start..start.checked_add(self.slot_bytes)?)
    }

    fn ask(&mut self, slot: usize, what: Ask, offset: u64) -> io::Result<()> {
        let start = slot.saturating_mul(self.slot_bytes);
        let part = self.buffer.get_mut(start..start.saturating_add(self.slot_bytes));
        let part = part.ok_or(io::ErrorKind::InvalidInput)?;
        let end = match what {
            Ask::Read => self.file.read_at(part, offset),
            Ask::Write => self.file.write_at(part, offset),
            Ask::FlushData => self.file.sync_data().map(|()| 0),
            Ask::Flush => self.file.sync_all().map(|()| 0),
        };
        self.ends.push((slot, end.map(|bytes| bytes as u32)));
        Ok(())
    }

    fn wait(&mut self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn ended(&mut self, list: &mut Vec<(usize, io::Result<u32>)>) {
        list.append(&mut self.ends);
    }

    fn in_flight(&self) -> usize {
        self.ends.len()
    }

    fn remark(&self) -> Option<String> {
        None
    }
}
