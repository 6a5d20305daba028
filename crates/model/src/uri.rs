//! Texts as parts of addresses, percent-encoded (RFC 3986).

use std::fmt::Write;

/// A text as one part of an address: all but unreserved characters is encoded.
#[must_use]
pub fn encoded(text: &str) -> String {
    encoded_but(text.as_bytes(), b"")
}

/// The bytes of a path: its slashes stay.
#[must_use]
pub fn encoded_path(path: &[u8]) -> String {
    encoded_but(path, b"/")
}

fn encoded_but(bytes: &[u8], plain: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len()), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(byte) || plain.contains(byte) {
            out.push(char::from(*byte));
        } else {
            // Writing into a `String` cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_but_unreserved_characters_is_encoded() {
        assert_eq!(encoded("a{b=~\"c|d\"} ü&/"), "a%7Bb%3D~%22c%7Cd%22%7D%20%C3%BC%26%2F");
        assert_eq!(encoded_path(b"/a b?c#d%\xff"), "/a%20b%3Fc%23d%25%FF");
    }
}
