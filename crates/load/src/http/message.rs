//! Answers of HTTP/1.1: head and body, read with bounds.
//!
//! What comes in: bytes of a server that may be broken or hostile. What goes out: status, length, where a
//! redirect leads, and the count of the body's bytes. The body itself is thrown away unless it is to be kept.
//! A head has at most 64 kB, a chunk's header 256 bytes.
//!
//! The crate `httparse` would save no line: the bounds, the lines of chunks and the meaning of the fields are
//! what is long here, and it reads none of them.

use std::io::{self, ErrorKind, Read};

const HEAD_MAX: usize = 64 << 10;
const LINE_MAX: usize = 256;
const READ_BYTES: usize = 256 << 10;
/// Interim answers (1xx) before the real one.
const INTERIM_MAX: usize = 4;

/// How long a body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    Bytes(u64),
    Chunked,
    ToTheEnd,
}

/// The head of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) status: u16,
    pub(super) body: Length,
    pub(super) location: Option<String>,
}

/// Whether a body was read to its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Body {
    Whole,
    Cut,
}

fn bad(why: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, why.to_owned())
}

/// What comes from a server.
pub(super) struct Incoming<S> {
    stream: S,
    buffer: Vec<u8>,
    at: usize,
    filled: usize,
    /// The body, where it is to be kept.
    kept: Option<Vec<u8>>,
}

impl<S: Read> Incoming<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, buffer: vec![0; READ_BYTES], at: 0, filled: 0, kept: None }
    }

    /// Reads a body as [`Self::body`] does, and keeps it.
    pub(super) fn kept_body(&mut self, length: Length, most: u64) -> io::Result<(Body, Vec<u8>)> {
        self.kept = Some(Vec::new());
        let end = self.body(length, most, &mut 0)?;
        Ok((end, self.kept.take().unwrap_or_default()))
    }

    /// Passes over bytes of a body in the buffer.
    fn pass(&mut self, count: usize) {
        let end = self.filled.min(self.at + count);
        if let Some(kept) = &mut self.kept {
            kept.extend_from_slice(&self.buffer[self.at..end]);
        }
        self.at = end;
    }

    /// Reads once into an empty buffer; 0 at the end.
    fn fill(&mut self) -> io::Result<usize> {
        (self.at, self.filled) = (0, self.stream.read(&mut self.buffer)?);
        Ok(self.filled)
    }

    /// Waits for the first byte.
    pub(super) fn first(&mut self) -> io::Result<()> {
        if self.fill()? == 0 { Err(bad("the server closed without an answer")) } else { Ok(()) }
    }

    fn byte(&mut self) -> io::Result<u8> {
        if self.at == self.filled && self.fill()? == 0 {
            return Err(bad("the server closed in the middle of the answer"));
        }
        self.at += 1;
        Ok(self.buffer[self.at - 1])
    }

    /// One line without its end.
    fn line(&mut self, most: usize) -> io::Result<String> {
        let mut line = Vec::new();
        loop {
            match self.byte()? {
                b'\n' => break,
                byte if line.len() < most => line.push(byte),
                _ => return Err(bad(&format!("a line of the answer is longer than {most} bytes"))),
            }
        }
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Ok(String::from_utf8_lossy(&line).into_owned())
    }

    /// The head of the answer, after interim ones.
    pub(super) fn head(&mut self) -> io::Result<Head> {
        for _ in 0..=INTERIM_MAX {
            let head = self.one_head()?;
            if !(100..200).contains(&head.status) {
                return Ok(head);
            }
        }
        Err(bad("too many interim answers"))
    }

    fn one_head(&mut self) -> io::Result<Head> {
        let mut left = HEAD_MAX;
        let first = self.line(left)?;
        let status =
            first.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)).and_then(|s| s.parse().ok());
        let status: u16 = status.ok_or_else(|| bad("the answer is not HTTP/1"))?;
        let (mut length, mut chunked, mut location) = (None, false, None);
        left = left.saturating_sub(first.len() + 2);
        loop {
            let line = self.line(left).map_err(|e| {
                if e.kind() == ErrorKind::InvalidData && left < HEAD_MAX / 2 {
                    bad("the answer's head is longer than 64 kB")
                } else {
                    e
                }
            })?;
            if line.is_empty() {
                break;
            }
            left = left.saturating_sub(line.len() + 2);
            let Some((name, value)) = line.split_once(':') else { continue };
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => {
                    let bytes = value.parse::<u64>().map_err(|_| bad("Content-Length is not a number"))?;
                    if length.is_some_and(|length| length != bytes) {
                        return Err(bad("two different Content-Lengths"));
                    }
                    length = Some(bytes);
                }
                "transfer-encoding" => {
                    chunked =
                        value.to_ascii_lowercase().split(',').next_back().map(str::trim) == Some("chunked");
                }
                "location" => location = Some(value.to_owned()),
                _ => {}
            }
        }
        let body = match length {
            _ if (100..200).contains(&status) || matches!(status, 204 | 304) => Length::Bytes(0),
            _ if chunked => Length::Chunked,
            Some(bytes) => Length::Bytes(bytes),
            None => Length::ToTheEnd,
        };
        Ok(Head { status, body, location })
    }

    /// Reads the body, at most `most` bytes; `bytes` counts them, also when it ends badly.
    pub(super) fn body(&mut self, length: Length, most: u64, bytes: &mut u64) -> io::Result<Body> {
        match length {
            Length::Bytes(length) => {
                self.skip(length.min(most), bytes)?;
                Ok(if length > most { Body::Cut } else { Body::Whole })
            }
            Length::ToTheEnd => loop {
                if self.at == self.filled {
                    match self.fill() {
                        // A server that ends TLS without a word: many do.
                        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(Body::Whole),
                        Ok(0) => return Ok(Body::Whole),
                        other => other?,
                    };
                }
                let here = ((self.filled - self.at) as u64).min(most - *bytes);
                self.pass(here as usize);
                *bytes += here;
                if *bytes >= most {
                    return Ok(Body::Cut);
                }
            },
            Length::Chunked => self.chunks(most, bytes),
        }
    }

    fn chunks(&mut self, most: u64, bytes: &mut u64) -> io::Result<Body> {
        loop {
            let line = self.line(LINE_MAX)?;
            let size = line.split(';').next().unwrap_or_default().trim();
            let plain = !size.is_empty() && size.bytes().all(|b| b.is_ascii_hexdigit());
            let size = u64::from_str_radix(size, 16).ok().filter(|_| plain);
            let size = size.ok_or_else(|| bad("the size of a chunk is not a number of 64 bits"))?;
            if size == 0 {
                // Trailers, then an empty line; their sum is bounded like a head.
                let mut left = HEAD_MAX;
                while left > 0 {
                    let line = self.line(left)?;
                    if line.is_empty() {
                        return Ok(Body::Whole);
                    }
                    left = left.saturating_sub(line.len() + 2);
                }
                return Err(bad("the answer's trailers are longer than 64 kB"));
            }
            let left = most - *bytes;
            self.skip(size.min(left), bytes)?;
            if size > left || (size == left && *bytes >= most) {
                return Ok(Body::Cut);
            }
            if !self.line(2)?.is_empty() {
                return Err(bad("a chunk is longer than its size"));
            }
        }
    }

    fn skip(&mut self, count: u64, bytes: &mut u64) -> io::Result<()> {
        let mut left = count;
        while left > 0 {
            if self.at == self.filled {
                let ended = match self.fill() {
                    Ok(got) => got == 0,
                    Err(error) if error.kind() == ErrorKind::UnexpectedEof => true,
                    Err(error) => return Err(error),
                };
                if ended {
                    return Err(bad(&format!("the server closed {left} bytes too early")));
                }
            }
            let here = ((self.filled - self.at) as u64).min(left);
            self.pass(here as usize);
            left -= here;
            *bytes += here;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(answer: &[u8], most: u64) -> Result<(u16, Body, u64), String> {
        let mut incoming = Incoming::new(answer);
        let mut bytes = 0;
        let head = incoming.head().map_err(|e| e.to_string())?;
        let body = incoming.body(head.body, most, &mut bytes).map_err(|e| e.to_string())?;
        Ok((head.status, body, bytes))
    }

    #[test]
    fn bodies_end_at_their_length() {
        let cases: [(&[u8], _); 7] = [
            (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", (200, Body::Whole, 5)),
            (b"HTTP/1.0 200 OK\r\n\r\nto the end", (200, Body::Whole, 10)),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n", (200, Body::Whole, 5)),
            (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", (404, Body::Whole, 0)),
            (b"HTTP/1.1 204 No\r\n\r\n", (204, Body::Whole, 0)),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 500000000000\r\n\r\n0123456789abcdefghijklmnop", (200, Body::Cut, 20)),
            (b"HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\nffffffffffffffff\n0123456789abcdefghijklmnop", (200, Body::Cut, 20)),
        ];
        for (answer, expected) in cases {
            assert_eq!(read(answer, 20), Ok(expected), "{}", String::from_utf8_lossy(answer));
        }
    }

    #[test]
    fn a_body_is_kept_without_its_chunks_and_within_its_bound() {
        let kept = |answer: &[u8], most: u64| {
            let mut incoming = Incoming::new(answer);
            let head = incoming.head().unwrap();
            incoming.kept_body(head.body, most).map_err(|e| e.to_string())
        };
        let chunked =
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
        assert_eq!(kept(chunked, 20), Ok((Body::Whole, b"abcde".to_vec())));
        assert_eq!(kept(b"HTTP/1.0 200 OK\r\n\r\nto the end", 20), Ok((Body::Whole, b"to the end".to_vec())));
        let long = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n123456789";
        assert_eq!(kept(long, 4), Ok((Body::Cut, b"1234".to_vec())));
        assert!(kept(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n1", 20).is_err());
    }

    #[test]
    fn hostile_answers_end_with_a_reason() {
        let endless = [b"HTTP/1.1 200 OK\r\n".as_slice(), &b"X: y\r\n".repeat(100_000)].concat();
        let long = [b"HTTP/1.1 200 OK\r\nX: ".as_slice(), &vec![b'x'; 100_000]].concat();
        let interim = b"HTTP/1.1 100 Continue\r\n\r\n".repeat(50);
        let cases: [(&[u8], &str); 11] = [
            (&endless, "64 kB"),
            (&long, "longer than"),
            (&interim, "interim"),
            (b"SSH-2.0-OpenSSH\r\n", "not HTTP/1"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", "not a number"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "two different"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", "4 bytes too early"),
            (
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1ffffffffffffffff\r\n",
                "size of a chunk",
            ),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", "size of a chunk"),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n", "longer than its size"),
            (b"HTTP/1.1 200 OK\r\nContent-Le", "closed in the middle"),
        ];
        for (answer, reason) in cases {
            let got = read(answer, 1 << 40);
            assert!(got.as_ref().is_err_and(|e| e.contains(reason)), "{reason}: {got:?}");
        }
    }

    proptest! {
        #[test]
        fn no_answer_counts_more_than_allowed(
            head in "(HTTP/1\\.1 200 OK\r\n)?(Transfer-Encoding: chunked\r\n|Content-Length: [0-9]{1,20}\r\n)?\r\n",
            rest in prop::collection::vec(any::<u8>(), 0..300), most in 1_u64..50
        ) {
            let answer = [head.as_bytes(), &rest].concat();
            if let Ok((_, _, bytes)) = read(&answer, most) {
                prop_assert!(bytes <= most);
            }
        }

        #[test]
        fn chunks_are_what_was_sent(parts in prop::collection::vec(1_usize..5000, 0..20)) {
            let mut answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
            for part in &parts {
                answer.extend(format!("{part:x}\r\n").bytes().chain(vec![b'x'; *part]).chain(*b"\r\n"));
            }
            answer.extend(b"0\r\n\r\n");
            let sum = parts.iter().sum::<usize>() as u64;
            prop_assert_eq!(read(&answer, 1 << 30), Ok((200, Body::Whole, sum)));
        }
    }
}
