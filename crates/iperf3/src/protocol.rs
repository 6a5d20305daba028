//! The words of iperf3's control connection: state bytes, the cookie, messages with their length, error
//! numbers.
//!
//! What comes in: bytes in pieces of any size. What goes out: single states and whole messages. No I/O, no
//! clock; it never keeps more of a message than the limit that its reader names, whatever length the peer
//! announces.

/// Bytes of the cookie: 36 characters and a zero byte.
pub const COOKIE_BYTES: usize = 37;

/// Proof that a data stream belongs to the test of a control connection. Travels in clear: it distinguishes
/// tests and does not protect against eavesdroppers.
pub type Cookie = [u8; COOKIE_BYTES];

/// Default port of control connection and data streams.
pub const PORT: u16 = 5201;

/// Longest parameter message that an iperf3 server reads, bytes.
pub const PARAMETERS_BYTES_MAX: usize = 8192;

/// Longest results that are read here, bytes; iperf3 itself has no limit. 256 streams take about 64 KiB.
pub const RESULTS_BYTES_MAX: usize = 256 << 10;

/// The same with the output of a server that was asked for it.
pub const OUTPUT_BYTES_MAX: usize = 16 << 20;

/// Streams of one direction at most, as in iperf3.
pub const STREAMS_MAX: u32 = 128;

/// The least that a UDP client sends to open a stream, and what iperf3 sends since 3.0.
pub const UDP_HELLO: [u8; 4] = *b"9876";

/// What a server answers to [`UDP_HELLO`].
pub const UDP_REPLY: [u8; 4] = *b"6789";

/// States; each is one signed byte on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// All streams are there.
    TestStart,
    /// Go.
    TestRunning,
    /// The client has had enough.
    TestEnd,
    /// The client may send its parameters.
    ParamExchange,
    /// The client may open its streams.
    CreateStreams,
    /// The server was stopped.
    ServerTerminate,
    /// The client was stopped.
    ClientTerminate,
    /// The client may send its results.
    ExchangeResults,
    /// The client may print.
    DisplayResults,
    /// The test is over.
    Done,
    /// The server is busy.
    AccessDenied,
    /// Two integers follow: iperf3's error number and the system's.
    ServerError,
}

impl State {
    const ALL: [Self; 12] = [
        Self::TestStart,
        Self::TestRunning,
        Self::TestEnd,
        Self::ParamExchange,
        Self::CreateStreams,
        Self::ServerTerminate,
        Self::ClientTerminate,
        Self::ExchangeResults,
        Self::DisplayResults,
        Self::Done,
        Self::AccessDenied,
        Self::ServerError,
    ];

    /// The byte on the wire.
    pub fn byte(self) -> u8 {
        match self {
            Self::TestStart => 1,
            Self::TestRunning => 2,
            Self::TestEnd => 4,
            Self::ParamExchange => 9,
            Self::CreateStreams => 10,
            Self::ServerTerminate => 11,
            Self::ClientTerminate => 12,
            Self::ExchangeResults => 13,
            Self::DisplayResults => 14,
            Self::Done => 16,
            Self::AccessDenied => 0xff,
            Self::ServerError => 0xfe,
        }
    }

    /// The state of a byte.
    pub fn of(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.byte() == byte)
    }
}

/// iperf3's numbers of the errors that are sent or named here.
pub mod number {
    /// Total rate above the server's limit.
    pub const TOTAL_RATE: i32 = 27;
    /// Duration above the server's limit.
    pub const SERVER_DURATION: i32 = 37;
    /// Bad parameters.
    pub const PARAMETERS: i32 = 114;
    /// Cannot listen for or open streams.
    pub const STREAM_LISTEN: i32 = 109;
    /// Not authorised.
    pub const AUTHORISATION: i32 = 142;
    /// No data for too long.
    pub const NO_DATA: i32 = 144;
    /// The test took longer than it should.
    pub const DURATION_EXPIRED: i32 = 160;

    /// In words, for those that a user may meet.
    pub fn words(number: i32) -> &'static str {
        match number {
            TOTAL_RATE => "the total rate is above the server's limit",
            SERVER_DURATION => "the duration is above the server's limit",
            PARAMETERS => "the server does not take the parameters",
            STREAM_LISTEN => "the server cannot listen for the streams",
            AUTHORISATION => "not authorised: user, password, key or clock do not fit",
            NO_DATA => "no data arrived at the server for too long",
            DURATION_EXPIRED => "the test took longer than it should",
            _ => "no words for it here",
        }
    }

    /// What may help.
    pub fn hint(number: i32) -> Option<&'static str> {
        // It gives the same number for a token that it cannot decrypt.
        (number == AUTHORISATION).then_some("a server before iperf3 3.17 needs --use-pkcs1-padding")
    }
}

/// The alphabet of cookies: that of base 32, in small letters.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// A cookie of 36 random bytes.
pub fn cookie(random: &[u8; COOKIE_BYTES - 1]) -> Cookie {
    let mut cookie = [0; COOKIE_BYTES];
    for (slot, byte) in cookie.iter_mut().zip(random) {
        *slot = ALPHABET[usize::from(byte % 32)];
    }
    cookie
}

/// The cookie without its zero byte, as text.
pub fn cookie_text(cookie: &Cookie) -> String {
    String::from_utf8_lossy(&cookie[..COOKIE_BYTES - 1]).into_owned()
}

/// A message as it travels: its length as four bytes, big end first, then its bytes.
pub(crate) fn framed(message: &[u8]) -> Vec<u8> {
    let mut bytes = u32::try_from(message.len()).unwrap_or(u32::MAX).to_be_bytes().to_vec();
    bytes.extend_from_slice(message);
    bytes
}

/// What a server sends before it drops a client.
pub(crate) fn refusal(number: i32, errno: i32) -> Vec<u8> {
    let mut bytes = vec![State::ServerError.byte()];
    bytes.extend_from_slice(&number.to_be_bytes());
    bytes.extend_from_slice(&errno.to_be_bytes());
    bytes
}

/// Why the peer is no iperf3, or no well-behaved one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A byte that is no state, or one that does not belong here.
    #[error("the peer sent state {byte} while {during} was expected")]
    State {
        /// The byte, signed as iperf3 prints it.
        byte: i8,
        /// What was expected.
        during: &'static str,
    },
    /// A length above the limit.
    #[error("the peer announced {what} of {bytes} bytes, at most {limit} are read")]
    TooLong {
        /// Which message.
        what: &'static str,
        /// Announced.
        bytes: u64,
        /// Allowed.
        limit: usize,
    },
    /// A message that cannot be used.
    #[error("the peer sent {what} that cannot be used: {why}")]
    Message {
        /// Which message.
        what: &'static str,
        /// Why not.
        why: String,
    },
    /// More bytes than anybody has a reason to send now.
    #[error("the peer sent {bytes} bytes while it was not its turn")]
    Flood {
        /// How many.
        bytes: usize,
    },
    /// The connection ended in the middle.
    #[error("the control connection ended in the middle of {during}")]
    Closed {
        /// The step that was interrupted.
        during: &'static str,
    },
}

/// Bytes that arrived and were not taken yet.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    taken: usize,
}

impl Inbox {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.taken == self.bytes.len() {
            self.bytes.clear();
            self.taken = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.taken
    }

    fn rest(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }

    /// Exactly so many bytes, when they are there.
    pub(crate) fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let bytes = self.rest().get(..N)?.try_into().ok()?;
        self.taken += N;
        Some(bytes)
    }

    /// A whole message, when it is there.
    pub(crate) fn message(&mut self, what: &'static str, limit: usize) -> Result<Option<Vec<u8>>, Violation> {
        let Some(head) = self.rest().get(..4).and_then(|head| head.try_into().ok()) else { return Ok(None) };
        let announced = u32::from_be_bytes(head);
        let length = announced as usize;
        if length > limit {
            return Err(Violation::TooLong { what, bytes: u64::from(announced), limit });
        }
        let Some(message) = self.rest().get(4..4 + length).map(<[u8]>::to_vec) else { return Ok(None) };
        self.taken += 4 + length;
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_their_bytes() {
        for byte in 0..=255 {
            assert!(State::of(byte).is_none_or(|state| state.byte() == byte));
        }
        assert_eq!(State::of(0xff), Some(State::AccessDenied));
        assert_eq!(State::of(15), None, "the client's own initial state never travels");
    }

    #[test]
    fn cookies_are_36_letters_and_a_zero() {
        let cookie = cookie(&std::array::from_fn(|i| (i * 7) as u8));
        assert!(cookie[..36].iter().all(|b| ALPHABET.contains(b)));
        assert_eq!((cookie[36], cookie_text(&cookie).len()), (0, 36));
    }

    #[test]
    fn a_length_above_the_limit_is_refused_before_its_bytes_come() {
        let mut inbox = Inbox::default();
        inbox.push(&u32::MAX.to_be_bytes());
        assert!(matches!(inbox.message("parameters", 8192), Err(Violation::TooLong { .. })));
    }
}
