//! Pages through a pipe: `vmsplice` references ours, `splice` hands them to the socket.

use std::io;
use std::net::TcpStream;

use linerate_sys::zerocopy::PagePipe;

use super::content::Content;
use super::method::{Push, SendMethod};

/// `vmsplice` and `splice`.
pub(super) struct Splice;

/// Streams have pipes of their own, and an ordinary user's pipes are limited to 64 MiB together.
const PIPE_BYTES: usize = 1 << 20;

struct Sender<'a> {
    content: &'a Content,
    pipe: PagePipe,
}

impl SendMethod for Splice {
    fn name(&self) -> &'static str {
        "splice"
    }

    fn call_bytes(&self) -> usize {
        PIPE_BYTES
    }

    fn open<'a>(&self, content: &'a Content, _: &TcpStream) -> io::Result<Box<dyn Push + 'a>> {
        Ok(Box::new(Sender { content, pipe: PagePipe::new(PIPE_BYTES)? }))
    }
}

impl Push for Sender<'_> {
    fn push(&mut self, stream: &TcpStream, position: u64) -> io::Result<usize> {
        self.pipe.push(stream, self.content.from(position))
    }
}
