//! A sealed stream for sessions over an untrusted network: both ends prove that they know the key of the run,
//! and what follows is encrypted.
//!
//! An agent has a key of its own: its number goes in the clear first, and is mixed in with the name.
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
/// How that of an agent begins; the number of its key follows.
const AGENT_HANDSHAKE: [u8; 8] = *b"LRAGENT1";
/// Length of the number of an agent's key.
pub const KEY_ID_BYTES: usize = 16;
/// A number of Curve25519 and the tag of an empty, encrypted text.
const NOISE_BYTES: usize = 32 + TAG_BYTES;
/// What ChaCha20-Poly1305 adds to each record.
const TAG_BYTES: usize = 16;
/// Length of the handshake of either end with the key of a run.
pub const HANDSHAKE_BYTES: usize = HANDSHAKE.len() + NOISE_BYTES;
/// What a record carries at most; more is cut into several. A stream buffers one.
pub const RECORD_BYTES_MAX: usize = 16 << 10;
/// Bytes before a record: its length, big-endian, tag included.
const LENGTH_BYTES: usize = 2;

/// The secret of a run or of an agent. Its text is never shown.
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
}

/// Bytes as hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing into a `String` cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn of_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let digits = text.as_bytes();
    if digits.len() != 2 * N || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

impl Serialize for Key {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&hex(&self.0))
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        // The text itself must not get into an error.
        let key = of_hex(&text).map(Self);
        key.ok_or_else(|| serde::de::Error::custom("a key that is not 64 hexadecimal digits"))
    }
}

/// The key of one agent: a number by which the operator finds it, and the secret. Its text is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct AgentKey {
    id: [u8; KEY_ID_BYTES],
    secret: Key,
}

impl std::fmt::Debug for AgentKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AgentKey(secret)")
    }
}

impl AgentKey {
    /// Bytes of a key: its number and its secret.
    pub const BYTES: usize = KEY_ID_BYTES + 32;

    /// A key of random bytes.
    pub fn new(random: [u8; Self::BYTES]) -> Self {
        let (mut id, mut secret) = ([0; KEY_ID_BYTES], [0; 32]);
        id.copy_from_slice(&random[..KEY_ID_BYTES]);
        secret.copy_from_slice(&random[KEY_ID_BYTES..]);
        Self { id, secret: Key(secret) }
    }

    /// Its number, which is no secret.
    pub fn id(&self) -> [u8; KEY_ID_BYTES] {
        self.id
    }

    /// Instead of a key that has this number, where there is none.
    pub fn unknown(id: [u8; KEY_ID_BYTES], secret: Key) -> Self {
        Self { id, secret }
    }

    /// As hexadecimal digits, for the file of the agent alone.
    pub(crate) fn hex(&self) -> String {
        hex(&self.id) + &hex(&self.secret.0)
    }

    pub(crate) fn of_hex(text: &str) -> Option<Self> {
        of_hex(text).map(Self::new)
    }

    /// The number of the key that the handshake of an agent names: `None` when more bytes are needed.
    pub fn named(handshake: &[u8]) -> Result<Option<[u8; KEY_ID_BYTES]>, SealError> {
        let known = handshake.len().min(AGENT_HANDSHAKE.len());
        if handshake[..known] != AGENT_HANDSHAKE[..known] {
            return Err(SealError::Stranger);
        }
        Ok(handshake.get(AGENT_HANDSHAKE.len()..).and_then(|rest| rest.first_chunk().copied()))
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
    #[error("it does not know the key")]
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
    /// What both ends send in the clear before it.
    opening: Vec<u8>,
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
        Self::new(key, HANDSHAKE.to_vec(), "", false)
    }

    /// The end that was dialled. It sends nothing before the other one has proved that it knows the key.
    pub fn answer(key: &Key) -> Result<Self, SealError> {
        Self::new(key, HANDSHAKE.to_vec(), "", true)
    }

    /// An agent that dials, under the name of its host.
    pub fn dial_as(key: &AgentKey, name: &str) -> Result<Self, SealError> {
        Self::new(&key.secret, Self::opening_of(key), name, false)
    }

    /// The end that an agent dialled, who has to know this key and to use it under this name.
    pub fn answer_to(key: &AgentKey, name: &str) -> Result<Self, SealError> {
        Self::new(&key.secret, Self::opening_of(key), name, true)
    }

    fn opening_of(key: &AgentKey) -> Vec<u8> {
        [&AGENT_HANDSHAKE[..], &key.id].concat()
    }

    fn new(key: &Key, opening: Vec<u8>, name: &str, answers: bool) -> Result<Self, SealError> {
        let prologue = [&opening, name.as_bytes()].concat();
        let noise = Box::new(state(key, &prologue, answers)?);
        let mut handshake =
            Self { noise, opening, answers, taken: Vec::new(), output: Vec::new(), failed: None };
        if !answers {
            handshake.speak()?;
        }
        Ok(handshake)
    }

    fn speak(&mut self) -> Result<(), SealError> {
        let mut bytes = [0; NOISE_BYTES];
        let length =
            self.noise.write_message(&[], &mut bytes).map_err(|e| SealError::Library(e.to_string()))?;
        self.output.extend_from_slice(&self.opening);
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
        let length = self.opening.len() + NOISE_BYTES;
        let wanted = length - self.taken.len();
        let (ours, rest) = bytes.split_at(bytes.len().min(wanted));
        self.taken.extend_from_slice(ours);
        let known = self.taken.len().min(self.opening.len());
        if self.taken[..known] != self.opening[..known] {
            return Err(SealError::Stranger);
        }
        if self.taken.len() < length {
            return Ok(None);
        }
        let mut nothing = [0; TAG_BYTES];
        let message = &self.taken[self.opening.len()..];
        self.noise.read_message(message, &mut nothing).map_err(|_| SealError::Key)?;
        if self.answers {
            self.speak()?;
        }
        // The state is used up; a handshake that is over answers nothing.
        let over = SealError::Library("the handshake is over".to_owned());
        let fresh = state(&Key([0; 32]), &[], true)?;
        let noise = std::mem::replace(&mut *self.noise, fresh);
        self.failed = Some(over);
        let noise = noise.into_stateless_transport_mode().map_err(|e| SealError::Library(e.to_string()))?;
        let noise = Arc::new(noise);
        let mut opener =
            Opener { noise: Arc::clone(&noise), number: 0, buffer: Vec::new(), start: 0, failed: None };
        opener.push(rest);
        Ok(Some(Sealed { sealer: Sealer { noise, number: 0 }, opener }))
    }
}

/// The state of the library before the first byte.
fn state(key: &Key, prologue: &[u8], answers: bool) -> Result<HandshakeState, SealError> {
    let library = |error: snow::Error| SealError::Library(error.to_string());
    let params = "Noise_NNpsk0_25519_ChaChaPoly_SHA256".parse().map_err(library)?;
    let builder = Builder::new(params).psk(0, &key.0).and_then(|b| b.prologue(prologue)).map_err(library)?;
    if answers { builder.build_responder() } else { builder.build_initiator() }.map_err(library)
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
