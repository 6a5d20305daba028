//! Proof that a stream or a datagram belongs to the test: a keyed hash (SipHash-2-4 with 128 bits, key: the
//! token).
//!
//! What comes in: the secret of the test, a label, a nonce. What goes out: a stamp of 16 bytes. The token
//! itself never travels: a stream answers the receiver's nonce, so that a recorded proof is worth nothing
//! later, and a datagram carries the stamp of its label in this one test. It hides nothing and protects no
//! content: the payload of a measurement is worthless.

use std::fs::File;
use std::hint::black_box;
use std::io::{self, Read};

/// Bytes of a stamp and of a nonce.
pub(crate) const STAMP_BYTES: usize = 16;

/// A proof or a nonce.
pub(crate) type Stamp = [u8; STAMP_BYTES];

/// The secret of a test.
pub(crate) struct Token {
    key: (u64, u64),
}

impl Token {
    /// From the spec.
    pub(crate) fn new(secret: [u8; 16]) -> Self {
        let key = u128::from_le_bytes(secret);
        Self { key: (key as u64, (key >> 64) as u64) }
    }

    /// What only a holder of the token can compute from this label and nonce.
    pub(crate) fn stamp(&self, label: &str, nonce: &[u8]) -> Stamp {
        let mut message = Vec::with_capacity(label.len() + 1 + nonce.len());
        message.extend_from_slice(label.as_bytes());
        message.push(0);
        message.extend_from_slice(nonce);
        siphash(self.key, &message)
    }
}

/// Compares in constant time.
pub(crate) fn same(shown: &[u8], expected: &Stamp) -> bool {
    // One step for all bytes: a receiver of datagrams does this millions of times per second.
    shown
        .try_into()
        .is_ok_and(|shown| black_box(u128::from_ne_bytes(shown) ^ u128::from_ne_bytes(*expected)) == 0)
}

/// Random bytes for the nonces of a listener. Opened once: where strangers took all descriptors, there is
/// none left to open it.
pub(crate) struct Nonces(File);

impl Nonces {
    pub(crate) fn open() -> io::Result<Self> {
        File::open("/dev/urandom").map(Self)
    }

    /// Sixteen bytes that cannot be foreseen.
    pub(crate) fn next(&self) -> io::Result<Stamp> {
        let mut bytes = [0; STAMP_BYTES];
        (&self.0).read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

fn round(v: &mut [u64; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[2] = v[2].wrapping_add(v[3]);
    v[1] = v[1].rotate_left(13) ^ v[0];
    v[3] = v[3].rotate_left(16) ^ v[2];
    v[0] = v[0].rotate_left(32);
    v[2] = v[2].wrapping_add(v[1]);
    v[0] = v[0].wrapping_add(v[3]);
    v[1] = v[1].rotate_left(17) ^ v[2];
    v[3] = v[3].rotate_left(21) ^ v[0];
    v[2] = v[2].rotate_left(32);
}

fn finish(v: &mut [u64; 4]) -> u64 {
    for _ in 0..4 {
        round(v);
    }
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

/// SipHash-2-4 with 128 bits of output, after the paper of Aumasson and Bernstein and its reference vectors.
fn siphash(key: (u64, u64), message: &[u8]) -> Stamp {
    let mut v = [
        key.0 ^ 0x736f_6d65_7073_6575,
        key.1 ^ 0x646f_7261_6e64_6f6d ^ 0xee,
        key.0 ^ 0x6c79_6765_6e65_7261,
        key.1 ^ 0x7465_6462_7974_6573,
    ];
    let absorb = |v: &mut [u64; 4], word: u64| {
        v[3] ^= word;
        round(v);
        round(v);
        v[0] ^= word;
    };
    let mut words = message.chunks_exact(8);
    for word in &mut words {
        absorb(&mut v, word.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte)));
    }
    let rest = words.remainder().iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
    absorb(&mut v, rest | (message.len() as u64) << 56);
    let mut stamp = [0; STAMP_BYTES];
    v[2] ^= 0xee;
    stamp[..8].copy_from_slice(&finish(&mut v).to_le_bytes());
    v[1] ^= 0xdd;
    stamp[8..].copy_from_slice(&finish(&mut v).to_le_bytes());
    stamp
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reference_vectors() {
        let key = Token::new(std::array::from_fn(|i| i as u8)).key;
        assert_eq!(u128::from_be_bytes(siphash(key, &[])), 0xa381_7f04_ba25_a8e6_6df6_7214_c755_0293);
        assert_eq!(u128::from_be_bytes(siphash(key, &[0])), 0xda87_c1d8_6b99_af44_3476_5911_9b22_fc45);
    }

    #[test]
    fn a_stamp_depends_on_token_label_and_nonce() {
        let token = Token::new([1; 16]);
        let stamp = token.stamp("go", &[5; 16]);
        assert!(same(&stamp, &token.stamp("go", &[5; 16])));
        assert!(!same(&stamp, &token.stamp("go", &[6; 16])));
        assert!(!same(&stamp, &token.stamp("stop", &[5; 16])));
        assert!(!same(&stamp, &Token::new([2; 16]).stamp("go", &[5; 16])));
        assert!(!same(&stamp[..15], &stamp));
        assert!(!same(&[], &stamp));
        let nonces = Nonces::open().unwrap();
        assert_ne!(nonces.next().unwrap(), nonces.next().unwrap());
    }
}
