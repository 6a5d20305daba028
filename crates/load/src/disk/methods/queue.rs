//! What every I/O method implements, and the queue that it opens.

use std::fs::File;
use std::io;

use linerate_sys::pages::Buffer;
use linerate_sys::uring::Ask;

/// An I/O method.
pub(in crate::disk) trait Method: Sync {
    /// Short stable name.
    fn name(&self) -> &'static str;
    /// Whether one thread can have several requests in flight.
    fn many(&self) -> bool;
    /// A queue of the calling thread: a slot for each `slot_bytes` of `buffer`.
    fn open(&self, file: File, buffer: Buffer, slot_bytes: usize) -> io::Result<Box<dyn Queue>>;
}

/// Requests of one thread to one file.
pub(in crate::disk) trait Queue {
    /// Memory of a slot; `None` while its request is in flight.
    fn slot(&mut self, slot: usize) -> Option<&mut [u8]>;
    /// Asks for something with a free slot.
    fn ask(&mut self, slot: usize, what: Ask, offset: u64) -> io::Result<()>;
    /// Asks once more for what ended with "try again", and may wait for it.
    fn ask_patiently(&mut self, slot: usize, what: Ask, offset: u64) -> io::Result<()> {
        self.ask(slot, what, offset)
    }
    /// Waits until so many ended.
    fn wait(&mut self, at_least: usize) -> io::Result<()>;
    /// Moves what ended into the list: the slot, and how many bytes it moved.
    fn ended(&mut self, list: &mut Vec<(usize, io::Result<u32>)>);
    /// Requests in flight.
    fn in_flight(&self) -> usize;
    /// What the host did not give, in words.
    fn remark(&self) -> Option<String>;
}
