//! Reads that copy every byte, as an application does; with a checksum of them where the test is to be
//! verified.

use std::io::{self, Read as _};
use std::net::TcpStream;

use crc32fast::Hasher;

use super::method::{Pull, ReceiveMethod};

/// Copying reads.
pub(super) struct Read {
    pub(super) name: &'static str,
    pub(super) verifies: bool,
    pub(super) beside: bool,
}

/// Larger buffers leave the cache before the checksum reads them again.
const BUFFER_BYTES_MAX: usize = 1 << 20;

struct Reader {
    buffer: Vec<u8>,
    hasher: Option<Hasher>,
}

impl ReceiveMethod for Read {
    fn name(&self) -> &'static str {
        self.name
    }

    fn is_beside(&self) -> bool {
        self.beside
    }

    fn verifies(&self) -> bool {
        self.verifies
    }

    fn is_candidate(&self) -> bool {
        false
    }

    fn open(&self, call_bytes: usize) -> Box<dyn Pull> {
        let buffer = vec![0; call_bytes.min(BUFFER_BYTES_MAX)];
        Box::new(Reader { buffer, hasher: self.verifies.then(Hasher::new) })
    }
}

impl Pull for Reader {
    fn pull(&mut self, mut stream: &TcpStream) -> io::Result<usize> {
        let length = stream.read(&mut self.buffer)?;
        if let Some(hasher) = &mut self.hasher {
            hasher.update(&self.buffer[..length]);
        }
        Ok(length)
    }

    fn checksum(&self) -> u32 {
        self.hasher.as_ref().map_or(0, |hasher| hasher.clone().finalize())
    }
}
