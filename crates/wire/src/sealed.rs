//! A sealed stream for sessions over an untrusted network: both ends prove that they know the key of the run,
//! and what follows is encrypted.
//!
//! In: bytes of the other end, and plain text to send. Out: bytes to write, and plain text received. No I/O,
//! no clock. The cryptography is that of the Noise protocol (`Noise_NNpsk0_25519_ChaChaPoly_SHA256`,
//! <https://noiseprotocol.org/noise.html>) as the crate `snow` has it: the key is mixed in before the first
//! byte, so that a stranger's handshake is refused without an answer; the keys of a stream come from numbers
//! that both ends draw for it, so that no recording can be replayed, and the key alone does not decrypt one;
//! the library asks the kernel for those numbers. Everything is bounded: a handshake has [`HANDSHAKE_BYTES`],
//! a record at most [`RECORD_BYTES_MAX`]. After an error a stream sends and takes nothing more.

use std::fmt::Write as _;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use snow::{Builder, HandshakeState, StatelessTransportState};
use thiserror::Error;

/// How every handshake begins.
const HANDSHAKE: [u8; 8] = *b"LRDIAL01";
/// A number of Curve25519 and the tag of an empty, encrypted text.
const NOISE_BYTES: usize = 32 + TAG_BYTES;
/// What ChaCha20-Poly1305 adds to each record.
const TAG_BYTES: usize = 16;
/// Length of the handshake of either end.
pub const HANDSHAKE_BYTES: usize = HANDSHAKE.len() + NOISE_BYTES;
/// What a record carries at most; more is cut into several. A stream buffers one.
pub const RECORD_BYTES_MAX: usize = 16 << 10;
/// Bytes before a record: its length, big-endian, tag included.
const LENGTH_BYTES: usize = 2;

/// The secret of a run. Its text is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; 32]);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(secret)")
    }
}

impl Key {
    /// A key of random bytes.
    pub fn new(random: [u8; 32]) -> Self {
        Self(random)
    }

    fn hex(&self) -> String {
        self.0.iter().fold(String::new(), |mut text, byte| {
            // Writing into a `String` cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    fn of_hex(text: &str) -> Option<Self> {
        let mut key = [0; 32];
        let digits = text.as_bytes();
        if digits.len() != 64 || !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        for (byte, pair) in key.iter_mut().zip(digits.chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(Self(key))
    }
}

impl Serialize for Key {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.hex())
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        // The text itself must not get into an error.
        Self::of_hex(&text).ok_or_else(|| serde::de::Error::custom("a key that is not 64 hexadecimal digits"))
    }
}

/// The order to a node program that has to dial: one line of JSON on its stdin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DialOrder {
    /// Secret of the run.
    pub key: Key,
    /// Where the operator may be reached, in the order in which to try.
    pub addresses: Vec<std::net::SocketAddr>,
    /// Build of the operator; a node of another build does not dial.
    pub build: String,
    /// How long to try, seconds.
    pub wait_s: u32,
}

/// Longest line of a [`DialOrder`], bytes.
pub const ORDER_BYTES_MAX: usize = 16 << 10;

/// Who dialled: its first record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    /// Name of the node in its cluster.
    pub node: String,
    /// Process id of the node program there.
    pub pid: u32,
}

/// Longest record of a [`Caller`], bytes.
const CALLER_BYTES_MAX: usize = 512;

impl Caller {
    /// As a record.
    pub fn record(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// From a record.
    pub fn read(record: &[u8]) -> Result<Self, SealError> {
        if record.len() > CALLER_BYTES_MAX {
            return Err(SealError::Name);
        }
        serde_json::from_slice(record).map_err(|_| SealError::Name)
    }
}

/// Why a sealed stream cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SealError {
    /// Not our protocol.
    #[error("no handshake of linerate")]
    Stranger,
    /// Another key.
    #[error("it does not know the key of this run")]
    Key,
    /// A record of a length that none has.
    #[error("a record of {bytes} bytes where {min} to {max} are allowed", min = TAG_BYTES + 1, max = RECORD_BYTES_MAX + TAG_BYTES)]
    Length {
        /// Announced length.
        bytes: usize,
    },
    /// A record that was changed, or is out of order.
    #[error("record {number} was changed in transit or is out of order")]
    Forged {
        /// Counted from 0.
        number: u64,
    },
    /// The first record names no node.
    #[error("the first record names no node")]
    Name,
    /// The library refuses.
    #[error("the encryption failed: {0}")]
    Library(String),
}

/// A handshake in progress.
pub struct SealedHandshake {
    noise: Box<HandshakeState>,
    answers: bool,
    taken: Vec<u8>,
    output: Vec<u8>,
    failed: Option<SealError>,
}

/// Secrets are not shown.
impl std::fmt::Debug for SealedHandshake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handshake").field("answers", &self.answers).finish_non_exhaustive()
    }
}

/// Both directions of a stream, and what was read behind the handshake.
#[derive(Debug)]
pub struct Sealed {
    /// Encrypts.
    pub sealer: Sealer,
    /// Decrypts.
    pub opener: Opener,
}

impl SealedHandshake {
    /// The end that dials. Its handshake can be taken at once.
    pub fn dial(key: &Key) -> Result<Self, SealError> {
        let mut handshake = Self::new(key, false)?;
        handshake.speak()?;
        Ok(handshake)
    }

    /// The end that was dialled. It sends nothing before the other one has proved that it knows the key.
    pub fn answer(key: &Key) -> Result<Self, SealError> {
        Self::new(key, true)
    }

    fn new(key: &Key, answers: bool) -> Result<Self, SealError> {
        let library = |error: snow::Error| SealError::Library(error.to_string());
        let params = "Noise_NNpsk0_25519_ChaChaPoly_SHA256".parse().map_err(library)?;
        let builder =
            Builder::new(params).psk(0, &key.0).and_then(|b| b.prologue(&HANDSHAKE)).map_err(library)?;
        let noise = if answers { builder.build_responder() } else { builder.build_initiator() };
        Ok(Self {
            noise: Box::new(noise.map_err(library)?),
            answers,
            taken: Vec::new(),
            output: Vec::new(),
            failed: None,
        })
    }

    fn speak(&mut self) -> Result<(), SealError> {
        let mut bytes = [0; NOISE_BYTES];
        let length =
            self.noise.write_message(&[], &mut bytes).map_err(|e| SealError::Library(e.to_string()))?;
        self.output.extend_from_slice(&HANDSHAKE);
        self.output.extend_from_slice(&bytes[..length]);
        Ok(())
    }

    /// Bytes to write now.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// Takes bytes; returns the stream when both ends know each other. What is to be written must be taken
    /// before the stream is used. After an error it repeats that error.
    pub fn received(&mut self, bytes: &[u8]) -> Result<Option<Sealed>, SealError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.take(bytes).inspect_err(|error| {
            self.failed = Some(error.clone());
            self.output.clear();
        })
    }

    fn take(&mut self, bytes: &[u8]) -> Result<Option<Sealed>, SealError> {
        let wanted = HANDSHAKE_BYTES - self.taken.len();
        let (ours, rest) = bytes.split_at(bytes.len().min(wanted));
        self.taken.extend_from_slice(ours);
        let known = self.taken.len().min(HANDSHAKE.len());
        if self.taken[..known] != HANDSHAKE[..known] {
            return Err(SealError::Stranger);
        }
        if self.taken.len() < HANDSHAKE_BYTES {
            return Ok(None);
        }
        let mut nothing = [0; TAG_BYTES];
        self.noise.read_message(&self.taken[HANDSHAKE.len()..], &mut nothing).map_err(|_| SealError::Key)?;
        if self.answers {
            self.speak()?;
        }
        // The state is used up; a handshake that is over answers nothing.
        let over = SealError::Library("the handshake is over".to_owned());
        let fresh = Self::new(&Key([0; 32]), true)?.noise;
        let noise = std::mem::replace(&mut self.noise, fresh);
        self.failed = Some(over);
        let noise = noise.into_stateless_transport_mode().map_err(|e| SealError::Library(e.to_string()))?;
        let noise = Arc::new(noise);
        let mut opener =
            Opener { noise: Arc::clone(&noise), number: 0, buffer: Vec::new(), start: 0, failed: None };
        opener.push(rest);
        Ok(Some(Sealed { sealer: Sealer { noise, number: 0 }, opener }))
    }
}

/// The encrypting half of a stream.
pub struct Sealer {
    noise: Arc<StatelessTransportState>,
    number: u64,
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sealer").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Sealer {
    /// Appends text as records.
    pub fn seal(&mut self, text: &[u8], out: &mut Vec<u8>) -> Result<(), SealError> {
        for text in text.chunks(RECORD_BYTES_MAX) {
            let length = text.len() + TAG_BYTES;
            out.extend_from_slice(&(length as u16).to_be_bytes());
            let from = out.len();
            out.resize(from + length, 0);
            self.noise
                .write_message(self.number, text, &mut out[from..])
                .map_err(|e| SealError::Library(e.to_string()))?;
            self.number += 1;
        }
        Ok(())
    }
}

/// The decrypting half of a stream.
pub struct Opener {
    noise: Arc<StatelessTransportState>,
    number: u64,
    buffer: Vec<u8>,
    start: usize,
    failed: Option<SealError>,
}

impl std::fmt::Debug for Opener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opener").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Opener {
    /// Takes bytes. Call [`Opener::next_record`] until it gives `None` after each, so that the buffer stays
    /// small.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.failed.is_none() {
            self.buffer.drain(..self.start);
            self.start = 0;
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// The text of the next whole record, `None` when more bytes are needed. After an error it repeats that
    /// error.
    pub fn next_record(&mut self) -> Result<Option<Vec<u8>>, SealError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.read().inspect_err(|error| {
            self.failed = Some(error.clone());
            self.buffer = Vec::new();
            self.start = 0;
        })
    }

    fn read(&mut self) -> Result<Option<Vec<u8>>, SealError> {
        let rest = &self.buffer[self.start..];
        let Some(length) = rest.first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
        let length = usize::from(u16::from_be_bytes(*length));
        if !(TAG_BYTES + 1..=RECORD_BYTES_MAX + TAG_BYTES).contains(&length) {
            return Err(SealError::Length { bytes: length });
        }
        let Some(record) = rest.get(LENGTH_BYTES..LENGTH_BYTES + length) else { return Ok(None) };
        let mut text = vec![0; length];
        let forged = SealError::Forged { number: self.number };
        let bytes = self.noise.read_message(self.number, record, &mut text).map_err(|_| forged)?;
        text.truncate(bytes);
        self.number += 1;
        self.start += LENGTH_BYTES + length;
        Ok(Some(text))
    }
}
