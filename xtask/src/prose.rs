//! The width of prose: comments of Rust files and paragraphs of Markdown files.
//!
//! rustfmt keeps code within the width and leaves comments alone. Tables, code, and lines that hold a link or
//! a long word are not prose.

use std::path::Path;

/// Most columns of a line, as in `rustfmt.toml`.
pub(crate) const COLUMNS_MAX: usize = 110;

/// Numbers of the lines of a file that are too wide.
pub(crate) fn wide_lines(file: &str, text: &str) -> Vec<usize> {
    let is_markdown = Path::new(file).extension().is_some_and(|extension| extension == "md");
    let mut in_code = false;
    let mut wide = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let Some(prose) = (if is_markdown { Some(line) } else { comment(line) }) else {
            in_code = false;
            continue;
        };
        if prose.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        let is_code = in_code || prose.starts_with("    ");
        let is_table = prose.trim_start().starts_with('|');
        if line.chars().count() > COLUMNS_MAX && !is_code && !is_table && can_be_broken(prose) {
            wide.push(number + 1);
        }
    }
    wide
}

/// The text of a comment that has a line of its own.
fn comment(line: &str) -> Option<&str> {
    let text = line.trim_start().strip_prefix("//")?;
    let text = text.strip_prefix(['/', '!']).unwrap_or(text);
    Some(text.strip_prefix(' ').unwrap_or(text))
}

/// Whether a line is wide for its number of words, and not for one long one.
fn can_be_broken(prose: &str) -> bool {
    !prose.contains("](") && !prose.contains("://") && prose.split_whitespace().all(|word| word.len() < 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_prose_is_measured() {
        let words = "many short words ".repeat(8);
        let of = |file: &str, line: &str| wide_lines(file, line).len();
        assert_eq!(of("a.rs", &format!("    /// {words}")), 1);
        assert_eq!(of("a.rs", &format!("    // {words}")), 1);
        assert_eq!(of("a.rs", &format!("let a = \"{words}\";")), 0);
        assert_eq!(of("a.rs", &format!("/// | {words} |")), 0);
        assert_eq!(of("a.rs", &format!("/// ```text\n/// {words}\n/// ```\n/// {words}")), 1);
        assert_eq!(of("a.md", &words), 1);
        assert_eq!(of("a.md", &format!("    {words}")), 0);
        assert_eq!(of("a.md", &format!("{words} [x](y)")), 0);
        assert_eq!(of("a.md", &format!("{words} {}", "x".repeat(60))), 0);
        assert_eq!(of("a.md", &"a ".repeat(50)), 0);
    }
}
