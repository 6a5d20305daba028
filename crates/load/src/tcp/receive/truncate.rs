//! Reads that let the kernel throw the bytes away (`MSG_TRUNC`): no copy, where the family of the socket
//! knows it.

use std::io;
use std::net::TcpStream;

use linerate_sys::socket;

use super::method::{Pull, ReceiveMethod};

/// Discarding reads.
pub(super) struct Truncate {
    pub(super) name: &'static str,
    pub(super) beside: bool,
}

/// Buffer for kernels and families that copy all the same; only then are its pages allocated.
struct Reader(Vec<u8>);

impl ReceiveMethod for Truncate {
    fn name(&self) -> &'static str {
        self.name
    }

    fn is_beside(&self) -> bool {
        self.beside
    }

    fn copying(&self, all: bool) -> &'static [&'static str] {
        if all { &["read", "read-beside"] } else { &["read"] }
    }

    fn open(&self, call_bytes: usize) -> Box<dyn Pull> {
        Box::new(Reader(vec![0; call_bytes]))
    }
}

impl Pull for Reader {
    fn pull(&mut self, stream: &TcpStream) -> io::Result<usize> {
        socket::receive_discarding(stream, &mut self.0)
    }
}
