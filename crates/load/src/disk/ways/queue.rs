//! What every way of making requests implements, and the queue that it opens.

use std::fs::File;
use std::io;

use linerate_sys::pages::Buffer;
use linerate_sys::uring::Ask;

/// A way of making requests.
pub(in crate::disk) trait Way: Sync {
    /// Short stable name.
    fn name(&self) -> &'static str;
    /// Whether one thread can have several requests under way.
    fn many(&self) -> bool;
    /// A queue of the calling thread: a slot for each `slot_bytes` of `room`.
    fn open(&self, file: File, room: Buffer, slot_bytes: usize) -> io::Result<Box<dyn Queue>>;
}

/// Requests of one thread to one file.
pub(in crate::disk) trait Queue {
    /// Memory of a slot; `None` while its request is under way.
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
    /// Requests under way.
    fn under_way(&self) -> usize;
    /// What the host did not give, in words.
    fn remark(&self) -> Option<String>;
}
