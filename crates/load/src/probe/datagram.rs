//! A probe or an answer: 64 bytes.

use crate::datagram::{HEADER_BYTES, header, parse};
use crate::token::Stamp;

/// Bytes of each.
pub(super) const BYTES: usize = 64;

/// What a datagram carries. Times are nanoseconds of the sender's clock or differences of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Probe {
    /// Number of the sender in this watch.
    pub(super) from: u32,
    /// Which run of its node program: numbers begin anew with it.
    pub(super) run: u64,
    /// Number of the datagram, of all from this sender to this receiver.
    pub(super) sequence: u64,
    /// Of an answer: the time that the probe carried.
    pub(super) answers: Option<u64>,
    /// A probe: when it was sent, for the answer to carry. An answer: how long the probe was held.
    pub(super) time_ns: u64,
}

impl Probe {
    pub(super) fn bytes(&self, stamp: &Stamp) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..HEADER_BYTES].copy_from_slice(&header(stamp, self.sequence, self.run));
        bytes[32..36].copy_from_slice(&self.from.to_be_bytes());
        bytes[36] = u8::from(self.answers.is_some());
        bytes[40..48].copy_from_slice(&self.answers.unwrap_or(0).to_be_bytes());
        bytes[48..56].copy_from_slice(&self.time_ns.to_be_bytes());
        bytes
    }

    /// A datagram that shows the stamp.
    pub(super) fn read(stamp: &Stamp, datagram: &[u8]) -> Option<Self> {
        let (sequence, run) = parse(stamp, datagram)?;
        let number = |at: usize| Some(u64::from_be_bytes(datagram.get(at..at + 8)?.try_into().ok()?));
        let from = u32::from_be_bytes(datagram.get(32..36)?.try_into().ok()?);
        let is_answer = *datagram.get(36)? != 0;
        let answered = number(40)?;
        Some(Self { from, run, sequence, answers: is_answer.then_some(answered), time_ns: number(48)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        let stamp = [5; 16];
        for answers in [None, Some(u64::MAX)] {
            let probe = Probe { from: 7, run: 99, sequence: 3, answers, time_ns: 12 };
            let bytes = probe.bytes(&stamp);
            assert_eq!(Probe::read(&stamp, &bytes), Some(probe));
            assert_eq!(Probe::read(&[6; 16], &bytes), None);
            for length in 0..56 {
                assert_eq!(Probe::read(&stamp, &bytes[..length]), None, "{length}");
            }
        }
    }
}
