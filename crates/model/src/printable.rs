//! Text of hosts, made safe to print: nothing in it acts on a terminal. Text in, text out.

/// Whether a character reorders what stands around it: marks, overrides and isolates of bidirectional text.
fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether a character is a command to a terminal, or reorders what stands around it.
pub fn is_control(c: char) -> bool {
    c.is_control() || is_bidi_control(c)
}

/// Text on one line, control characters escaped: a line break of a host must not look like a line of ours.
pub fn one_line(text: &str) -> String {
    let escaped = |c: char| if is_control(c) { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(escaped).collect()
}

/// Stands between an error and what to do about it.
pub const HINT: &str = "\nhint: ";

/// An error without its hint, and the hint.
#[must_use]
pub fn without_hint(error: &str) -> (&str, Option<&str>) {
    error.split_once(HINT).map_or((error, None), |(error, hint)| (error, Some(hint)))
}

/// Words behind an error, before its hint.
#[must_use]
pub fn before_hint(error: &str, words: &str) -> String {
    let (error, hint) = without_hint(error);
    hint.map_or_else(|| format!("{error}{words}"), |hint| format!("{error}{words}{HINT}{hint}"))
}

/// An error of a host: itself and its hint on one line each.
#[must_use]
pub fn lines_of_error(error: &str) -> String {
    let (error, hint) = without_hint(error);
    hint.map_or_else(|| one_line(error), |hint| one_line(error) + HINT + &one_line(hint))
}

/// Text without control characters: a host's name must not move the cursor of a terminal.
pub fn clean(text: &str) -> String {
    text.chars().filter(|c| !is_control(*c)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_or_left_out() {
        assert_eq!(one_line("a\nb\u{1b}c\u{202e}"), "a\\nb\\u{1b}c\\u{202e}");
        assert_eq!(before_hint("a\nhint: c", "; b"), "a; b\nhint: c");
        assert_eq!(lines_of_error("a\nb\nhint: c\nhint: d"), "a\\nb\nhint: c\\nhint: d");
        assert_eq!(clean("a\x1b[2Jb\u{200f}"), "a[2Jb");
    }
}
