//! Plain writes: the kernel copies. The cheapest method on local paths, because it copies there in any case.

use std::io::{self, Write as _};
use std::net::TcpStream;

use super::content::Content;
use super::method::{Push, SendMethod};

/// Writes of one size.
pub(super) struct Write {
    pub(super) name: &'static str,
    pub(super) call_bytes: usize,
}

struct Writer<'a>(&'a Content);

impl SendMethod for Write {
    fn name(&self) -> &'static str {
        self.name
    }

    fn call_bytes(&self) -> usize {
        self.call_bytes
    }

    fn open<'a>(&self, content: &'a Content, _: &TcpStream) -> io::Result<Box<dyn Push + 'a>> {
        Ok(Box::new(Writer(content)))
    }
}

impl Push for Writer<'_> {
    fn push(&mut self, mut stream: &TcpStream, position: u64) -> io::Result<usize> {
        stream.write(self.0.from(position))
    }
}
