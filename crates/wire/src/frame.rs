//! Frames: bounded, checksummed pieces of a byte stream.
//!
//! In: bytes as a pipe delivers them, cut anywhere. Out: whole bodies with their kind, or the one reason why
//! the stream is unusable. It never panics on input, never allocates more than it was sent, and never reads a
//! body.
//!
//! A stream starts with [`MAGIC`]; a login shell may print something before it. Then frames follow:
//!
//! | bytes | what |
//! | --- | --- |
//! | 2 | marker `LR` |
//! | 1 | kind, see [`FrameKind`] |
//! | 1 | zero |
//! | 4 | length of the body, little endian, at most [`BODY_BYTES_MAX`] |
//! | 4 | CRC-32 of kind, zero, length and body, little endian |
//! | n | body |

use thiserror::Error;

/// What a stream starts with. Holds bytes that no banner in any text encoding holds.
pub const MAGIC: [u8; 16] = *b"\x00\xfflinerate-wire\n";

/// Longest body in bytes (16 MiB): a host with thousands of interrupts sends facts of about 1 MiB.
pub const BODY_BYTES_MAX: usize = 16 << 20;

/// Bytes before the body.
pub const HEADER_BYTES: usize = 12;

/// Noise that is passed over before [`MAGIC`]: banners and complaints of login shells.
pub const BANNER_BYTES_MAX: usize = 64 << 10;

const MARKER: [u8; 2] = *b"LR";

/// Direction of a frame, so that an echoing terminal is recognised as such.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum FrameKind {
    /// From the operator.
    ToNode = 1,
    /// From the node.
    FromNode = 2,
}

impl FrameKind {
    fn of(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::ToNode),
            2 => Some(Self::FromNode),
            _ => None,
        }
    }
}

/// Why a stream cannot be read any further.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FrameError {
    /// The start of a stream did not come.
    #[error("no linerate stream in the first {seen_bytes} bytes; they begin with '{begin}'")]
    NoMagic {
        /// Bytes examined.
        seen_bytes: usize,
        /// The first of them, readable.
        begin: String,
    },
    /// Bytes that are no frame.
    #[error("no frame but the bytes {seen:02x?}")]
    Garbage {
        /// The first bytes.
        seen: [u8; 4],
    },
    /// Longer than allowed.
    #[error("a frame of {bytes} bytes where at most {BODY_BYTES_MAX} are allowed")]
    TooLarge {
        /// Announced or given length of the body.
        bytes: usize,
    },
    /// The checksum differs.
    #[error("a frame of {bytes} bytes with checksum {seen:08x} instead of {expected:08x}")]
    Checksum {
        /// Length of the body.
        bytes: usize,
        /// Checksum in the header.
        seen: u32,
        /// Checksum of the bytes.
        expected: u32,
    },
    /// The stream ended inside a frame.
    #[error("the stream ended after {have_bytes} of {want_bytes} bytes of a frame")]
    Torn {
        /// Bytes there.
        have_bytes: usize,
        /// Bytes that the frame has.
        want_bytes: usize,
    },
}

/// A whole frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Direction.
    pub kind: FrameKind,
    /// What it carries.
    pub body: Vec<u8>,
}

/// Appends a frame to `out`.
pub fn encode(kind: FrameKind, body: &[u8], out: &mut Vec<u8>) -> Result<(), FrameError> {
    if body.len() > BODY_BYTES_MAX {
        return Err(FrameError::TooLarge { bytes: body.len() });
    }
    let length = (body.len() as u32).to_le_bytes();
    out.reserve(HEADER_BYTES + body.len());
    out.extend_from_slice(&MARKER);
    out.extend_from_slice(&[kind as u8, 0]);
    out.extend_from_slice(&length);
    out.extend_from_slice(&checksum(kind as u8, length, body).to_le_bytes());
    out.extend_from_slice(body);
    Ok(())
}

fn checksum(kind: u8, length: [u8; 4], body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&[kind, 0]);
    hasher.update(&length);
    hasher.update(body);
    hasher.finalize()
}

/// Finds the start of a stream behind a bounded amount of noise.
#[derive(Debug)]
pub struct SkipToMagic {
    limit: usize,
    seen: Vec<u8>,
    found: bool,
}

impl SkipToMagic {
    /// Allows `limit` bytes of noise before [`MAGIC`].
    pub fn new(limit: usize) -> Self {
        Self { limit, seen: Vec::new(), found: false }
    }

    /// Whether the start was found.
    pub fn found(&self) -> bool {
        self.found
    }

    /// What came before the start, readable and shortened: often the reason why there is no stream at all.
    pub fn noise(&self) -> String {
        readable(&self.seen)
    }

    /// Takes bytes; gives those that belong to the stream.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<u8>, FrameError> {
        if self.found {
            return Ok(bytes.to_vec());
        }
        let from = self.seen.len().saturating_sub(MAGIC.len() - 1);
        self.seen.extend_from_slice(bytes);
        if let Some(at) = self.seen[from..].windows(MAGIC.len()).position(|w| w == MAGIC)
            && from + at <= self.limit
        {
            let rest = self.seen.split_off(from + at + MAGIC.len());
            self.seen.truncate(from + at);
            self.found = true;
            return Ok(rest);
        }
        // A start that is still cut off may lie wholly behind the allowed noise.
        if self.seen.len() >= self.limit + MAGIC.len() {
            return Err(FrameError::NoMagic { seen_bytes: self.seen.len(), begin: self.noise() });
        }
        Ok(Vec::new())
    }
}

/// The first 200 bytes as text on one line.
fn readable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]);
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().filter(|c| !c.is_control()).collect()
}

/// Buffer that a decoder keeps between two frames.
const KEPT_BYTES: usize = 16 << 10;

/// Takes a stream behind its [`MAGIC`] apart. After an error it repeats that error.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: Vec<u8>,
    start: usize,
    failed: Option<FrameError>,
}

impl Decoder {
    /// A decoder at the start of a frame.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes bytes. Call [`Decoder::next_frame`] until it gives `None` after each, so that the buffer stays
    /// small.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.failed.is_none() {
            self.buffer.drain(..self.start);
            self.start = 0;
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// The next whole frame, `None` when more bytes are needed.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.read().inspect_err(|error| {
            self.failed = Some(error.clone());
            self.buffer = Vec::new();
            self.start = 0;
        })
    }

    /// Whether the stream may end here.
    pub fn end(&self) -> Result<(), FrameError> {
        match (&self.failed, self.buffer.len() - self.start) {
            (Some(error), _) => Err(error.clone()),
            (None, 0) => Ok(()),
            (None, have) => Err(FrameError::Torn { have_bytes: have, want_bytes: self.wanted() }),
        }
    }

    /// Length of the frame at the front, as far as it is known.
    fn wanted(&self) -> usize {
        let rest = &self.buffer[self.start..];
        rest.first_chunk::<HEADER_BYTES>().map_or(HEADER_BYTES, |h| HEADER_BYTES + body_length(h))
    }

    fn read(&mut self) -> Result<Option<Frame>, FrameError> {
        let rest = &self.buffer[self.start..];
        // Garbage is refused at the first byte that differs, not only when a whole header is there.
        let known = rest.len().min(2);
        if rest[..known] != MARKER[..known]
            || (rest.len() > 3 && (FrameKind::of(rest[2]).is_none() || rest[3] != 0))
        {
            let mut seen = [0; 4];
            seen[..rest.len().min(4)].copy_from_slice(&rest[..rest.len().min(4)]);
            return Err(FrameError::Garbage { seen });
        }
        let Some(header) = rest.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
        let length = body_length(header);
        if length > BODY_BYTES_MAX {
            return Err(FrameError::TooLarge { bytes: length });
        }
        let Some(body) = rest.get(HEADER_BYTES..HEADER_BYTES + length) else { return Ok(None) };
        let seen = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
        let expected = checksum(header[2], [header[4], header[5], header[6], header[7]], body);
        if seen != expected {
            return Err(FrameError::Checksum { bytes: length, seen, expected });
        }
        let Some(kind) = FrameKind::of(header[2]) else { return Ok(None) };
        let frame = Frame { kind, body: body.to_vec() };
        self.start += HEADER_BYTES + length;
        // Free the buffer of a large frame at once: an operator has thousands of decoders, and all nodes send
        // their facts in the same second.
        if self.start == self.buffer.len() && self.buffer.capacity() > KEPT_BYTES {
            self.buffer = Vec::new();
            self.start = 0;
        }
        Ok(Some(frame))
    }
}

fn body_length(header: &[u8; HEADER_BYTES]) -> usize {
    u32::from_le_bytes([header[4], header[5], header[6], header[7]]) as usize
}
