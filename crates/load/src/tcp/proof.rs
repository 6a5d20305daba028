//! The exchange of proofs at the beginning of a stream: its labels and lengths, and how a proven stream is
//! set up.

use std::io;
use std::net::TcpStream;

use linerate_sys::socket;

use crate::job::SLICE;
use crate::token::STAMP_BYTES;

/// What a sender shows: the number of its stream, then the stamp of the receiver's nonce.
pub(super) const PROOF_BYTES: usize = 2 + STAMP_BYTES;

/// Label of the sender's proof.
pub(super) const PROOF: &str = "tcp proof";

/// Label of the receiver's proof, which is the word to start as well.
pub(super) const GO: &str = "tcp go";

/// A proven stream blocks, but never longer than a slice.
pub(super) fn set_time_outs(stream: &TcpStream) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(SLICE))?;
    stream.set_write_timeout(Some(SLICE))?;
    socket::reset_on_close(stream)
}
