//! What goes over a control connection, in words, for `--debug`.
//!
//! What comes in: bytes of one direction, in pieces of any size. What goes out: a line for each message. A
//! token that authenticates is never in it.

use serde_json::Value;

use super::protocol::{COOKIE_BYTES, PARAMETERS_BYTES_MAX, RESULTS_BYTES_MAX, State};

/// Level from which on states are written, as in iperf3.
const STATES: u8 = 3;
/// Level from which on messages are written too.
pub(super) const MESSAGES: u8 = 4;
/// Bytes of the two numbers behind a refusal.
const REFUSAL_BYTES: usize = 8;

/// One direction.
#[derive(Debug)]
pub(super) struct Trace {
    level: u8,
    waiting: Vec<u8>,
}

impl Trace {
    /// At this level, 0 for none.
    pub(super) fn new(level: u8) -> Self {
        Self { level, waiting: Vec::new() }
    }

    /// The messages that these bytes complete.
    pub(super) fn lines(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        if self.level < STATES {
            return lines;
        }
        self.waiting.extend_from_slice(bytes);
        while let Some((length, words, level)) = first(&self.waiting) {
            self.waiting.drain(..length);
            if level <= self.level {
                lines.push(words);
            }
        }
        // A peer that speaks another protocol.
        if self.waiting.len() > PARAMETERS_BYTES_MAX.max(RESULTS_BYTES_MAX) + 4 {
            self.waiting.clear();
        }
        lines
    }
}

/// The first whole message: its length, what it is, and its level.
fn first(bytes: &[u8]) -> Option<(usize, String, u8)> {
    let (head, rest) = bytes.split_first()?;
    match head {
        // The highest byte of a length: no message is that long.
        0 => {
            let length = u32::from_be_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
            let message = bytes.get(4..4 + length)?;
            Some((4 + length, message_in_words(message), MESSAGES))
        }
        head if head.is_ascii_alphanumeric() => {
            bytes.get(..COOKIE_BYTES)?;
            Some((COOKIE_BYTES, "a cookie".to_owned(), STATES))
        }
        head => match State::of(*head) {
            Some(State::ServerError) => {
                let numbers = rest.get(..REFUSAL_BYTES)?;
                let number = i32::from_be_bytes(numbers[..4].try_into().ok()?);
                Some((1 + REFUSAL_BYTES, format!("ServerError {number}"), STATES))
            }
            Some(state) => Some((1, format!("{state:?}"), STATES)),
            None => Some((1, format!("unknown state {}", head.cast_signed()), STATES)),
        },
    }
}

/// A message of JSON without a token; another one as it is.
fn message_in_words(message: &[u8]) -> String {
    let Ok(mut value) = serde_json::from_slice::<Value>(message) else {
        return format!("{} bytes that are no JSON", message.len());
    };
    if let Some(token) = value.get_mut("authtoken") {
        *token = "…".into();
    }
    value.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{framed, refusal};

    #[test]
    fn messages_are_whole_and_without_a_token() {
        let mut all = vec![b'a'; COOKIE_BYTES - 1];
        all.push(0);
        all.push(State::ParamExchange.byte());
        all.extend(framed(br#"{"tcp":true,"authtoken":"secret"}"#));
        all.extend(refusal(121, 0));
        all.push(3);
        let lines = |level| {
            let mut trace = Trace::new(level);
            all.chunks(3).flat_map(|piece| trace.lines(piece)).collect::<Vec<_>>()
        };
        let states = ["a cookie", "ParamExchange", "ServerError 121", "unknown state 3"];
        assert_eq!(lines(3), states);
        assert_eq!(lines(4)[2], r#"{"authtoken":"…","tcp":true}"#);
        assert_eq!(lines(2), Vec::<String>::new());
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_panic_or_keep_much(bytes in proptest::collection::vec(0_u8..255, 0..4096)) {
            let mut trace = Trace::new(MESSAGES);
            trace.lines(&bytes);
            proptest::prop_assert!(trace.waiting.len() <= bytes.len());
        }
    }
}
