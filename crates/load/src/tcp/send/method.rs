//! What every send method implements.

use std::io;
use std::net::TcpStream;

use super::content::Content;

/// A send method.
pub(crate) trait SendMethod: Sync {
    /// Its name on the command line and in reports.
    fn name(&self) -> &'static str;

    /// Bytes of one call, unless the test sets them.
    fn call_bytes(&self) -> usize;

    /// Whether a calibration tries it. One that no measurement ever favoured is there on request only.
    fn is_candidate(&self) -> bool {
        true
    }

    /// Prepares it for a stream; an error means that it cannot be used there.
    fn open<'a>(&self, content: &'a Content, stream: &TcpStream) -> io::Result<Box<dyn Push + 'a>>;
}

/// A send method at work on one stream.
pub(crate) trait Push {
    /// Lets the kernel take some of the content, beginning with byte `position` of the stream; returns how
    /// much.
    fn push(&mut self, stream: &TcpStream, position: u64) -> io::Result<usize>;

    /// What is worth knowing at the end.
    fn remark(&self) -> String {
        String::new()
    }
}
