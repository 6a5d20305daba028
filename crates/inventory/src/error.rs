//! What is wrong with an inventory: errors with file, line and hint, and the hint for a mistyped word.

use ::toml::Spanned;
use linerate_input as input;

/// Longest problem that is printed, characters: it may quote a value of the file.
const PROBLEM_CHARS_MAX: usize = 600;
/// Longest word that is compared with the known ones, bytes: no name of ours is longer.
const WORD_BYTES_MAX: usize = 64;

/// Most errors of one file that are reported.
const ERRORS_MAX: usize = 20;

/// An inventory that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}{}", self.alone(), others.iter().fold(String::new(), |all, other| all + "\n" + &other.alone()))]
pub struct InventoryError {
    /// File.
    pub file: String,
    /// Line, 1-based; 0 when the file as a whole is meant.
    pub line: usize,
    /// What is wrong: thing and value seen.
    pub problem: String,
    /// What to do; may be empty.
    pub hint: String,
    /// What else is wrong in the same file.
    pub others: Vec<InventoryError>,
}

impl InventoryError {
    /// An error by itself.
    pub fn new(file: impl Into<String>, line: usize, flaw: Flaw) -> Self {
        Self { file: file.into(), line, problem: flaw.what, hint: flaw.hint, others: Vec::new() }
    }

    /// All errors of a file as one.
    pub(super) fn all(file: &str, text: &str, problems: Vec<Problem>) -> Self {
        let left_out = problems.len().saturating_sub(ERRORS_MAX);
        let mut errors = problems.into_iter().take(ERRORS_MAX).map(|problem| {
            let flaw = Flaw { what: problem.what, hint: problem.hint };
            Self::new(file, line_of(text, problem.at), flaw)
        });
        let first = errors.next();
        let mut first =
            first.unwrap_or_else(|| Self::new(file, 0, Flaw::new("cannot be understood", String::new())));
        first.others = errors.collect();
        if left_out > 0 {
            let flaw = Flaw::new(format!("{left_out} more errors"), "correct those above first");
            first.others.push(Self::new(file, 0, flaw));
        }
        first
    }

    /// This one without the others.
    pub fn alone(&self) -> String {
        let line = if self.line > 0 { format!(":{}", self.line) } else { String::new() };
        format!(
            "{}{line}: {}{}{}",
            self.file,
            input::cut(&self.problem, PROBLEM_CHARS_MAX),
            if self.hint.is_empty() { "" } else { "\nhint: " },
            input::cut(&self.hint, PROBLEM_CHARS_MAX)
        )
    }
}

/// What is wrong, without where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flaw {
    /// Thing and value seen.
    pub what: String,
    /// What to do; may be empty.
    pub hint: String,
}

impl Flaw {
    pub(crate) fn new(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { what: what.into(), hint: hint.into() }
    }
}

/// What is wrong and at which byte of the text.
pub(super) struct Problem {
    pub(super) at: usize,
    pub(super) what: String,
    pub(super) hint: String,
}

/// What is wrong with a value of the text.
pub(super) fn problem<T>(at: &Spanned<T>, what: impl Into<String>, hint: impl Into<String>) -> Problem {
    Problem { at: at.span().start, what: what.into(), hint: hint.into() }
}

/// The line of a byte, 1-based.
pub(super) fn line_of(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|b| *b == b'\n').count()
}

/// The known word that is nearest to `word`, when it is near enough to be a slip.
pub(super) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > WORD_BYTES_MAX {
        return None;
    }
    let limit = (word.chars().count() / 3).clamp(1, 3);
    known
        .into_iter()
        .map(|k| (strsim::levenshtein(word, k), k))
        .filter(|(d, _)| *d <= limit)
        .min()
        .map(|(_, k)| k)
}

/// A hint with the known word that is nearest to `word`, or with the known words.
pub(super) fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    if let Some(near) = nearest(word, known.clone()) {
        return format!("did you mean `{near}`?");
    }
    let all: Vec<&str> = known.into_iter().take(12).collect();
    if all.is_empty() { "none is defined".to_owned() } else { format!("known are: {}", all.join(", ")) }
}

/// A text as a terminal may show it, shortened.
pub(super) fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(120).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(120).is_some() {
        shown.push('…');
    }
    shown
}
