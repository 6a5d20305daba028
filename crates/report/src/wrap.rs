//! Text in lines of a width.

use linerate_model::printable;

/// Breaks text at spaces into lines of at most `width` characters; a longer word stays whole, and so does a
/// command between backticks that fits a line.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in words(text, width) {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(std::mem::take(&mut line));
        } else if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&word);
    }
    lines.push(line);
    lines
}

/// What is not broken: words, and commands of at most `width` characters.
fn words(text: &str, width: usize) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut open: Vec<String> = Vec::new();
    for word in text.split_whitespace().map(printable::clean) {
        let is_edge = word.matches('`').count() % 2 == 1;
        if open.is_empty() && !is_edge {
            words.push(word);
            continue;
        }
        let is_end = is_edge && !open.is_empty();
        open.push(word);
        if is_end {
            let whole = open.join(" ");
            let fits = whole.chars().count() <= width;
            words.extend(if fits { vec![whole] } else { std::mem::take(&mut open) });
            open.clear();
        }
    }
    words.extend(open);
    words
}

#[cfg(test)]
mod tests {
    use super::wrap;

    #[test]
    fn a_command_stays_whole_where_it_fits() {
        let text = "see `linerate drbd status a b`, then `ls`";
        assert_eq!(wrap(text, 30), ["see", "`linerate drbd status a b`,", "then `ls`"]);
        assert_eq!(wrap(text, 12), ["see", "`linerate", "drbd status", "a b`, then", "`ls`"]);
        assert_eq!(wrap("a stray ` b c", 7), ["a stray", "` b c"]);
    }
}
