//! Commands that are printed to be typed. A text or path comes in, a word of a shell goes out.

use std::path::Path;

/// A word of a command: in quotes where a shell would take it apart.
pub fn word(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"_-.:+/@%,=".contains(&b);
    if !text.is_empty() && text.bytes().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The same of a path.
pub fn path(path: &Path) -> String {
    word(&path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_takes_each_for_one_word() {
        assert_eq!(word("/a/b-1"), "/a/b-1");
        assert_eq!(word(""), "''");
        assert_eq!(path(Path::new("/a b/it's")), r"'/a b/it'\''s'");
    }
}
