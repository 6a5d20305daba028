//! The ways of sending: how bytes come from memory into the kernel.
//!
//! What comes in: the content and a stream. What goes out: bytes that the kernel took. Byte number `p` of every stream is byte
//! `p` modulo the length of the content, whatever the way and however short a write was. To add one: one file with a type
//! that implements [`SendWay`], and one line in [`WAYS`].

mod sendfile;
mod splice;
mod write;
mod zerocopy;

use std::fs::File;
use std::io;
use std::net::TcpStream;
use std::sync::OnceLock;

use linerate_sys::pages::{Buffer, Pages};
use linerate_sys::zerocopy::memory_file;

/// A way of sending.
pub(crate) trait SendWay: Sync {
    /// Its name on the command line and in reports.
    fn name(&self) -> &'static str;

    /// Bytes of one call, unless the test says otherwise.
    fn call_bytes(&self) -> usize;

    /// Whether a calibration tries it. One that no measurement ever favoured is there on request only.
    fn is_candidate(&self) -> bool {
        true
    }

    /// Prepares it for a stream; an error says that it cannot be used there.
    fn open<'a>(&self, content: &'a Content, stream: &TcpStream) -> io::Result<Box<dyn Push + 'a>>;
}

/// A way of sending at work on one stream.
pub(crate) trait Push {
    /// Lets the kernel take some of the content, beginning with byte `position` of the stream; returns how much.
    fn push(&mut self, stream: &TcpStream, position: u64) -> io::Result<usize>;

    /// What is worth knowing at the end.
    fn remark(&self) -> String {
        String::new()
    }
}

/// All ways of sending; the first is used when nobody chooses.
pub(crate) static WAYS: &[&dyn SendWay] = &[
    &write::Write { name: "write", call_bytes: 1 << 20 },
    &write::Write { name: "write-4m", call_bytes: 4 << 20 },
    &sendfile::SendFile,
    &zerocopy::ZeroCopy,
    &splice::Splice,
];

/// Names of all ways.
pub(crate) fn names() -> Vec<&'static str> {
    WAYS.iter().map(|way| way.name()).collect()
}

/// What is sent: bytes without order, the same for all streams.
pub(crate) struct Content {
    buffer: Buffer,
    file: OnceLock<Option<File>>,
}

impl Content {
    /// Of one call's length.
    pub(crate) fn new(bytes: usize) -> io::Result<Self> {
        let mut buffer = Buffer::new(bytes)?;
        // Xorshift (Marsaglia): no two neighbouring words are alike, so that a checksum sees what was moved.
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for word in buffer.chunks_mut(8) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            word.copy_from_slice(&state.to_le_bytes()[..word.len()]);
        }
        Ok(Self { buffer, file: OnceLock::new() })
    }

    /// Place of a byte of a stream in the content.
    pub(crate) fn offset(&self, position: u64) -> usize {
        (position % self.buffer.len() as u64) as usize
    }

    /// The content from a byte of a stream on, to its end.
    pub(crate) fn from(&self, position: u64) -> &[u8] {
        &self.buffer[self.offset(position)..]
    }

    /// Length of the whole.
    pub(crate) fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Its pages.
    pub(crate) fn pages(&self) -> Pages {
        self.buffer.pages()
    }

    /// The same content as a file in memory.
    fn file(&self) -> io::Result<&File> {
        self.file
            .get_or_init(|| memory_file(&self.buffer).ok())
            .as_ref()
            .ok_or_else(|| io::Error::other("no file in memory can be made"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_goes_round_and_its_file_is_equal() {
        let content = Content::new(1001).unwrap();
        assert_eq!((content.offset(1001), content.offset(2005)), (0, 3));
        assert_eq!(content.from(1000).len(), 1);
        assert!(content.from(0).windows(16).step_by(16).all(|pair| pair[..8] != pair[8..]));
        let mut copy = vec![0; 1001];
        std::os::unix::fs::FileExt::read_exact_at(content.file().unwrap(), &mut copy, 0).unwrap();
        assert_eq!(copy, content.from(0));
    }
}
