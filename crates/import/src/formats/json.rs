//! JSON in the middle of a text: lines come in, the first value and the number of its lines go out. A value
//! that ends in the middle is closed behind its last whole part.

use std::io::Read;

use serde_json::Value;

use crate::limits::JsonParts;
use crate::reader::Block;
use crate::sink::Sink;

/// A value, or what was left of it.
pub(crate) struct Found {
    /// The value.
    pub value: Value,
    /// Lines that it takes.
    pub lines: usize,
    /// It ended in the middle.
    pub cut: bool,
}

/// How much of a piece is read to recognise it, bytes.
const PEEK: usize = 4096;
/// The same in lines.
const PEEK_LINES: usize = 24;

/// Whether a JSON value begins here and all of these words stand near its beginning.
pub(crate) fn has_keys(block: &Block<'_>, opening: char, words: &[&str]) -> bool {
    if !block.first().trim_start().starts_with(opening) {
        return false;
    }
    let mut seen = 0;
    let mut missing: Vec<&str> = words.to_vec();
    for line in block.lines.iter().take(PEEK_LINES) {
        missing.retain(|word| !line.contains(word));
        seen += line.len() + 1;
        if missing.is_empty() || seen > PEEK {
            break;
        }
    }
    missing.is_empty()
}

/// Reads the value of a tool and passes it on, reports one that is cut off, and returns the number of its
/// lines.
pub(crate) fn read(
    block: &Block<'_>,
    out: &mut Sink,
    tool: &str,
    take: impl FnOnce(&Value, &mut Sink),
) -> usize {
    let found = match value(block) {
        Ok(found) => found,
        Err((lines, why)) => {
            out.unread(0, why);
            return lines;
        }
    };
    if found.cut {
        out.note(format!(
            "{}: the JSON of {tool} ends in the middle; what came before is used",
            block.at.file
        ));
    }
    take(&found.value, out);
    found.lines
}

/// The value; on an error the number of lines that cannot be used and why.
pub(crate) fn value(block: &Block<'_>) -> Result<Found, (usize, String)> {
    let source = Lines { all: block.lines, at: 0, byte: 0, parts: JsonParts::default() };
    let mut stream = serde_json::Deserializer::from_reader(source).into_iter::<Value>();
    match stream.next() {
        Some(Ok(value)) => {
            Ok(Found { value, lines: lines_of(block.lines, stream.byte_offset()), cut: false })
        }
        Some(Err(error)) if error.is_eof() => closed(block.lines),
        Some(Err(error)) => Err((error.line().clamp(1, block.lines.len()), format!("no JSON: {error}"))),
        None => Err((1, "no JSON".to_owned())),
    }
}

fn lines_of(lines: &[&str], bytes: usize) -> usize {
    let mut before = 0;
    for (i, line) in lines.iter().enumerate() {
        before += line.len() + 1;
        if before > bytes {
            return i + 1;
        }
    }
    lines.len()
}

fn closed(lines: &[&str]) -> Result<Found, (usize, String)> {
    let refused = || (lines.len(), "the JSON ends in the middle, and nothing of it is whole".to_owned());
    let mut text = lines.join("\n");
    let (cut, open) = last_whole(&text).ok_or_else(refused)?;
    text.truncate(cut);
    text.extend(open.iter().rev());
    let value = serde_json::from_str(&text).map_err(|_| refused())?;
    Ok(Found { value, lines: lines.len(), cut: true })
}

/// Where the last whole part ends, and the brackets that are still to be closed there.
fn last_whole(text: &str) -> Option<(usize, Vec<char>)> {
    let mut open: Vec<char> = Vec::new();
    let mut last = None;
    let mut in_text = false;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        if in_text {
            (in_text, escaped) = (escaped || c != '"', !escaped && c == '\\');
            continue;
        }
        match c {
            '"' => in_text = true,
            '{' => open.push('}'),
            '[' => open.push(']'),
            '}' | ']' => {
                open.pop();
                last = Some((at + 1, open.len()));
            }
            ',' => last = Some((at, open.len())),
            _ => {}
        }
    }
    // Since then brackets were only opened, or there would be a later position.
    let (at, depth) = last?;
    open.truncate(depth);
    Some((at, open))
}

/// The lines as bytes, so that nothing has to be joined.
struct Lines<'a> {
    all: &'a [&'a str],
    at: usize,
    byte: usize,
    parts: JsonParts,
}

impl Read for Lines<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let mut given = 0;
        while given < buffer.len() {
            let Some(line) = self.all.get(self.at) else { break };
            let rest = &line.as_bytes()[self.byte..];
            if rest.is_empty() {
                // A text that is cut inside a string must not go on with the end of a line.
                if self.at + 1 < self.all.len() {
                    buffer[given] = b'\n';
                    given += 1;
                }
                (self.at, self.byte) = (self.at + 1, 0);
            } else {
                let n = rest.len().min(buffer.len() - given);
                buffer[given..given + n].copy_from_slice(&rest[..n]);
                given += n;
                self.byte += n;
            }
        }
        self.parts.add(&buffer[..given]).map_err(std::io::Error::other)?;
        Ok(given)
    }
}

/// A number below a path of keys.
pub(crate) fn number(value: &Value, path: &[&str]) -> Option<f64> {
    path.iter().try_fold(value, |v, key| v.get(key))?.as_f64().filter(|v| v.is_finite())
}

/// A text below a path of keys.
pub(crate) fn text<'v>(value: &'v Value, path: &[&str]) -> Option<&'v str> {
    path.iter().try_fold(value, |v, key| v.get(key))?.as_str()
}

/// A list below a path of keys; empty when there is none.
pub(crate) fn list<'v>(value: &'v Value, path: &[&str]) -> &'v [Value] {
    path.iter().try_fold(value, |v, key| v.get(key)).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Context;

    fn read(text: &str) -> Result<(String, usize, bool), usize> {
        let lines: Vec<&str> = text.lines().collect();
        let context = Context::default();
        value(&Block { lines: &lines, at: &context })
            .map(|f| (f.value.to_string(), f.lines, f.cut))
            .map_err(|(lines, _)| lines)
    }

    #[test]
    fn a_value_ends_where_it_ends() {
        assert_eq!(read("{\"a\":\n1}\nrest"), Ok(("{\"a\":1}".to_owned(), 2, false)));
        assert_eq!(read("[1] x"), Ok(("[1]".to_owned(), 1, false)));
        assert_eq!(read("{\n\"a\" 1\n}"), Err(2));
    }

    #[test]
    fn a_value_that_is_cut_keeps_what_was_whole() {
        assert_eq!(read("{\"a\":[1,\n2,\n3"), Ok(("{\"a\":[1,2]}".to_owned(), 3, true)));
        assert_eq!(read("{\"a\":{\"b\":1},\"c\":{\"d"), Ok(("{\"a\":{\"b\":1}}".to_owned(), 1, true)));
        assert_eq!(read("{\"a\":\"x,\\\"}"), Err(1));
        assert_eq!(read("{"), Err(1));
    }
}
