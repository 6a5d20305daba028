//! Text in lines of a width.

use linerate_model::printable;

/// Breaks text at spaces into lines of at most `width` characters; a longer word stays whole.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace().map(printable::clean) {
        let last = lines.last_mut().expect("starts with one line and only grows");
        if !last.is_empty() && last.chars().count() + 1 + word.chars().count() > width {
            lines.push(word);
        } else {
            if !last.is_empty() {
                last.push(' ');
            }
            last.push_str(&word);
        }
    }
    lines
}
