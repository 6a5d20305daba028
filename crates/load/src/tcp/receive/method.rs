//! What every receive method implements.

use std::io;
use std::net::TcpStream;

/// A receive method.
pub(crate) trait ReceiveMethod: Sync {
    /// Its name on the command line and in reports.
    fn name(&self) -> &'static str;

    /// Whether the reader runs on the CPU that handles the packets of its stream; the sender stays on one CPU
    /// then.
    fn is_beside(&self) -> bool {
        false
    }

    /// The methods that copy what they read, for the comparison beside this one: a copy may need a CPU of its
    /// own where discarding needs none. Empty where this one copies. `all`: the other end knows every method
    /// of this version.
    fn copying(&self, _all: bool) -> &'static [&'static str] {
        &[]
    }

    /// Whether it makes a checksum of every byte.
    fn verifies(&self) -> bool {
        false
    }

    /// Whether a calibration tries it.
    fn is_candidate(&self) -> bool {
        true
    }

    /// Prepares it for a stream, with a buffer for one call.
    fn open(&self, call_bytes: usize) -> Box<dyn Pull>;
}

/// A receive method at work on one stream.
pub(crate) trait Pull {
    /// Takes bytes out of the kernel; 0 at the end of the stream.
    fn pull(&mut self, stream: &TcpStream) -> io::Result<usize>;

    /// Checksum (CRC-32) of all bytes so far; 0 when none is made.
    fn checksum(&self) -> u32 {
        0
    }
}
