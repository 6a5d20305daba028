//! What the readers of JSON share: one document with an error that has a line, and lists of texts that some
//! versions write as a single text.

use serde_json::Value;

use super::error::{Flaw, InventoryError, line_of};
use super::reader::SourceText;

/// The document.
pub(super) fn parse_json(source: &SourceText<'_>) -> Result<Value, InventoryError> {
    serde_json::from_str(source.text).map_err(|error| {
        source.at(error.line(), Flaw::new(format!("not JSON: {error}"), "was the output cut?"))
    })
}

/// Line of the first quoted occurrence of a value; 0 when it is written differently.
pub(super) fn line_of_word(text: &str, word: &str) -> usize {
    text.find(&format!("\"{word}\"")).map_or(0, |at| line_of(text, at))
}

/// A list of texts, or a single one.
pub(super) fn texts(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

/// A text at a path of keys; an empty one is none.
pub(super) fn text_at<'a>(value: &'a Value, path: &[&str]) -> Option<&'a str> {
    path.iter().try_fold(value, |value, key| value.get(key))?.as_str().filter(|text| !text.is_empty())
}
