//! Cleaning of a text: bytes in, clean lines out. Byte order marks, UTF-16, Latin-1, terminal colours,
//! carriage returns and the `> ` of mails are removed here, so no reader has to handle them.

use crate::limits::LINES_MAX;

/// Longest text that is read, bytes: the counters of a large host over a day are some 20 MB.
pub const BYTES_MAX: usize = 64 << 20;

/// Lines that begin with `>` from which a text is a mail that quotes.
const QUOTED_MIN: usize = 3;

/// A file, or what came in on standard input.
#[derive(Debug, Clone, Default)]
pub struct Document {
    /// Path as it is shown, from the folder that was named on: `sosreport-arc-1/proc/interrupts`.
    pub name: String,
    /// What stands in it.
    pub bytes: Vec<u8>,
}

impl Document {
    /// A text with its name.
    pub fn new(name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { name: name.into(), bytes: bytes.into() }
    }
}

/// Why a text cannot be read at all.
pub(crate) fn refused(bytes: &[u8]) -> Option<String> {
    if bytes.len() > BYTES_MAX {
        return Some(format!("{} bytes, at most {BYTES_MAX} are read", bytes.len()));
    }
    let begin = &bytes[..bytes.len().min(8192)];
    let wide = begin.starts_with(&[0xff, 0xfe]) || begin.starts_with(&[0xfe, 0xff]);
    if !wide && begin.contains(&0) {
        return Some("not a text".to_owned());
    }
    let lines = bytes.split(|byte| *byte == b'\n').count() - 1;
    (lines > LINES_MAX).then(|| format!("{lines} lines, at most {LINES_MAX} are read"))
}

/// The text with `\n` between clean lines. Every line of the input is one line of the result.
pub(crate) fn clean(bytes: &[u8]) -> String {
    let text = decode(bytes);
    let mut clean = String::with_capacity(text.len());
    let is_quoted = text.split('\n').filter(|line| line.starts_with('>')).count() >= QUOTED_MIN;
    for line in text.split('\n') {
        let line = line.strip_suffix('\r').unwrap_or(line);
        // What a progress bar wrote over is gone on the screen too.
        let line = line.rsplit('\r').next().unwrap_or(line);
        push_line(&mut clean, unquoted(line, is_quoted));
        clean.push('\n');
    }
    clean.pop();
    clean
}

/// Bytes that are not UTF-8 are Latin-1: every byte is a character there.
fn decode(bytes: &[u8]) -> String {
    let wide = |unit: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = bytes[2..].as_chunks::<2>().0.iter().map(|pair| unit(*pair)).collect();
        String::from_utf16_lossy(&units)
    };
    match bytes {
        [0xff, 0xfe, ..] => wide(u16::from_le_bytes),
        [0xfe, 0xff, ..] => wide(u16::from_be_bytes),
        _ => {
            let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
            match std::str::from_utf8(bytes) {
                Ok(text) => text.to_owned(),
                Err(_) => bytes.iter().map(|byte| char::from(*byte)).collect(),
            }
        }
    }
}

/// A line without the marks of a mail that quotes it; some programs put no blank behind the mark.
fn unquoted(mut line: &str, is_quoted: bool) -> &str {
    while let Some(rest) = line.strip_prefix('>') {
        match rest.strip_prefix(' ') {
            Some(rest) => line = rest,
            None if rest.is_empty() || rest.starts_with('>') || is_quoted => line = rest,
            None => break,
        }
    }
    line
}

/// Without colours (`ESC [ … m`), titles (`ESC ] … BEL`) and other control characters but the tab.
fn push_line(clean: &mut String, line: &str) {
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => match chars.next() {
                Some('[') => while chars.next().is_some_and(|c| !('@'..='~').contains(&c)) {},
                Some(']') => while chars.next().is_some_and(|c| c != '\u{7}') {},
                _ => {}
            },
            '\t' => clean.push(c),
            // Hard spaces come from web pages.
            '\u{a0}' => clean.push(' '),
            c if c.is_control() || c == '\u{feff}' || c == '\u{200b}' => {}
            c => clean.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_other_systems_are_taken_away() {
        assert_eq!(clean(b"\xef\xbb\xbfa\r\nb\r\n"), "a\nb\n");
        assert_eq!(clean(b"\xff\xfea\0\n\0b\0"), "a\nb");
        assert_eq!(clean("> > rx: on\n>\n>> tx".as_bytes()), "rx: on\n\ntx");
        assert_eq!(clean(b"caf\xe9"), "café");
        assert_eq!(clean(b"\x1b[01;32mroot@a\x1b[0m:~# ls"), "root@a:~# ls");
        assert_eq!(clean(b"10%\r50%\rdone"), "done");
        assert_eq!(clean(b"a >> b"), "a >> b");
    }

    #[test]
    fn what_is_no_text_is_refused() {
        assert!(refused(b"ab\0c").is_some());
        assert!(refused(b"\xff\xfea\0").is_none());
        assert!(refused(b"plain").is_none());
        assert!(refused(&vec![b'\n'; LINES_MAX]).is_none());
        let why = refused(&vec![b'\n'; LINES_MAX + 1]).unwrap_or_default();
        assert_eq!(why, "4194305 lines, at most 4194304 are read");
    }
}
