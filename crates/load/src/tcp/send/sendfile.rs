//! `sendfile` from a file in memory: the kernel references the pages of the file. The lookup of each page
//! costs more than a copy where pages are small and the path is local.

use std::io;
use std::net::TcpStream;

use linerate_sys::zerocopy;

use super::content::Content;
use super::method::{Push, SendMethod};

/// `sendfile`.
pub(super) struct SendFile;

struct Sender<'a>(&'a Content);

impl SendMethod for SendFile {
    fn name(&self) -> &'static str {
        "sendfile"
    }

    fn call_bytes(&self) -> usize {
        1 << 20
    }

    fn open<'a>(&self, content: &'a Content, _: &TcpStream) -> io::Result<Box<dyn Push + 'a>> {
        content.file()?;
        Ok(Box::new(Sender(content)))
    }
}

impl Push for Sender<'_> {
    fn push(&mut self, stream: &TcpStream, position: u64) -> io::Result<usize> {
        let offset = self.0.offset(position);
        zerocopy::send_file(stream, self.0.file()?, offset as u64, self.0.len() - offset)
    }
}
