//! What is wrong with a kept set: file, line, thing and hint.

/// A kept set that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {problem}{}{hint}", if hint.is_empty() { "" } else { "\nhint: " })]
pub struct KeptError {
    /// File.
    pub file: String,
    /// Line, 1-based.
    pub line: usize,
    /// What is wrong: thing and value seen.
    pub problem: String,
    /// What to do; may be empty.
    pub hint: String,
}

/// The line of a byte, 1-based.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|b| *b == b'\n').count()
}
