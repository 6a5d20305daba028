//! The ways of receiving: how bytes leave the kernel.
//!
//! What comes in: a stream. What goes out: how many bytes were taken, and a checksum where one was asked for. To add one: one
//! file with a type that implements [`ReceiveWay`], and one line in [`WAYS`].

mod read;
mod truncate;

use std::io;
use std::net::TcpStream;

/// A way of receiving.
pub(crate) trait ReceiveWay: Sync {
    /// Its name on the command line and in reports.
    fn name(&self) -> &'static str;

    /// Whether the reader runs on the CPU that handles the packets of its stream; the sender stays on one CPU then.
    fn is_beside(&self) -> bool {
        false
    }

    /// Whether it makes a checksum of every byte.
    fn verifies(&self) -> bool {
        false
    }

    /// Whether a calibration tries it.
    fn is_candidate(&self) -> bool {
        true
    }

    /// Prepares it for a stream, with room for one call.
    fn open(&self, call_bytes: usize) -> Box<dyn Pull>;
}

/// A way of receiving at work on one stream.
pub(crate) trait Pull {
    /// Takes bytes out of the kernel; 0 at the end of the stream.
    fn pull(&mut self, stream: &TcpStream) -> io::Result<usize>;

    /// Checksum (CRC-32) of all bytes so far; 0 when none is made.
    fn checksum(&self) -> u32 {
        0
    }
}

/// All ways of receiving; the first is used when nobody chooses, the first that verifies where that is asked for.
pub(crate) static WAYS: &[&dyn ReceiveWay] = &[
    &truncate::Truncate { name: "truncate", beside: false },
    &truncate::Truncate { name: "truncate-beside", beside: true },
    &read::Read { name: "read", verifies: false },
    &read::Read { name: "verify", verifies: true },
];

/// Names of all ways.
pub(crate) fn names() -> Vec<&'static str> {
    WAYS.iter().map(|way| way.name()).collect()
}
