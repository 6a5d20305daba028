//! What is sent: the same bytes for all streams, in memory and as a file in memory.

use std::fs::File;
use std::io;
use std::sync::OnceLock;

use linerate_model::random::Random;
use linerate_sys::pages::{Buffer, Pages};
use linerate_sys::zerocopy::memory_file;

/// What is sent: bytes without order, the same for all streams.
pub(crate) struct Content {
    buffer: Buffer,
    file: OnceLock<Option<File>>,
}

impl Content {
    /// Of one call's length.
    pub(crate) fn new(bytes: usize) -> io::Result<Self> {
        let mut buffer = Buffer::new(bytes)?;
        // No two neighbouring words are alike, so that a checksum sees what was moved.
        Random(0).fill(&mut buffer);
        Ok(Self { buffer, file: OnceLock::new() })
    }

    /// Offset in the content of a byte of a stream.
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
    pub(super) fn file(&self) -> io::Result<&File> {
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
