//! Requests through io_uring: many in flight at a time, with memory and file registered beforehand.

use std::fs::File;
use std::io;

use linerate_sys::pages::Buffer;
use linerate_sys::uring::{Ask, Ring};

use super::queue::{Method, Queue};

/// The method `io_uring`.
pub(super) struct Uring;

impl Method for Uring {
    fn name(&self) -> &'static str {
        "io_uring"
    }

    fn many(&self) -> bool {
        true
    }

    fn open(&self, file: File, buffer: Buffer, slot_bytes: usize) -> io::Result<Box<dyn Queue>> {
        Ok(Box::new(Ring::new(file, buffer, slot_bytes)?))
    }
}

impl Queue for Ring {
    fn slot(&mut self, slot: usize) -> Option<&mut [u8]> {
        Ring::slot(self, slot)
    }

    fn ask(&mut self, slot: usize, what: Ask, offset: u64) -> io::Result<()> {
        Ring::ask(self, slot, what, offset)
    }

    fn ask_patiently(&mut self, slot: usize, what: Ask, offset: u64) -> io::Result<()> {
        Ring::ask_patiently(self, slot, what, offset)
    }

    fn wait(&mut self, at_least: usize) -> io::Result<()> {
        Ring::wait(self, at_least)
    }

    fn ended(&mut self, list: &mut Vec<(usize, io::Result<u32>)>) {
        Ring::ended(self, |slot, end| list.push((slot, end)));
    }

    fn in_flight(&self) -> usize {
        Ring::under_way(self)
    }

    fn remark(&self) -> Option<String> {
        let given = self.given();
        let missing: Vec<&str> = [
            (!given.fixed_memory, "memory that is pinned once (the limit of locked memory is too small)"),
            (!given.fixed_file, "a file that is looked up once"),
        ]
        .into_iter()
        .filter_map(|(missing, what)| missing.then_some(what))
        .collect();
        (!missing.is_empty()).then(|| format!("without {}", missing.join(" and ")))
    }
}
