//! YAML as a plain tree with lines, out of the events of a parser that knows the whole language.
//!
//! What comes in: a text. What goes out: the first document, or where it is broken. Anchors are not followed:
//! an alias stays an alias, so that a short text cannot become a large tree. Depth and size are bounded, and
//! nothing here recurses.

use saphyr_parser::{Event, Parser, ScalarStyle};

/// Deepest nesting.
const DEPTH_MAX: usize = 64;
/// Most values.
const VALUES_MAX: usize = 2_000_000;

/// A value with its line, 1-based.
#[derive(Debug)]
pub struct Yaml {
    /// Where it begins.
    pub line: usize,
    /// What it is.
    pub value: Value,
}

/// What a value is.
#[derive(Debug)]
pub enum Value {
    /// `~`, `null` or nothing.
    Null,
    /// Any other scalar, as text.
    Text(String),
    /// A list, whatever is in it.
    List,
    /// Keys that are text, in order, with their values.
    Map(Vec<(String, Yaml)>),
    /// A reference to another value.
    Alias,
}

/// A list or map that is not at its end.
struct Open {
    line: usize,
    /// Of a list only the existence matters to the readers.
    map: Option<Vec<(String, Yaml)>>,
    key: Option<String>,
}

impl Yaml {
    /// Entries of a map.
    #[must_use]
    pub fn entries(&self) -> Option<&[(String, Yaml)]> {
        if let Value::Map(entries) = &self.value { Some(entries) } else { None }
    }
}

/// The first document; what is wrong otherwise, with its line.
pub fn parse(text: &str) -> Result<Yaml, (usize, String)> {
    let mut open: Vec<Open> = Vec::new();
    let mut values = 0;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|e| (e.marker().line(), e.info().to_owned()))?;
        let line = span.start.line();
        values += 1;
        if values > VALUES_MAX {
            return Err((line, format!("more than {VALUES_MAX} values")));
        }
        let done = match event {
            Event::MappingStart(..) | Event::SequenceStart(..) => {
                if open.len() >= DEPTH_MAX {
                    return Err((line, format!("nested more than {DEPTH_MAX} deep")));
                }
                let map = matches!(event, Event::MappingStart(..)).then(Vec::new);
                open.push(Open { line, map, key: None });
                continue;
            }
            Event::MappingEnd | Event::SequenceEnd => {
                let Some(closed) = open.pop() else { continue };
                let value = closed.map.map_or(Value::List, Value::Map);
                Yaml { line: closed.line, value }
            }
            Event::Scalar(text, style, ..) => Yaml { line, value: scalar(&text, style) },
            Event::Alias(_) => Yaml { line, value: Value::Alias },
            Event::StreamEnd => break,
            _ => continue,
        };
        let Some(outer) = open.last_mut() else { return Ok(done) };
        let Some(map) = &mut outer.map else { continue };
        match outer.key.take() {
            Some(key) => map.push((key, done)),
            None => match done.value {
                Value::Text(key) => outer.key = Some(key),
                // A key that is no text matches nothing.
                _ => outer.key = Some(String::new()),
            },
        }
    }
    Err((1, "no value in the document".to_owned()))
}

fn scalar(text: &str, style: ScalarStyle) -> Value {
    let null = style == ScalarStyle::Plain && ["", "~", "null", "Null", "NULL"].contains(&text);
    if null { Value::Null } else { Value::Text(text.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_their_lines_and_aliases_stay_aliases() {
        let tree = parse("a: &x\n  b: 1\n  c: [1, {d: 2}]\ne: *x\nf: ~\ng: 'null'\n").unwrap();
        let entries = tree.entries().unwrap();
        assert_eq!(
            entries.iter().map(|(k, v)| (k.as_str(), v.line)).collect::<Vec<_>>(),
            [("a", 1), ("e", 4), ("f", 5), ("g", 6)]
        );
        assert!(matches!(entries[1].1.value, Value::Alias));
        assert!(matches!(entries[2].1.value, Value::Null));
        assert!(matches!(&entries[3].1.value, Value::Text(text) if text == "null"));
        assert!(matches!(&entries[0].1.entries().unwrap()[1].1.value, Value::List));
    }

    #[test]
    fn a_deep_or_broken_text_is_refused_with_its_line() {
        assert!(parse(&"[".repeat(100_000)).is_err());
        assert!(parse(&"[\n".repeat(70)).unwrap_err().1.contains("nested more than 64"));
        assert!(parse("a: b: c\n").is_err());
        assert_eq!(parse("a: 1\nb: [\n").unwrap_err().0, 3);
        assert!(parse("").is_err());
    }
}
