//! The inside of each connection over time, stored compactly.
//!
//! What comes in: readings of `TCP_INFO`, stream by stream. What goes out: text (base64) in which every
//! column holds the differences of its values as variable-length integers: about one byte for a value that
//! hardly changes. Reading it back gives the same values; text that is damaged gives `None`, never a panic
//! and never more readings than it has bytes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One reading of one connection. Times and counts since the connection was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reading {
    /// Microseconds since the start of the transfer.
    pub at_us: u64,
    /// Bytes acknowledged.
    pub acked_bytes: u64,
    /// The kernel's estimate of the delivery rate, bytes per second.
    pub delivery_bytes_per_s: u64,
    /// Pacing rate, bytes per second; 0 when the stream is not paced.
    pub pacing_bytes_per_s: u64,
    /// Smoothed RTT, microseconds.
    pub rtt_us: u64,
    /// Smallest RTT, microseconds; 0 when unknown.
    pub rtt_min_us: u64,
    /// Congestion window, segments.
    pub cwnd: u64,
    /// Slow-start threshold, segments; 0 while it was never set.
    pub ssthresh: u64,
    /// Segments retransmitted.
    pub retransmits: u64,
    /// Time with something to send, microseconds.
    pub busy_us: u64,
    /// Of it held up by the receiver's window.
    pub rwnd_limited_us: u64,
    /// Of it held up by the send buffer.
    pub sndbuf_limited_us: u64,
    /// Reordering events.
    pub reordering: u64,
    /// Segments that the peer had received twice.
    pub dsack: u64,
}

/// A reading as a row of a table; the order is that of the stored text.
macro_rules! columns {
    ($($field:ident),+ $(,)?) => {
        /// Columns of a [`Reading`].
        const COLUMNS: usize = [$(stringify!($field)),+].len();

        impl Reading {
            fn columns(self) -> [u64; COLUMNS] {
                [$(self.$field),+]
            }

            fn of([$($field),+]: [u64; COLUMNS]) -> Self {
                Self { $($field),+ }
            }
        }
    };
}

columns!(
    at_us,
    acked_bytes,
    delivery_bytes_per_s,
    pacing_bytes_per_s,
    rtt_us,
    rtt_min_us,
    cwnd,
    ssthresh,
    retransmits,
    busy_us,
    rwnd_limited_us,
    sndbuf_limited_us,
    reordering,
    dsack,
);

/// All readings of one connection, packed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Packed(String);

impl Packed {
    /// Packs readings.
    pub fn pack(readings: &[Reading]) -> Self {
        let mut bytes = Vec::with_capacity(readings.len() * COLUMNS * 2 + 4);
        put(&mut bytes, readings.len() as u64);
        for column in 0..COLUMNS {
            let mut last = 0_u64;
            for reading in readings {
                let value = reading.columns()[column];
                put(&mut bytes, zigzag(value.wrapping_sub(last) as i64));
                last = value;
            }
        }
        Self(base64(&bytes))
    }

    /// The readings; `None` when the text is damaged.
    pub fn unpack(&self) -> Option<Vec<Reading>> {
        if self.0.is_empty() {
            return Some(Vec::new());
        }
        let bytes = from_base64(&self.0)?;
        let mut rest = bytes.as_slice();
        let count = usize::try_from(take(&mut rest)?).ok()?;
        // Every value takes at least a byte.
        if count.checked_mul(COLUMNS)? > rest.len() {
            return None;
        }
        let mut table = vec![[0_u64; COLUMNS]; count];
        for column in 0..COLUMNS {
            let mut last = 0_u64;
            for row in &mut table {
                last = last.wrapping_add(unzigzag(take(&mut rest)?) as u64);
                row[column] = last;
            }
        }
        rest.is_empty().then(|| table.into_iter().map(Reading::of).collect())
    }

    /// Bytes of the text.
    pub fn bytes(&self) -> usize {
        self.0.len()
    }
}

/// Small numbers of either sign become small numbers.
fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Seven bits a byte, the lowest first; the top bit says that more follow.
fn put(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn take(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, tail) = rest.split_first()?;
        *rest = tail;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// The alphabet of RFC 4648, without padding.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let word =
            group.iter().fold(0_u32, |word, &byte| word << 8 | u32::from(byte)) << (8 * (3 - group.len()));
        for place in 0..=group.len() {
            text.push(char::from(ALPHABET[(word >> (18 - 6 * place) & 0x3f) as usize]));
        }
    }
    text
}

fn from_base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for group in text.as_bytes().chunks(4) {
        if group.len() == 1 {
            return None;
        }
        let mut word = 0_u32;
        for &letter in group {
            word = word << 6 | ALPHABET.iter().position(|&known| known == letter)? as u32;
        }
        word <<= 6 * (4 - group.len());
        bytes.extend_from_slice(&word.to_be_bytes()[1..group.len()]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reading() -> impl Strategy<Value = Reading> {
        proptest::array::uniform14(any::<u64>()).prop_map(Reading::of)
    }

    #[test]
    fn a_steady_connection_takes_few_bytes() {
        let readings: Vec<Reading> = (0..1000)
            .map(|i| Reading {
                at_us: i * 10_000,
                acked_bytes: i * 12_500_000,
                rtt_us: 100 + i % 7,
                cwnd: 900,
                ..Reading::default()
            })
            .collect();
        let packed = Packed::pack(&readings);
        assert_eq!(packed.unpack().unwrap(), readings);
        assert!(packed.bytes() < 30 * readings.len(), "{}", packed.bytes());
    }

    #[test]
    fn nothing_is_nothing() {
        assert_eq!(Packed::default().unpack(), Some(Vec::new()));
        assert_eq!(Packed::pack(&[]).unpack(), Some(Vec::new()));
    }

    proptest! {
        #[test]
        fn what_was_packed_comes_back(readings in proptest::collection::vec(reading(), 0..20)) {
            prop_assert_eq!(Packed::pack(&readings).unpack(), Some(readings));
        }

        #[test]
        fn no_text_makes_it_panic(text in "[A-Za-z0-9+/ =é]{0,80}") {
            if let Some(readings) = Packed(text.clone()).unpack() {
                prop_assert!(readings.len() <= text.len());
            }
        }

        #[test]
        fn base64_is_read_back(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(from_base64(&base64(&bytes)), Some(bytes));
        }
    }
}
