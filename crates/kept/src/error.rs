//! What is wrong with a kept set: file, line, thing and hint.

/// Most errors of one file that are reported beside the first.
const OTHERS_MAX: usize = 19;

/// A kept set that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{}", self.alone(), others.iter().fold(String::new(), |all, other| all + "\n" + &other.alone()))]
pub struct KeptError {
    /// File.
    pub file: String,
    /// Line, 1-based.
    pub line: usize,
    /// What is wrong: thing and value seen.
    pub problem: String,
    /// What to do; may be empty.
    pub hint: String,
    /// What else is wrong in the same file.
    pub others: Vec<KeptError>,
}

impl KeptError {
    /// All errors of a file as one; `None` without any.
    pub(crate) fn all(mut errors: Vec<Self>) -> Option<Self> {
        errors.sort_by_key(|error| error.line);
        let mut errors = errors.into_iter();
        errors.next().map(|first| Self { others: errors.take(OTHERS_MAX).collect(), ..first })
    }

    fn alone(&self) -> String {
        let hint = if self.hint.is_empty() { String::new() } else { format!("\nhint: {}", self.hint) };
        format!("{}:{}: {}{hint}", self.file, self.line, self.problem)
    }
}

/// The line of a byte, 1-based.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|b| *b == b'\n').count()
}
